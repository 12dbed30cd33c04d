"""A process that takes no more connections says so, whatever way a client comes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import NAMESPACES, Options, Serve
from tests.live.monitoring.scraping import KEY, scrape
from tests.live.raw_http import UPGRADE, open_exchange
from tests.live.streaming.client import ask, connect_command, frame_of
from tests.protocol_client import open_client
from tests.server import Server

FULL: Options = {
    "namespaces": NAMESPACES,
    "client_connection_limit": 1,
    "metrics_key": KEY,
    "events": True,
    "http_stream": True,
    "sse": True,
    "uni_http_stream": True,
    "uni_sse": True,
    "uni_websocket": True,
}
SOCKETS = [
    "/connection/websocket",
    "/connection/uni_websocket",
    "/connection/sockjs/000/a1/websocket",
]
STREAMS = [
    ("POST", "/connection/http_stream"),
    ("POST", "/connection/sse"),
    ("GET", "/connection/uni_sse"),
    ("POST", "/connection/sockjs/000/a2/xhr_streaming"),
    ("GET", "/connection/sockjs/000/a3/eventsource"),
]


async def handshake(server: Server, path: str) -> tuple[int, str | None]:
    """The status of a WebSocket handshake, and when to come back."""
    exchange = await open_exchange(server, "GET", path, headers=UPGRADE)
    try:
        await exchange.begin()
        return exchange.status, exchange.headers.get("retry-after")
    finally:
        await exchange.close()


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_full_process_tells_each_newcomer_when_to_come_back(serve: Serve, kind: str) -> None:
    server = serve(server=kind, **FULL)
    refused = scrape(server)["realtime_connections_refused_total",]
    answers: dict[str, tuple[int, Any]] = {}
    async with open_client(server.socket, token=connection_token("17")):
        for path in SOCKETS:
            answers[path] = await handshake(server, path)
        for method, path in STREAMS:
            body = frame_of(connect_command()) if method == "POST" else None
            answer = await ask(server, method, path, body)
            answers[path] = answer.status, answer.headers.get("retry-after")
        events = await ask(server, "GET", "/connection/events?channel=public:a")

    assert scrape(server)["realtime_connections_refused_total",] - refused == len(answers) + 1
    assert {path: status for path, (status, _) in answers.items()} == dict.fromkeys(answers, 503)
    assert {int(seconds) for _, seconds in answers.values()} <= set(range(5, 21))
    # any other status would end an EventSource for ever
    assert events.status == 200
    assert events.body.startswith(b"retry: ")
    assert b"data" not in events.body

    deadline = time.monotonic() + 20
    while (await handshake(server, SOCKETS[0]))[0] != 101:
        assert time.monotonic() < deadline, "the place of the client that left was not given away"
        await asyncio.sleep(0.01)


async def test_session_that_was_not_taken_is_taken_later(serve: Serve) -> None:
    server = serve(**FULL)
    path = "/connection/sockjs/000/same/xhr"
    async with open_client(server.socket, token=connection_token("17")):
        refused = (await ask(server, "POST", path, b"")).status

    deadline = time.monotonic() + 20
    while (taken := await ask(server, "POST", path, b"")).status == 503:
        assert time.monotonic() < deadline, "the session was refused for ever"
        await asyncio.sleep(0.01)

    assert (refused, taken.status, taken.body) == (503, 200, b"o\n")
