"""The WebSocket of the second generation: what the query wishes, and how the connection closes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.conftest import connection_token
from tests.server import Server


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve()


@pytest.mark.parametrize(
    ("query", "is_pinged"),
    [
        ("", True),
        ("cf_ws_frame_ping_pong=true", False),
        ("a=1&cf_ws_frame_ping_pong=true&b=2", False),
        ("cf_ws_frame_ping_pong=false", True),
        ("not_cf_ws_frame_ping_pong=true", True),
    ],
)
async def test_query_may_wish_for_no_pings(server: Server, query: str, is_pinged: bool) -> None:
    async with connect(f"{server.socket}?{query}", proxy=None) as socket:
        await socket.send(json.dumps({"id": 1, "connect": {"token": connection_token("17")}}))
        result: dict[str, Any] = json.loads(await socket.recv())["connect"]
    assert {name: result[name] for name in result.keys() & {"ping", "pong"}} == (
        {"ping": 25, "pong": True} if is_pinged else {}
    )


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [
        ('{"id":2,"nope":{}}', 3501, "bad request"),
        ('{"id":2,"rpc":{"data":"' + "x" * 65536 + '"}}', 1009, ""),
    ],
    ids=["malformed", "too large"],
)
async def test_close_frame_has_plain_text(
    server: Server, frame: str, code: int, reason: str
) -> None:
    async with connect(server.socket, proxy=None) as socket:
        await socket.send(json.dumps({"id": 1, "connect": {"token": connection_token("17")}}))
        await socket.recv()
        await socket.send(frame)
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert (socket.close_code, socket.close_reason) == (code, reason)
