"""A WebSocket client just large enough to look at a running service: text frames, one at a time.

Spec: Client WebSocket protocol; the framing is that of RFC 6455.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from realtime.console.remote import Remote, Response, Unreachable

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FINAL = 0x80
NO_CLOSE_FRAME = 1006
MAX_MESSAGE = 1 << 20
"""Bytes; nothing that is asked here has a longer answer."""


class Closed(NamedTuple):
    """The server closed the connection, with or without a close frame."""

    code: int
    reason: str


class WebSocket:
    """An open connection. Raises OSError when it breaks or the server is too slow."""

    def __init__(self, connection: socket.socket, incoming: io.BufferedReader) -> None:
        self._connection = connection
        self._incoming = incoming

    def send(self, text: str) -> None:
        """Send a text frame."""
        self._send(_TEXT, text.encode())

    def receive(self) -> str | Closed:
        """The next message, or the end."""
        message = b""
        while True:
            head = self._incoming.read(2)
            if len(head) < 2:
                return Closed(NO_CLOSE_FRAME, "")
            content = self._read(self._length(head[1]))
            match head[0] & 0x0F:
                case opcode if opcode == _CLOSE:
                    if len(content) < 2:
                        return Closed(1005, "")
                    return Closed(
                        int.from_bytes(content[:2]), content[2:].decode("utf-8", "replace")
                    )
                case opcode if opcode == _PING:
                    self._send(_PONG, content)
                case opcode if opcode == _PONG:
                    pass
                case _:
                    message += content
                    if len(message) > MAX_MESSAGE:
                        raise ConnectionError("a message is too large")
                    if head[0] & _FINAL:
                        return message.decode("utf-8", "replace")

    def _length(self, byte: int) -> int:
        length = byte & 0x7F
        if length >= 126:
            length = int.from_bytes(self._read(2 if length == 126 else 8))
        if length > MAX_MESSAGE:
            raise ConnectionError("a frame is too large")
        return length

    def _read(self, size: int) -> bytes:
        data = self._incoming.read(size)
        if len(data) < size:
            raise ConnectionError("the connection ended inside of a frame")
        return data

    def _send(self, opcode: int, content: bytes) -> None:
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(content))
        size = len(content)
        length = bytes([0x80 | size]) if size < 126 else struct.pack("!BH", 0x80 | 126, size)
        self._connection.sendall(bytes([_FINAL | opcode]) + length + mask + masked)


@contextmanager
def shake_hands(
    remote: Remote, path: str, origin: str = ""
) -> Iterator[tuple[Response, WebSocket | None]]:
    """Ask for a WebSocket: the answer, and the connection if the answer is a right 101.

    `origin`: of the page that a browser would connect from; "" for no browser.

    Raises:
        Unreachable: also for what breaks inside of the `with` block.
    """
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }
    if origin:
        headers["Origin"] = origin
    began = time.monotonic()
    with remote.connection() as connection:
        connection.request("GET", remote.path(path), headers=headers)
        answer = connection.getresponse()
        seconds = time.monotonic() - began
        if answer.status != 101:
            yield Response(answer.status, answer.headers, answer.read(), seconds), None
            return
        response = Response(101, answer.headers, b"", seconds)
        expected = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
        if response.header("Sec-WebSocket-Accept").strip() != expected:
            raise Unreachable(f"{remote}: the answer to the WebSocket handshake is a wrong one")
        yield response, WebSocket(connection.sock, answer.fp)
        answer.close()
