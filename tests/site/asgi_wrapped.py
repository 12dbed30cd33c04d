"""The test site behind a middleware that wraps `receive` and `send`, as middleware does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.site import asgi


async def application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Mapping[str, Any]]],
    send: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> None:
    """The wrapped application."""

    async def wrapped_receive() -> Mapping[str, Any]:
        return await receive()

    async def wrapped_send(event: Mapping[str, Any]) -> None:
        await send(event)

    await asgi.application(scope, wrapped_receive, wrapped_send)
