"""One trip through the service: connect, subscribe, publish over HTTP, receive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.server import Server


@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
async def test_publication_posted_to_the_api_reaches_a_subscriber(
    serve: Callable[..., Server],
    connect: Callable[..., Any],
    unique: str,
    format_name: str,
    server_name: str,
) -> None:
    server = serve(server=server_name)
    client = await connect(server)
    assert await client.result("subscribe", {"channel": unique}) == {}
    server.publish(unique, {"text": "<hi>"})
    assert await client.push() == {"channel": unique, "data": {"data": {"text": "<hi>"}}}


async def test_disconnect_carries_the_advice_in_the_close_frame(
    serve: Callable[..., Server], connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    server = serve()
    client = await connect(server, user=unique)
    server.api("disconnect", user=unique)
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')
