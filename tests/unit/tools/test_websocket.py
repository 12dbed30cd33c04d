"""The doctor's WebSocket connection at servers that do not mean well."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import threading
from collections.abc import Iterable
from itertools import repeat

import pytest

from realtime.tools.remote import Remote, Unreachable
from realtime.tools.websocket import MAX_MESSAGE, NO_CLOSE_FRAME, Closed, open_websocket
from tests.unit.tools.hostile import TIMEOUT, Answer, HostileServer, Output, Serve

SHORT = 0.2


def frame(opcode: int, content: bytes, final: bool = True) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 126 else bytes([126]) + size.to_bytes(2)
    return bytes([opcode | final << 7]) + length + content


def upgraded(*sent: bytes, frames: Iterable[bytes] = ()) -> Answer:
    """Opens a WebSocket and sends these bytes, then these frames, of which there may be no end."""

    def answer(request: bytes) -> Output:
        found = re.search(rb"(?i)sec-websocket-key: (\S+)", request)
        assert found
        guid = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(found[1] + guid).digest())
        yield (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        yield from sent
        yield from frames

    return answer


def receive(server: HostileServer, timeout: float = TIMEOUT) -> str | Closed:
    with open_websocket(Remote(server.address, timeout), "/connection") as (_, websocket):
        assert websocket is not None
        return websocket.receive()


# messages


def test_message_in_parts_is_received_whole(hostile: Serve) -> None:
    server = hostile(
        upgraded(frame(1, b"a", final=False), frame(9, b"ping"), frame(0, "ü".encode()))
    )
    assert receive(server) == "aü"


def test_message_that_is_not_utf_8_is_received_with_replacements(hostile: Serve) -> None:
    assert receive(hostile(upgraded(frame(1, b"a\xff")))) == "a\ufffd"


def test_message_without_an_end_is_given_up(hostile: Serve) -> None:
    frames = repeat(frame(0, bytes(60_000), final=False))
    server = hostile(upgraded(frame(1, b"", final=False), frames=frames))
    with pytest.raises(Unreachable, match=f"more than {MAX_MESSAGE} bytes"):
        receive(server)


def test_frame_of_any_length_is_given_up_before_it_is_read(hostile: Serve) -> None:
    with pytest.raises(Unreachable, match=f"more than {MAX_MESSAGE} bytes"):
        receive(hostile(upgraded(bytes([0x82, 127]) + (1 << 62).to_bytes(8))))


@pytest.mark.parametrize(
    "sent",
    [
        frame(3, b""),
        bytes([0xC1, 1, 65]),
        frame(0, b"a"),
        frame(8, b"\x03"),
        frame(8, b"\x03\xe8\xff"),
    ],
    ids=["opcode", "reserved bit", "continuation of nothing", "close code", "close reason"],
)
def test_frame_against_the_rules_is_said(hostile: Serve, sent: bytes) -> None:
    with pytest.raises(Unreachable, match="does not speak WebSocket"):
        receive(hostile(upgraded(sent)))


@pytest.mark.parametrize(
    "answer",
    [
        upgraded(),
        upgraded(frame(1, b"a", final=False)),
        lambda request: (yield from [*upgraded()(request), *repeat(frame(9, b"x"), 100_000)]),
    ],
    ids=["silence", "message that does not go on", "pings"],
)
def test_server_that_sends_no_message_is_given_up_in_time(hostile: Serve, answer: Answer) -> None:
    with pytest.raises(Unreachable, match=f"no answer within {SHORT:g} s"):
        receive(hostile(answer), SHORT)


# the end


def test_close_frame_counts_whatever_follows_it(hostile: Serve) -> None:
    server = hostile(upgraded(frame(8, (3003).to_bytes(2) + b"why"), b"\xff\xff\xff"))
    assert receive(server) == Closed(3003, "why")


def test_close_frame_without_a_code(hostile: Serve) -> None:
    assert receive(hostile(upgraded(frame(8, b"")))) == Closed(1005, "")


def test_connection_that_ends_inside_of_a_frame() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for data in upgraded(frame(1, b"abc")[:-1])(connection.recv(65536)):
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            remote = Remote(f"http://127.0.0.1:{listener.getsockname()[1]}", TIMEOUT)
            with open_websocket(remote, "/connection") as (_, websocket):
                assert websocket is not None
                assert websocket.receive() == Closed(NO_CLOSE_FRAME, "")
        finally:
            thread.join(TIMEOUT)


# the handshake


def test_refusal_is_returned_with_its_headers(hostile: Serve) -> None:
    server = hostile(
        lambda _: iter([b"HTTP/1.1 403 No\r\nA: 1\r\nA: 2\r\nContent-Length: 2\r\n\r\nno"])
    )
    with open_websocket(Remote(server.address), "/connection") as (response, websocket):
        assert (response.status, response.header("a"), websocket) == (403, "1, 2", None)


def test_redirect_is_not_followed(hostile: Serve) -> None:
    other = hostile(upgraded(frame(1, b"a")))
    location = other.address.replace("http", "ws").encode()
    server = hostile(
        lambda _: iter(
            [b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location]
        )
    )

    with open_websocket(Remote(server.address), "/connection") as (response, websocket):
        assert (response.status, websocket) == (302, None)

    assert other.connections == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, "does not speak HTTP"),
        (b"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "a wrong one"),
        (b"HTTP/1.1 403 No\r\n", f"no answer within {SHORT:g} s"),
    ],
    ids=["another protocol", "endless header", "no key", "half a head"],
)
def test_answer_that_is_not_one_to_a_handshake_is_said(
    hostile: Serve, answer: bytes, reason: str
) -> None:
    server = hostile(lambda _: iter([answer]))
    with (
        pytest.raises(Unreachable, match=reason),
        open_websocket(Remote(server.address, SHORT), "/connection"),
    ):
        pass
