"""Plain requests of the server API under daphne: run at once, answered in order."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.protocols.basic import LineReceiver

from realtime.transports.asgi import Event, Receive, Scope, Send
from realtime.transports.servers import daphne_api, daphne_channel
from realtime.transports.servers.plain import HEADERS_MAX, plain_post
from tests.unit.parts import eventually
from tests.unit.transports.daphne_connections import DaphneConnection, DaphneServer

POST = (
    b"POST /api?a=b HTTP/1.1\r\nHost: localhost:80\r\nAuthorization: apikey k\r\n"
    b"Accept: */*\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody"
)

PIECES = st.sampled_from(
    (
        *(b"\r\n", b"\n", b" ", b":", b"\x00", b"\xe9", b"%", b"", b"0", b"+1", b"4, 4"),
        *(b"Host: a\r\n", b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n", b"close"),
    )
)


@given(st.lists(st.tuples(st.integers(0, len(POST)), st.integers(0, 3), PIECES), max_size=3))
def test_requests_are_read_as_h11_reads_them(changes: list[tuple[int, int, bytes]]) -> None:
    data = POST
    for position, removed, piece in changes:
        data = data[:position] + piece + data[position + removed :]
    post = plain_post(data)
    if post is None:
        return  # left to the server

    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    request = connection.next_event()
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data

    assert isinstance(request, h11.Request)
    assert isinstance(event, h11.EndOfMessage)
    assert (request.method, connection.trailing_data[0], body) == (b"POST", b"", post.body)
    query = b"?" + post.query if post.query else b""
    assert request.target.removesuffix(b"?") == post.path.encode() + query
    assert list(request.headers) == list(post.headers.items())


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        (b"POST", b"GET"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"keep-alive", b"close"),
        (b"keep-alive", b"Upgrade"),
        (b"Length: 4", b"Length: 3"),
        (b"Length: 4", b"Length: 5"),
        (b"Length: 4", b"Length: +4"),
        (b"Length: 4", b"Length: 04"),
        (b"Content-Length: 4\r\n", b""),
        (b"Accept: */*", b"Transfer-Encoding: chunked"),
        (b"Accept: */*", b"Expect: 100-continue"),
        (b"Accept: */*", b"Content-Length: 4"),
        (b"Host: localhost:80", b"Host: a@b"),
        (b"Accept: ", b"".join(b"A%d: b\r\n" % n for n in range(HEADERS_MAX)) + b"B: "),
    ],
)
def test_any_other_request_is_left_to_the_server(what: bytes, instead: bytes) -> None:
    assert what in POST
    assert plain_post(POST.replace(what, instead, 1)) is None


IDLE = 60
"""Twisted's time-out between requests, seconds."""


class Site:
    """An application that answers when a test says so."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.events: list[Event] = []
        self.answers: asyncio.Queue[list[Event]] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        self.events.append(await receive())
        for event in await self.answers.get():
            await send(event)
        self.events.append(await receive())

    def answer(self, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.answers.put_nowait(
            [
                {"type": "http.response.start", "status": 200, "headers": headers},
                {"type": "http.response.body", "body": body[:1], "more_body": True},
                {"type": "http.response.body", "body": body[1:]},
            ]
        )


@pytest.fixture
async def site() -> Site:
    return Site()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, site: Site) -> DaphneServer:
    answers = daphne_api.answerer(lambda path: path == "/api")
    monkeypatch.setattr(daphne_channel.TimedChannel, "answers", staticmethod(answers))
    server = DaphneServer()
    server.application = site
    return server


@pytest.fixture
def connection(server: DaphneServer) -> Iterator[DaphneConnection]:
    connection = DaphneConnection(server)
    yield connection
    connection.peer.close()
    connection.transport.socket.close()


async def test_application_gets_the_request_and_client_the_response(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    await eventually(lambda: bool(site.events))
    [running] = server.connections.values()
    site.answer(b"answer", ((b"content-type", b"text/plain"),))
    await running["application_instance"]

    [scope] = site.scopes
    assert (scope["path"], scope["query_string"], scope["scheme"]) == ("/api", b"a=b", "http")
    assert scope["client"] == list(connection.peer.getsockname())
    assert site.events == [
        {"type": "http.request", "body": b"body", "more_body": False},
        {"type": "http.disconnect"},
    ]
    assert connection.received() == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n"
        b"Server: daphne\r\n\r\nanswer"
    )
    assert server.connections == {}


async def test_connection_stays_as_long_as_after_other_requests(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    site.answer(b"answer")
    await eventually(lambda: not server.connections)
    server.reactor.pump([1] * (IDLE - 1))
    assert not connection.transport.disconnecting
    server.reactor.advance(1)
    assert connection.transport.disconnecting


async def test_request_waits_for_the_response_to_the_one_before(
    connection: DaphneConnection, site: Site
) -> None:
    connection.send(POST)
    connection.send(POST)
    await eventually(lambda: bool(site.scopes))
    assert len(site.scopes) == 1

    site.answer(b"first")
    await eventually(lambda: len(site.scopes) == 2)
    assert b"first" in connection.received()

    site.answer(b"second")
    await eventually(lambda: len(site.events) == 4)
    assert b"second" in connection.received()


async def test_requests_behind_it_that_are_not_plain_are_read_by_twisted(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    connection.send(POST.replace(b"/api", b"/site") + POST)
    await eventually(lambda: bool(site.scopes))
    site.answer(b"first")
    await eventually(lambda: bool(server.scopes))
    assert [scope["path"] for scope in server.scopes] == ["/site"]


async def test_requests_of_a_peer_that_reads_no_responses_are_left_to_twisted(
    connection: DaphneConnection, server: DaphneServer
) -> None:
    connection.transport.dataBuffer = b"unread"
    connection.send(POST)
    assert server.connections == {}


async def test_application_hears_that_the_peer_has_gone_and_daphne_that_it_goes_on(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    await eventually(lambda: bool(site.events))
    [running] = server.connections.values()
    assert "disconnected" not in running
    connection.transport.protocol._channel.connectionLost(None)
    assert "disconnected" in running  # then daphne ends it, if it takes too long
    site.answer(b"answer")
    await eventually(lambda: len(site.events) == 2)
    assert site.events[1] == {"type": "http.disconnect"}
    await eventually(lambda: not server.connections)


async def test_lost_request_leaves_nothing_to_the_garbage_collector(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    await eventually(lambda: bool(site.events))
    [request] = map(weakref.ref, server.connections)
    gc.disable()
    try:
        connection.transport.protocol.connectionLost(None)
        connection.transport.protocol = connection.transport.producer = None  # as Twisted does
        site.answer(b"answer")
        await eventually(lambda: not server.connections)

        await eventually(lambda: request() is None)
    finally:
        gc.enable()


async def test_response_has_what_daphne_s_would_have(
    connection: DaphneConnection, site: Site, server: DaphneServer
) -> None:
    connection.send(POST)
    site.answers.put_nowait(
        [
            {"type": "http.response.start", "status": 204, "headers": [(b"Server", b"site")]},
            {"type": "http.response.body", "body": b"no such"},
        ]
    )
    await eventually(lambda: not server.connections)

    assert connection.received() == b"HTTP/1.1 204 No Content\r\nServer: site\r\n\r\n"


@pytest.mark.parametrize("failure", ["raises", "ends", "line break"])
async def test_failed_application_is_a_500(
    connection: DaphneConnection, server: DaphneServer, site: Site, failure: str
) -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        if failure == "raises":
            raise ValueError
        if failure == "line break":
            headers = [(b"a", b"b\r\nc: d")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body"})

    server.application = fail
    connection.send(POST)
    await eventually(lambda: not server.connections)

    assert connection.received().startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize(
    ("what", "instead"),
    [(b"/api", b"/site"), (b"Accept: */*", b"Daphne-Root-Path: /a"), (b"POST /", b"\r\nPOST /")],
    ids=["of the site", "with a root path", "behind a line break"],
)
async def test_only_plain_requests_of_the_api_are_answered_at_once(
    connection: DaphneConnection, server: DaphneServer, what: bytes, instead: bytes
) -> None:
    connection.send(POST.replace(what, instead))
    assert server.connections == {}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("proxy_forwarded_address_header", "X-Forwarded-For"),
        ("action_logger", print),
        ("http_timeout", 1),
        ("root_path", "/a"),
    ],
)
async def test_options_of_daphne_that_concern_requests_leave_them_to_it(
    connection: DaphneConnection, server: DaphneServer, option: str, value: Any
) -> None:
    setattr(server, option, value)
    connection.send(POST)
    assert server.connections == {}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (DaphneServer, "action_logger"),
        (DaphneServer, "http_timeout"),
        (DaphneServer, "proxy_forwarded_address_header"),
        (DaphneServer, "server_name"),
        (LineReceiver, "_buffer"),
        (LineReceiver, "_busyReceiving"),
    ],
)
async def test_version_without_a_name_that_is_needed_gets_the_requests_itself(
    connection: DaphneConnection,
    server: DaphneServer,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Any],
    name: str,
) -> None:
    monkeypatch.delattr(kind, name)
    monkeypatch.setattr(daphne_channel, "_receive_lines", lambda channel, data: None)
    connection.send(POST)
    assert server.connections == {}
