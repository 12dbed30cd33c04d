"""The test site behind a middleware that wraps `send`, as middleware does."""

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

    async def wrapped(event: Mapping[str, Any]) -> None:
        await send(event)

    await asgi.application(scope, receive, wrapped)
