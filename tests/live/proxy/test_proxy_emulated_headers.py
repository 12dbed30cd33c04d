"""Headers that a client sends in its connect request, and which endpoints get them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.conftest import connection_token
from tests.live.configurations import Serve
from tests.live.proxy.application import Application, proxied
from tests.server import Server

OPTIONS: Mapping[str, Any] = {
    "proxy_connect_emulated_headers": ["Authorization", "X-Both", "Host"],
    "proxy_rpc_emulated_headers": ["x-rpc", "X-Both"],
    "proxy_extra_http_headers": ["X-Both", "X-Rpc"],
}


async def send(
    server: Server,
    emulated: Mapping[str, Any],
    handshake: Mapping[str, str] | None = None,
    **request: Any,
) -> list[dict[str, Any]]:
    """Connect with these headers, then call a method; returns the replies, or the close code."""
    url = f"ws://127.0.0.1:{server.port}/connection/websocket"
    commands = [
        {"id": 1, "connect": {"headers": emulated, **request}},
        {"id": 2, "rpc": {"method": "m"}},
    ]
    async with connect(url, proxy=None, additional_headers=handshake or {}) as socket:
        await socket.send("\n".join(map(json.dumps, commands)))
        replies: list[dict[str, Any]] = []
        try:
            while not any(reply.get("id") == 2 for reply in replies):
                replies += map(json.loads, str(await socket.recv()).split("\n"))
        except ConnectionClosed:
            replies.append({"close": socket.close_code})
        return replies


async def test_endpoint_gets_the_headers_that_it_lists_and_no_others(
    serve: Serve, application: Application
) -> None:
    server = serve(**{**proxied(application), **OPTIONS})
    emulated = {
        "authorization": "Bearer T",
        "X-RPC": "\u00e9",
        "X-Both": "of the client",
        "Cookie": "not listed",
        "X-Forwarded-For": "not listed",
        "Host": "elsewhere.example",
    }

    await send(server, emulated, {"X-Both": "of the handshake"})
    (connecting,), (calling,) = application.asked("/connect"), application.asked("/rpc")

    names = ("Authorization", "X-Rpc", "X-Both", "Cookie", "X-Forwarded-For")
    assert {name: connecting.headers[name] for name in names} == {
        "Authorization": "Bearer T",
        "X-Rpc": None,
        "X-Both": "of the handshake",
        "Cookie": None,
        "X-Forwarded-For": None,
    }
    assert {name: calling.headers[name] for name in names} == {
        "Authorization": None,
        "X-Rpc": "\u00e9",
        "X-Both": "of the handshake",
        "Cookie": None,
        "X-Forwarded-For": None,
    }
    assert connecting.headers.get_all("Host") == [f"127.0.0.1:{application.server_port}"]


async def test_client_with_a_token_has_them_too(serve: Serve, application: Application) -> None:
    server = serve(**{**proxied(application), **OPTIONS})
    await send(server, {"X-Rpc": "r"}, token=connection_token("17"))
    assert application.asked("/connect") == []
    assert application.only_request().headers["X-Rpc"] == "r"


@pytest.mark.parametrize(
    "emulated",
    [
        {"X-Rpc": "a\r\nX-Forwarded-For: 192.0.2.1"},
        {"X-Rpc": "a\0"},
        {"X-Rpc": "\u20ac"},
        {"X-Rpc": "\ud83d"},
        {"X-Rpc": "x" * 9000},
        {"X-Rpc": "x" * 5000, "X-Both": "x" * 5000},
        {"X-Rpc": 5},
    ],
    ids=lambda sent: repr(sent)[:40],
)
async def test_value_that_no_header_can_carry_ends_the_connection(
    serve: Serve, application: Application, emulated: Mapping[str, Any]
) -> None:
    server = serve(**{**proxied(application), **OPTIONS})
    assert await send(server, emulated) == [{"close": 3501}]
    assert application.requests == []


async def test_value_that_no_endpoint_gets_does_no_harm(
    serve: Serve, application: Application
) -> None:
    server = serve(**{**proxied(application), **OPTIONS})
    for reply in await send(server, {"X-Other": "\u20ac\r\n", "X-Large": "x" * 20000}):
        assert "error" not in reply
