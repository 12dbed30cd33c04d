"""Handshakes and messages of the usual form: read as the package websockets reads them, or not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from realtime.transports.servers.plain import (
    HEAD_MAX_BYTES,
    HEADERS_MAX,
    are_frames,
    plain_events,
    plain_handshake,
)
from tests.unit.transports.client_frames import client_frame

LIMIT = 1000

HEAD = (
    b"GET /connection/websocket?format=protobuf HTTP/1.1\r\n"
    b"Host: example.org:8000\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
    b"Connection: keep-alive, Upgrade\r\n"
    b"Upgrade: websocket\r\n"
    b"Origin: https://example.org\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Protocol: centrifuge-protobuf\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
    b"\r\n"
)


def test_handshake_of_a_browser_is_plain() -> None:
    handshake = plain_handshake(HEAD)
    assert handshake is not None
    assert (handshake.path, handshake.query) == ("/connection/websocket", b"format=protobuf")
    assert list(handshake.headers)[:3] == [b"host", b"user-agent", b"connection"]
    assert handshake.subprotocols == ["centrifuge-protobuf"]
    assert handshake.accept == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        (b"GET", b"POST"),
        (b"GET", b"get"),
        (b" HTTP/1.1", b" HTTP/1.0"),
        (b"/connection/websocket", b"http://example.org/connection/websocket"),
        (b"/connection/websocket", b"/connection%2fwebsocket"),
        (b"format=protobuf", b"a#b"),
        (b"Host: example.org:8000\r\n", b""),
        (b"example.org:8000", b"example.org:65536"),
        (b"example.org:8000", b"example.org:99999"),
        (b"example.org:8000", b"example.org:x"),
        (b"keep-alive, Upgrade", b"close"),
        (b"Upgrade: websocket", b"Upgrade: h2c, websocket"),
        (b"Version: 13", b"Version: 8"),
        (b"Version: 13", b"Version: 13, 8"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhlIHNhbXBsZSBub25jZQ="),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"dGhlIHNhbXBsZSBub25j*Q=="),
        (b"https://example.org\r\n", b"example.org\r\n"),
        (b"https://example.org\r\n", b"https://example.org:x\r\n"),
        (b"centrifuge-protobuf", b"a, a"),
        (b"permessage-deflate", b"permessage-deflate;;"),
        (b"client_max_window_bits", b"server_max_window_bits"),  # which needs a value
        (b"client_max_window_bits", b"client_max_window_bits; client_max_window_bits"),
        (b"Mozilla/5.0", b"Mozilla\x00"),
        (b"Mozilla/5.0", b"Mozilla\xff"),
        (b"Mozilla/5.0", b"Mozilla\r\n folded"),
        (b"Mozilla/5.0", b"Mozilla\nX: y"),
        (b"User-Agent: ", b"User-Agent : "),
        (b"User-Agent: ", b"User-Agent:"),
        (b"User-Agent: ", b"host: "),
        (b"User-Agent: ", b"Content-Length: 3\r\nA: "),
        (b"User-Agent: ", b"Transfer-Encoding: chunked\r\nA: "),
        (b"User-Agent: ", b"Expect: 100-continue\r\nA: "),
        (b"User-Agent: ", b": "),
        (b"User-Agent: ", b"A: " + bytes(1) + b"\r\nB: "),
        (b"User-Agent: ", b"A: " + b"a" * HEAD_MAX_BYTES + b"\r\nB: "),
        (b"User-Agent: ", b"".join(b"A%d: b\r\n" % n for n in range(HEADERS_MAX)) + b"B: "),
        (b"\r\n\r\n", b"\r\n"),
        (b"\r\n\r\n", b"\r\n\r\n\x81"),
        (b"\r\n", b"\n"),
    ],
)
def test_any_other_handshake_is_left_to_the_server(what: bytes, instead: bytes) -> None:
    assert what in HEAD
    assert plain_handshake(HEAD.replace(what, instead, 1)) is None


@pytest.mark.parametrize("port", [80, 9999, 59999, 60000, 64999, 65499, 65529, 65535])
def test_handshake_of_every_port_is_plain(port: int) -> None:
    place = b"example.org:%d" % port
    origin = HEAD.replace(b"Origin: https://example.org", b"Origin: https://" + place)
    assert plain_handshake(origin.replace(b"example.org:8000", place, 1)) is not None


PIECES = st.sampled_from(
    (
        *(b"\r\n", b"\n", b" ", b",", b":", b"; ", b"=", b"\x00", b"\xe9", b"%", b"#", b""),
        *(b"upgrade", b"13", b"websocket", b"Host: a\r\n", b"Content-Length: 1\r\n", b"A_b: c\r\n"),
    )
)


@given(st.lists(st.tuples(st.integers(0, len(HEAD)), st.integers(0, 3), PIECES), max_size=3))
@example([])
def test_handshakes_are_read_as_websockets_reads_them(
    changes: list[tuple[int, int, bytes]],
) -> None:
    data = HEAD
    for position, removed, piece in changes:
        data = data[:position] + piece + data[position + removed :]
    handshake = plain_handshake(data)
    if handshake is None:
        return  # left to the server

    server = ServerProtocol()
    server.receive_data(data)
    [request] = server.events_received()
    assert isinstance(request, Request)
    response = server.accept(request)

    assert response.status_code == 101
    assert response.headers["Sec-WebSocket-Accept"] == handshake.accept.decode()
    query = f"?{handshake.query.decode()}" if handshake.query else ""
    assert request.path.removesuffix("?") == handshake.path + query
    assert [(name.lower(), value) for name, value in request.headers.raw_items()] == [
        (name.decode(), value.decode()) for name, value in handshake.headers.items()
    ]


TEXTS = st.text(max_size=400)
MESSAGES = st.lists(TEXTS | st.binary(max_size=400), max_size=3)


def frames_of(messages: list[str | bytes]) -> bytes:
    """Messages as a client sends them, one frame each."""
    return b"".join(
        client_frame(0x81, message.encode())
        if isinstance(message, str)
        else client_frame(0x82, message)
        for message in messages
    )


def messages_of(data: bytes, limit: int) -> list[str | bytes] | None:
    """The messages in the events of bytes."""
    events = plain_events(data, limit)
    return None if events is None else [event.get("text", event.get("bytes")) for event in events]


@given(MESSAGES)
def test_whole_messages_are_read(messages: list[str | bytes]) -> None:
    assert messages_of(frames_of(messages), 4 * LIMIT) == messages


def test_message_above_the_limit_is_left_to_the_server() -> None:
    assert messages_of(frames_of(["a" * LIMIT]), LIMIT) == ["a" * LIMIT]
    assert messages_of(frames_of(["a" * (LIMIT + 1)]), LIMIT) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x81\x04text", id="not masked"),
        pytest.param(client_frame(0x01, b"text"), id="not final"),
        pytest.param(client_frame(0xC1, b"text"), id="compressed"),
        pytest.param(client_frame(0x81, b"\xff"), id="not UTF-8"),
        pytest.param(client_frame(0x80, b"text"), id="continuation"),
        pytest.param(client_frame(0x89, b"text"), id="ping"),
        pytest.param(client_frame(0x88, b"\x03\xe8"), id="close"),
        pytest.param(client_frame(0x81, b"a" * 70_000), id="large"),
        pytest.param(b"\x81\xfe\x00\x01maska", id="not the shortest length"),
    ],
)
def test_any_other_frame_is_left_to_the_server(data: bytes) -> None:
    assert messages_of(data, 100_000) is None
    assert messages_of(frames_of(["text"]) + data, 100_000) is None
    assert are_frames(data)


@given(MESSAGES, st.integers(0, 1000), st.binary(max_size=3))
def test_messages_are_read_as_websockets_reads_them(
    messages: list[str | bytes], position: int, changed: bytes
) -> None:
    data = frames_of(messages)
    data = data[:position] + changed + data[position + len(changed) :]
    read = messages_of(data, LIMIT)
    if read is None:
        return  # left to the server

    server = ServerProtocol(state=OPEN, max_size=LIMIT)
    server.receive_data(data)
    events = server.events_received()

    assert server.parser_exc is None
    assert [
        bytes(event.data).decode() if event.opcode is Opcode.TEXT else event.data
        for event in events
        if isinstance(event, Frame)
    ] == read


@given(MESSAGES, st.integers(1, 1000))
def test_part_of_a_frame_is_noticed(messages: list[str | bytes], cut: int) -> None:
    data = frames_of(messages)
    part = data[:-cut]
    ends = {len(frames_of(messages[:count])) for count in range(len(messages) + 1)}
    assert are_frames(data)
    assert are_frames(part) == (len(part) in ends)
    assert messages_of(part, LIMIT) is None or len(part) in ends
