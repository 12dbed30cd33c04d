"""Frames written past daphne's own path: when the socket itself is tried, and when not."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from daphne.ws_protocol import WebSocketProtocol

from realtime.transports.servers import daphne
from realtime.transports.servers.daphne_protocol import AdvisingProtocol

LARGE = bytes(4_000_000)


class Transport:
    """A connection with the parts of Twisted's that matter, around a real socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.dataBuffer = b""
        self.offset = 0
        self._tempDataBuffer: list[bytes] = []
        self._tempDataLen = 0
        self.connected = True
        self.disconnecting = False

    def write(self, data: bytes) -> None:
        self._tempDataBuffer.append(data)
        self._tempDataLen += len(data)

    @property
    def buffered(self) -> bytes:
        return self.dataBuffer + b"".join(self._tempDataBuffer)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    yield ours, peer
    ours.close()
    peer.close()


@pytest.fixture
def transport(ends: tuple[socket.socket, socket.socket]) -> Transport:
    return Transport(ends[0])


@pytest.fixture
def protocol(transport: Transport) -> AdvisingProtocol:
    """An open connection, as it is after daphne's handshake."""
    protocol = AdvisingProtocol.__new__(AdvisingProtocol)
    protocol.transport = transport
    protocol.state = AdvisingProtocol.STATE_OPEN
    protocol.send_state = AdvisingProtocol.SEND_STATE_GROUND
    protocol.send_queue = deque()
    protocol._writes_frames = True
    protocol._writes_to_socket = True
    return protocol


def received(peer: socket.socket) -> bytes:
    data = b""
    try:
        while part := peer.recv(1 << 20):
            data += part
    except BlockingIOError:
        pass
    return data


def test_idle_socket_takes_the_frame_at_once(
    protocol: AdvisingProtocol, transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    assert protocol.write_frame(b"frame") == 0

    assert received(ends[1]) == b"frame"
    assert transport.buffered == b""


def test_what_the_socket_does_not_take_is_buffered(
    protocol: AdvisingProtocol, transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    frame = b"begin" + LARGE + b"end"

    backlog = protocol.write_frame(frame)

    assert backlog == len(transport.buffered) > 0
    assert received(ends[1]) + transport.buffered == frame


@pytest.mark.parametrize("attribute", ["dataBuffer", "_tempDataBuffer"])
def test_frame_goes_behind_what_is_buffered(
    protocol: AdvisingProtocol,
    transport: Transport,
    ends: tuple[socket.socket, socket.socket],
    attribute: str,
) -> None:
    setattr(transport, attribute, b"earlier " if attribute == "dataBuffer" else [b"earlier "])

    protocol.write_frame(b"frame")

    assert received(ends[1]) == b""
    assert transport.buffered == b"earlier frame"


@pytest.mark.parametrize("state", ["disconnecting", "not connected", "socket closed", "TLS"])
def test_socket_is_left_to_the_transport(
    protocol: AdvisingProtocol,
    transport: Transport,
    ends: tuple[socket.socket, socket.socket],
    state: str,
) -> None:
    match state:
        case "disconnecting":
            transport.disconnecting = True
        case "not connected":
            transport.connected = False
        case "socket closed":
            ends[0].close()
        case "TLS":
            protocol._writes_to_socket = False

    assert protocol.write_frame(b"frame") is not None

    assert received(ends[1]) == b""
    assert transport.buffered == b"frame"


@pytest.mark.parametrize(
    "moment", ["closing handshake", "closed", "message being streamed", "chopped send", "unknown"]
)
def test_nothing_is_written_at_the_wrong_moment(
    protocol: AdvisingProtocol,
    transport: Transport,
    ends: tuple[socket.socket, socket.socket],
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
        case "unknown":
            protocol._writes_frames = False

    assert protocol.write_frame(b"frame") is None

    assert received(ends[1]) == b""
    assert transport.buffered == b""


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
    ends: tuple[socket.socket, socket.socket],
    message: dict[str, Any],
    wire: bytes,
) -> None:
    protocol.handle_reply(message)

    assert received(ends[1]) == wire


@pytest.mark.parametrize(
    ("configured", "own_limit", "expected"),
    [
        (65_536, 1_048_576, 1_048_576),
        (3_000_000, 1_048_576, 3_000_001),
        (None, 1_048_576, 0),
        (3_000_000, 0, 0),
    ],
    ids=["below daphne's", "above daphne's", "no limit", "daphne has none"],
)
def test_larger_messages_are_accepted_where_the_option_says_so(
    protocol: AdvisingProtocol, configured: int | None, own_limit: int, expected: int
) -> None:
    protocol.maxMessagePayloadSize = protocol.maxFramePayloadSize = own_limit

    protocol.accept_messages(configured)

    assert (protocol.maxMessagePayloadSize, protocol.maxFramePayloadSize) == (expected, expected)


@pytest.mark.parametrize("name", ["handle_reply", "sendCloseFrame", "STATE_OPEN"])
def test_daphne_that_lacks_something_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lacking = type("WebSocketProtocol", (), {n: None for n in dir(WebSocketProtocol) if n != name})
    monkeypatch.setattr("daphne.ws_protocol.WebSocketProtocol", lacking)

    assert name in (daphne.problem() or "")
    assert not daphne.install()
