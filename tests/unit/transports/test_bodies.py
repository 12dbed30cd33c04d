"""The body of a request has to come in time, and all that have come in part hold so much."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from realtime.node.node import Node
from realtime.transports import api
from realtime.transports.asgi import Exchange
from realtime.transports.bodies import BODY_RATE, BODY_TIMEOUT, HELD_MAX_BYTES, Incoming
from realtime.transports.sockjs.application import SockJS
from realtime.transports.streaming.application import Streaming
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.emulation.parts import open_node

API_KEY = "the key"
OPTIONS: Mapping[str, Any] = {
    **dict.fromkeys(("http_stream", "sse", "uni_http_stream", "uni_sse"), True),
    "api_key": API_KEY,
}
STREAMS = (
    "/connection/http_stream",
    "/connection/sse",
    "/connection/uni_http_stream",
    "/connection/uni_sse",
)
SENDS = ("/emulation", "/connection/sockjs/0/s/xhr_send", "/connection/sockjs/0/s/jsonp_send")
API = ("/api", "/api/publish")
HALF = 60_000


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    async with open_node(clock, **OPTIONS) as opened:
        yield opened


class Half:
    """A request whose body comes in parts."""

    def __init__(self, node: Node, path: str) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [
                (b"transfer-encoding", b"chunked"),
                (b"authorization", b"apikey " + API_KEY.encode()),
                (b"x-api-key", API_KEY.encode()),
            ],
        }
        self.task = asyncio.create_task(self._serve(node, path, scope))

    async def _serve(self, node: Node, path: str, scope: dict[str, Any]) -> None:
        exchange = Exchange(scope, self._arriving.get, self._send)
        if (method := api.method_of(path, "/api")) is not None:
            await api.serve(node, method, exchange, None)
        else:
            serve = SockJS(None) if "/sockjs/" in path else Streaming()
            await serve(node, scope, self._arriving.get, self._send)

    async def _send(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = dict(event["headers"])

    async def part(self, size: int) -> None:
        self._arriving.put_nowait({"type": "http.request", "body": b" " * size, "more_body": True})
        await turns()

    async def leave(self) -> None:
        self._arriving.put_nowait({"type": "http.disconnect"})
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.mark.parametrize("path", [*STREAMS, *SENDS, *API])
async def test_body_that_does_not_come_is_answered_and_the_connection_closed(
    clock: Clock, node: Node, path: str
) -> None:
    request = Half(node, path)
    await request.part(1)
    await clock.advance(BODY_TIMEOUT - 1)
    await request.part(1)
    assert not request.task.done()

    await clock.advance(2)

    await eventually(request.task.done)
    assert (request.status, request.headers[b"connection"]) == (408, b"close")
    assert (node.admission.arriving, Incoming.held_bytes) == (0, 0)


async def test_body_gets_time_for_what_has_come(clock: Clock, node: Node) -> None:
    request = Half(node, STREAMS[0])
    await request.part(2 * BODY_RATE)
    await clock.advance(BODY_TIMEOUT + 1)
    assert not request.task.done()
    await clock.advance(1)
    await eventually(request.task.done)
    assert request.status == 408


@pytest.mark.parametrize("path", STREAMS)
async def test_connection_is_refused_before_its_body_comes(clock: Clock, path: str) -> None:
    """What comes in part counts as a connection."""
    async with open_node(clock, **OPTIONS, client_connection_limit=2) as node:
        taken = [Half(node, path) for _ in range(2)]
        await turns()

        refused = Half(node, path)

        await eventually(refused.task.done)
        assert (refused.status, refused.headers[b"connection"]) == (503, b"close")
        assert 5 <= int(refused.headers[b"retry-after"]) <= 20
        await taken.pop().leave()
        again = Half(node, path)
        await turns()
        assert not again.task.done()
        for request in (*taken, again):
            await request.leave()


@pytest.mark.parametrize("path", [*STREAMS, *SENDS])
async def test_bodies_in_parts_hold_no_more_than_the_bound(node: Node, path: str) -> None:
    path = path.replace("/s/", f"/{uuid.uuid4().hex}/")
    waiting = [Half(node, path) for _ in range(HELD_MAX_BYTES // HALF)]
    for request in waiting:
        await request.part(HALF)
    trusted = Half(node, "/api")
    await trusted.part(HALF)

    one_more = Half(node, path)
    await one_more.part(HALF)

    await eventually(one_more.task.done)
    assert (one_more.status, one_more.headers[b"connection"]) == (503, b"close")
    assert not any(request.task.done() for request in (*waiting, trusted))
    for request in (*waiting, trusted):
        await request.leave()
    assert (node.admission.arriving, Incoming.held_bytes) == (0, 0)


@pytest.mark.parametrize("path", [*STREAMS, *SENDS])
async def test_largest_body_makes_room_for_smaller_ones(node: Node, path: str) -> None:
    """A few strangers who keep large bodies open do not keep others from sending."""
    path = path.replace("/s/", f"/{uuid.uuid4().hex}/")
    share = HELD_MAX_BYTES // 8 - 1
    strangers = [Half(node, SENDS[1]) for _ in range(7)]
    for stranger in strangers:
        await stranger.part(share)
    largest = Half(node, SENDS[1])
    await largest.part(HELD_MAX_BYTES - 7 * share)
    small = Half(node, path)

    await small.part(HALF // 2)
    await small.part(HALF // 2)

    await eventually(largest.task.done)
    assert (largest.status, largest.headers[b"connection"]) == (503, b"close")
    assert not any(request.task.done() for request in (*strangers, small))
    for request in (*strangers, small):
        await request.leave()
    assert (node.admission.arriving, Incoming.held_bytes) == (0, 0)
