"""Requests under daphne: what the application gets of bodies, and when; how daphne stops."""

from __future__ import annotations

import asyncio
import hashlib
import random
import types
from collections.abc import Callable
from typing import Any

import pytest
from daphne.http_protocol import HTTPFactory
from daphne.server import Server
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure

from realtime.server_api import http
from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.bodies import (
    BODY_RATE,
    BODY_TIMEOUT,
    HELD_MAX_BYTES,
    ExpectedBody,
    Incoming,
)
from realtime.transports.servers import daphne_install
from realtime.transports.servers.daphne_body import CHUNK_BYTES
from realtime.transports.servers.daphne_request import LINGER_TIMEOUT, GuardedRequest


class Site:
    """An application that reads a body as it is allowed to."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.may_read = asyncio.Event()
        self.ended = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.may_read.wait()
        while True:
            event = await receive()
            if event["type"] == "http.request":
                self.parts.append(event["body"])
                if event["more_body"]:
                    continue
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"done"})
            self.ended.set_result(event["type"])
            return


class Connection:
    """A connection to daphne, with our request."""

    def __init__(self, site: Site) -> None:
        self.clock = MemoryReactorClock()
        self._server = Server(application=site, endpoints=["never opened"])
        self._server.connections = {}
        factory = HTTPFactory(self._server)
        factory.reactor = self.clock
        self.protocol = factory.buildProtocol(None)
        self.protocol.requestFactory = GuardedRequest
        self.transport = StringTransport()
        self.protocol.makeConnection(self.transport)

    @property
    def written(self) -> bytes:
        value: bytes = self.transport.value()
        return value

    def is_closing(self) -> bool:
        return bool(self.transport.disconnecting)

    def post(self, body: bytes, *, chunked: bool = False, announced: int | None = None) -> None:
        length = len(body) if announced is None else announced
        head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % length
        self.protocol.dataReceived(b"POST / HTTP/1.1\r\nHost: site\r\n" + head + b"\r\n\r\n")
        if chunked:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        self.protocol.dataReceived(body)

    def lose(self) -> None:
        self.protocol.connectionLost(Failure(ConnectionDone()))


@pytest.fixture
async def site() -> Site:
    return Site()


@pytest.fixture
def connection(site: Site) -> Connection:
    return Connection(site)


@pytest.fixture
def expect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Expect a body: `expect(refusal, limit, incoming, admission)`."""

    def expect(*expected: Any) -> None:
        rule = staticmethod(lambda scope: ExpectedBody(*expected))
        monkeypatch.setattr(GuardedRequest, "rule", rule)

    return expect


Expect = Callable[..., None]
LARGE = 6 * CHUNK_BYTES


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, LARGE - 1, LARGE, LARGE + 1])
@pytest.mark.parametrize("chunked", [False, True])
async def test_application_gets_the_body_as_it_was_sent(
    connection: Connection, site: Site, size: int, chunked: bool
) -> None:
    body = random.Random(size).randbytes(size)
    site.may_read.set()
    connection.post(body, chunked=chunked)
    async with asyncio.timeout(5):
        assert await site.ended == "http.request"
    assert hashlib.sha256(b"".join(site.parts)).digest() == hashlib.sha256(body).digest()
    assert max(map(len, site.parts)) <= CHUNK_BYTES
    assert connection.written.startswith(b"HTTP/1.1 200 ")


async def test_large_body_waits_in_its_file_until_the_application_reads(
    connection: Connection, site: Site
) -> None:
    connection.post(bytes(LARGE))
    (request,) = connection.protocol._channel.requests
    assert request.application_queue.qsize() == 1
    connection.lose()


async def test_application_hears_of_a_peer_that_goes_while_the_body_is_read(
    connection: Connection, site: Site
) -> None:
    connection.post(bytes(LARGE))
    connection.lose()
    site.may_read.set()
    async with asyncio.timeout(5):
        assert await site.ended == "http.disconnect"


@pytest.mark.parametrize(
    ("refusal", "limit"), [(http.UNAUTHORIZED, None), (None, 10)], ids=["by its head", "too large"]
)
async def test_what_is_refused_is_dropped_for_a_while_and_then_cut_off(
    connection: Connection, expect: Expect, refusal: http.Response | None, limit: int | None
) -> None:
    expect(refusal, limit)
    connection.post(bytes(LARGE), announced=10 * LARGE)
    (request,) = connection.protocol._channel.requests

    assert request.content.getvalue() == b""
    assert connection.written.endswith(b"\r\n\r\n")
    assert not connection.is_closing()

    connection.clock.advance(LINGER_TIMEOUT)

    assert connection.is_closing()
    connection.lose()


async def test_body_that_comes_too_slowly_is_refused(
    connection: Connection, expect: Expect
) -> None:
    admission: Any = types.SimpleNamespace(arriving=0)
    expect(None, None, Incoming(), admission)
    connection.post(bytes(BODY_RATE), announced=LARGE)
    assert (admission.arriving, Incoming.held_bytes) == (1, BODY_RATE)

    connection.clock.advance(BODY_TIMEOUT)
    assert connection.written == b""
    connection.clock.advance(1)

    assert connection.written.startswith(b"HTTP/1.1 408 ")
    assert (admission.arriving, Incoming.held_bytes) == (0, 0)
    connection.clock.advance(LINGER_TIMEOUT)
    assert connection.is_closing()
    connection.lose()
    assert not connection.clock.getDelayedCalls()


@pytest.mark.parametrize("end", ["comes", "is lost"])
async def test_body_that_has_ended_is_counted_no_more(
    connection: Connection, expect: Expect, end: str
) -> None:
    admission: Any = types.SimpleNamespace(arriving=0)
    expect(None, None, Incoming(), admission)
    connection.post(b"a", announced=2)
    assert (admission.arriving, Incoming.held_bytes) == (1, 1)

    if end == "comes":
        connection.protocol.dataReceived(b"b")
    else:
        connection.lose()

    assert (admission.arriving, Incoming.held_bytes) == (0, 0)
    connection.clock.advance(2 * BODY_TIMEOUT)
    assert b" 408 " not in connection.written


async def test_body_makes_room_for_a_smaller_one(connection: Connection, expect: Expect) -> None:
    expect(None, None, Incoming())
    connection.post(bytes(LARGE), announced=HELD_MAX_BYTES)
    refused: list[int] = []
    others = [Incoming() for _ in range(HELD_MAX_BYTES // LARGE)]

    for each in others:
        assert each.take(LARGE - 1, lambda: refused.append(1), is_last=False)

    assert connection.written.startswith(b"HTTP/1.1 503 ")
    assert not refused
    for each in others:
        each.end()
    assert Incoming.held_bytes == 0
    connection.lose()


async def test_refused_connection_takes_no_further_request(
    connection: Connection, expect: Expect
) -> None:
    expect(http.TOO_LARGE, None)
    connection.post(b"a")
    assert connection.is_closing()
    before = connection.written
    connection.post(b"b")
    connection.lose()
    assert connection.written == before
    assert not connection.clock.getDelayedCalls()


async def test_application_of_a_connection_that_is_just_opening_begins_before_it_is_cancelled() -> (
    None
):
    steps: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        steps.append((await receive())["type"])
        try:
            await receive()
        except asyncio.CancelledError:
            steps.append("cancelled")

    server: Any = Server(application, endpoints=["never opened"])
    server.connections = {}
    connection = object()
    server.protocol_connected(connection)
    server.create_application(connection, {"type": "websocket"}).put_nowait(
        {"type": "websocket.connect"}
    )

    killing: Any = daphne_install.stop_before(Server.kill_all_applications)(server)
    await killing.asFuture(asyncio.get_running_loop())

    assert steps == ["websocket.connect", "cancelled"]
