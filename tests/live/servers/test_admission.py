"""A process that takes no more connections says so, whatever way a client comes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import NAMESPACES, Options, Serve
from tests.live.monitoring.scraping import KEY, scrape
from tests.live.raw_http import UPGRADE, Exchange, open_exchange
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


BURST = 3
EVENTS = "/connection/events?channel=public:a"


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


BODIES = [
    ("/connection/http_stream", 503),
    ("/emulation", 408),
    ("/connection/sockjs/000/a/xhr_send", 408),
]
"""Where half a body comes to a full process, and the status."""


async def half(server: Server, path: str) -> Exchange:
    """Send a request whose body comes in part, once the server has read its head."""
    headers = {"Content-Length": "60000", "Expect": "100-continue"}
    exchange = await open_exchange(server, "POST", path, headers=headers)
    await exchange.begin()
    if exchange.status == 100:
        await exchange.write(b" " * 50_000)
    return exchange


async def attack(server: Server) -> list[tuple[str, int, str]]:
    """Begin connections and requests with half bodies; returns path, status and what follows."""
    requests = {"/connection/uni_sse": await half(server, "/connection/uni_sse")}
    assert (await handshake(server, SOCKETS[0]))[0] == 503
    for path, _ in BODIES:
        requests[path] = await half(server, path)
    answers = []
    for path, exchange in requests.items():
        if exchange.status == 100:
            await exchange.begin()
        answers.append((path, exchange.status, exchange.headers["connection"]))
        await exchange.close()
    return answers


async def test_bodies_that_do_not_come_are_no_way_around_the_limit(serve: Serve) -> None:
    servers = [serve(server=kind, **FULL) for kind in ("daphne", "uvicorn", "granian")]
    answers = await asyncio.gather(*map(attack, servers))
    late = ("/connection/uni_sse", 408, "close")
    refused = [(path, status, "close") for path, status in BODIES]
    assert answers == [[late, *refused]] * len(servers)


async def is_taken(server: Server, method: str, path: str, forwarded: str) -> bool:
    """Whether a request that begins a connection gets one, by its status or its advice."""
    headers = {"X-Forwarded-For": forwarded, **(UPGRADE if "websocket" in path else {})}
    body = frame_of(connect_command()) if method == "POST" else None
    exchange = await open_exchange(server, method, path, body, headers)
    try:
        await exchange.begin(method)
        if path == EVENTS:
            return exchange.headers.get("content-length") is None
        assert exchange.status in (101, 200, 503)
        return exchange.status != 503
    finally:
        await exchange.close()


ZERO_PROXIES = ["127.0.0.1", "127.0.0.1:80", "203.0.113.{}", "203.0.113.{}, 127.0.0.1", "client {}"]
ONE_PROXY = ["client {}", "unknown", "203.0.113.{},", "203.0.113.999{}"]


@pytest.mark.parametrize(
    ("server_name", "proxies", "forwarded"),
    [
        ("daphne", 0, ZERO_PROXIES),
        ("uvicorn", 0, ZERO_PROXIES),
        ("granian", 0, ZERO_PROXIES),
        ("daphne", 1, ONE_PROXY),
    ],
)
async def test_no_header_turns_the_rate_of_an_address_off(
    serve: Serve, server_name: str, proxies: int, forwarded: list[str]
) -> None:
    rated = {"address_connection_rate": f"1/h burst {BURST}", "trusted_proxies": proxies}
    server = serve(server=server_name, **FULL | rated | {"client_connection_limit": 0})
    doors = [*(("GET", path) for path in SOCKETS), *STREAMS, ("GET", EVENTS)]
    taken = 0

    for turn, header in enumerate(forwarded):
        for number, (method, path) in enumerate(doors[turn:] + doors[:turn]):
            path = path.replace("/000/", f"/000/{turn}")  # a session of SockJS for each
            taken += await is_taken(server, method, path, header.format(number))

    # at most: the rate of the peer's address, and that of unknown ones
    assert 0 < taken <= 2 * BURST
