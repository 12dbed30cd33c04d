"""Frames written past daphne's own path: when the socket itself is tried, and when not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from unittest.mock import AsyncMock

import pytest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.tcp import Server
from twisted.internet.testing import MemoryReactorClock, StringTransport

from realtime.asgi import application
from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.servers import daphne
from realtime.transports.servers.daphne_protocol import AdvisingProtocol
from tests.unit.transports.client_frames import HEAD
from tests.unit.transports.daphne_connections import DaphneServer

LARGE = bytes(4_000_000)


def make_factory(**options: Any) -> WebSocketFactory:
    """A factory of daphne, with the protocol of the service."""
    factory = DaphneServer().ws_factory
    factory.setProtocolOptions(**options)
    return factory


def open_connection(factory: WebSocketFactory, transport: Any) -> AdvisingProtocol:
    """A connection after daphne's handshake."""
    protocol = factory.buildProtocol(None)
    assert isinstance(protocol, AdvisingProtocol)
    protocol._raw_query_string = b""
    transport.protocol = protocol
    protocol.makeConnection(transport)
    protocol.dataReceived(HEAD)
    protocol.serverAccept()
    assert protocol.state == protocol.STATE_OPEN
    return protocol


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # fixed sizes: the kernel lets buffers of its own choice grow above LARGE
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        peer.connect(listener.getsockname())
        ours, _ = listener.accept()
    ours.setblocking(False)
    yield ours, peer
    ours.close()
    peer.close()


@pytest.fixture
def transport(ends: tuple[socket.socket, socket.socket]) -> Server:
    """Twisted's transport of one connection."""
    address = ends[0].getpeername()
    make: Any = Server  # neither port nor protocol yet
    transport: Server = make(ends[0], None, address, None, 1, MemoryReactorClock())
    return transport


@pytest.fixture
def protocol(transport: Server, ends: tuple[socket.socket, socket.socket]) -> AdvisingProtocol:
    protocol = open_connection(make_factory(), transport)
    transport.doWrite()  # the response to the handshake
    assert b" 101 " in ends[1].recv(1000)
    ends[1].setblocking(False)
    return protocol


def buffered(transport: Server) -> bytes:
    """What the transport has not given to the socket."""
    waiting: bytes = transport.dataBuffer[transport.offset :] + b"".join(transport._tempDataBuffer)
    return waiting


def received(peer: socket.socket) -> bytes:
    data = b""
    try:
        while part := peer.recv(1 << 20):
            data += part
    except BlockingIOError:
        pass
    return data


Ends = tuple[socket.socket, socket.socket]


def test_idle_socket_takes_the_frame_at_once(
    protocol: AdvisingProtocol, transport: Server, ends: Ends
) -> None:
    assert protocol.write_frame(b"frame") == 0
    assert (received(ends[1]), buffered(transport)) == (b"frame", b"")


def test_what_the_socket_does_not_take_is_buffered(
    protocol: AdvisingProtocol, transport: Server, ends: Ends
) -> None:
    frame = b"begin" + LARGE + b"end"
    assert protocol.write_frame(frame) == len(buffered(transport)) > 0
    assert received(ends[1]) + buffered(transport) == frame


@pytest.mark.parametrize("earlier", [b"earlier ", LARGE], ids=["buffered", "being written"])
def test_frame_goes_behind_what_the_transport_has(
    protocol: AdvisingProtocol, transport: Server, ends: Ends, earlier: bytes
) -> None:
    transport.write(earlier)
    if earlier is LARGE:
        transport.doWrite()
        assert transport.dataBuffer
        assert not transport._tempDataBuffer
    assert protocol.write_frame(b"frame") == len(buffered(transport)) > len(b"frame")
    assert received(ends[1]) + buffered(transport) == earlier + b"frame"
    assert buffered(transport).endswith(b"frame" if earlier is LARGE else b"earlier frame")


@pytest.mark.parametrize("state", ["disconnecting", "not connected", "socket closed"])
def test_socket_is_left_to_the_transport(
    protocol: AdvisingProtocol,
    transport: Server,
    ends: Ends,
    state: str,
) -> None:
    match state:
        case "disconnecting":
            transport.disconnecting = True
        case "not connected":
            transport.connected = False
        case "socket closed":
            ends[0].close()

    assert protocol.write_frame(b"frame") is not None

    assert received(ends[1]) == b""
    assert buffered(transport) == (b"" if state == "not connected" else b"frame")


def test_transport_that_is_no_plain_socket_is_written_to() -> None:
    transport = StringTransport()
    protocol = open_connection(make_factory(), transport)
    transport.clear()
    assert protocol.write_frame(b"frame") is not None
    assert transport.value() == b"frame"


def test_frames_are_left_to_autobahn_where_it_masks_them(transport: Server) -> None:
    protocol = open_connection(make_factory(maskServerFrames=True), transport)
    assert protocol.write_frame(b"frame") is None


@pytest.mark.parametrize(
    "moment", ["closing handshake", "closed", "message being streamed", "chopped send"]
)
def test_nothing_is_written_at_the_wrong_moment(
    protocol: AdvisingProtocol,
    transport: Server,
    ends: Ends,
    moment: str,
) -> None:
    match moment:
        case "closing handshake":
            protocol.state = AdvisingProtocol.STATE_CLOSING
        case "closed":
            protocol.state = AdvisingProtocol.STATE_CLOSED
        case "message being streamed":
            protocol.send_state = AdvisingProtocol.SEND_STATE_MESSAGE_BEGIN
        case "chopped send":
            protocol.send_queue.append((b"part", True))

    assert protocol.write_frame(b"frame") is None

    assert received(ends[1]) == b""
    assert buffered(transport) == b""


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        ({"type": "websocket.send", "text": "é"}, b"\x81\x02\xc3\xa9"),
        ({"type": "websocket.send", "bytes": b"\x00"}, b"\x82\x01\x00"),
        ({"type": "websocket.send", "text": "a" * 126}, b"\x81\x7e\x00\x7e" + b"a" * 126),
        (
            {"type": "websocket.send", "bytes": b"a" * 65536},
            b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + b"a" * 65536,
        ),
    ],
    ids=["text", "bytes", "two bytes of length", "eight bytes of length"],
)
def test_events_of_any_application_are_framed(
    protocol: AdvisingProtocol,
    ends: Ends,
    message: dict[str, Any],
    wire: bytes,
) -> None:
    protocol.handle_reply(message)
    assert received(ends[1]) == wire


TOO_LARGE = {"type": daphne.TOO_LARGE}


def masked(data: bytes, *, first: int = 0x82, announced: int | None = None) -> bytes:
    """A frame of a client, of less than 126 bytes or announced with two bytes of length."""
    if announced is None:
        return bytes((first, 0x80 | len(data))) + bytes(4) + data
    return bytes((first, 0x80 | 126)) + announced.to_bytes(2, "big") + bytes(4) + data


def events(protocol: AdvisingProtocol) -> list[dict[str, Any]]:
    """What the application has got but for the connect event."""
    waiting = protocol.application_queue
    return [waiting.get_nowait() for _ in range(waiting.qsize())][1:]


@pytest.mark.parametrize(
    "frames",
    [
        [masked(b"", announced=1001)],
        [masked(b"a" * 100, first=0x02), masked(b"", first=0x80, announced=901)],
    ],
    ids=["one frame", "fragments"],
)
def test_message_above_the_limit_is_refused_by_its_announced_length(
    protocol: AdvisingProtocol, frames: list[bytes]
) -> None:
    protocol.limit_messages(1000, TOO_LARGE)
    for frame in frames:
        protocol.dataReceived(frame)
    assert events(protocol) == [TOO_LARGE]
    protocol.dataReceived(b"a" * 500)
    assert protocol.message_data == []
    assert not protocol.frame_data
    assert protocol.state == protocol.STATE_OPEN


@pytest.mark.parametrize("limit", [1000, 3_000_000, None])
def test_message_up_to_the_limit_is_taken(protocol: AdvisingProtocol, limit: int | None) -> None:
    protocol.maxMessagePayloadSize = protocol.maxFramePayloadSize = 500
    protocol.limit_messages(limit, TOO_LARGE)
    protocol.dataReceived(masked(b"a" * 1000, announced=1000))
    assert events(protocol) == [{"type": "websocket.receive", "bytes": b"a" * 1000}]


def test_limit_of_messages_is_not_one_for_what_is_sent(
    protocol: AdvisingProtocol, ends: tuple[socket.socket, socket.socket]
) -> None:
    protocol.limit_messages(1000, TOO_LARGE)
    protocol.sendMessage(b"a" * 2000, True)
    protocol.transport.doWrite()
    assert received(ends[1]).endswith(b"a" * 2000)


@pytest.mark.parametrize(
    "name", ["handle_reply", "sendCloseFrame", "STATE_OPEN", "_max_message_size_exceeded"]
)
def test_daphne_that_lacks_something_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lacking = type("WebSocketProtocol", (), {n: None for n in dir(WebSocketProtocol) if n != name})
    monkeypatch.setattr("daphne.ws_protocol.WebSocketProtocol", lacking)
    assert name in (daphne.problem() or "")
    assert not daphne.install()


async def test_daphne_that_lacks_something_names_no_root_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("daphne.http_protocol.WebRequest", object)
    scopes = []

    async def site(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)

    # a type of scope that only the site knows
    scope = {"type": "other", "path": "/static/api", "root_path": "/static"}
    await application(site)(scope, AsyncMock(), AsyncMock())

    assert scopes == [{**scope, "root_path": ""}]


# the options of factories


def test_connection_has_the_options_of_its_factory() -> None:
    factories = [make_factory(autoPingInterval=seconds) for seconds in (7, 8)]
    protocols = [
        open_connection(factory, StringTransport()) for factory in (*factories, *factories)
    ]
    assert [protocol.autoPingInterval for protocol in protocols] == [7, 8, 7, 8]
    assert not any("autoPingInterval" in vars(protocol) for protocol in protocols)
    assert type(protocols[0]) is type(protocols[2])
    assert "autoPingInterval" not in vars(AdvisingProtocol)


def test_option_that_is_a_function_is_no_method() -> None:
    factory = make_factory(perMessageCompressionAccept=lambda offers: offers)
    protocol = open_connection(factory, StringTransport())
    assert protocol.perMessageCompressionAccept("offers") == "offers"
