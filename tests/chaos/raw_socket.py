"""A WebSocket of tests that open thousands: it masks with zero and parses no more than frames."""

from __future__ import annotations

import asyncio
from typing import TypeVar

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

_HEAD = (
    b"GET /connection/websocket%b HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def frame(data: bytes, opcode: int = TEXT) -> bytes:
    """Return a masked frame; the mask is zero."""
    if len(data) < 126:
        head = bytes((0x80 | opcode, 0x80 | len(data)))
    else:
        head = bytes((0x80 | opcode, 0x80 | 126)) + len(data).to_bytes(2, "big")
    return head + b"\0\0\0\0" + data


class RawSocket(asyncio.Protocol):
    """One WebSocket."""

    def __init__(self, greeting: bytes = b"", query: str = "") -> None:
        """
        Args:
            greeting: frames to send first.
            query: what follows the path, with its question mark.
        """
        self._waiting = greeting
        """Frames for the time when the handshake is done."""
        self._query = query
        self._open = False
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(_HEAD % self._query.encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._open:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.refused(head.split(b"\r\n")[0].decode())
                return
            self._open, self._buffer = True, rest
            self.transport.write(self._waiting)
        while (received := self._next()) is not None:
            opcode, content = received
            if opcode == PING:
                self.transport.write(frame(content, PONG))
            else:
                self.frame_received(opcode, content)

    def send(self, *frames: bytes) -> None:
        """Send frames, once the handshake is done."""
        if self._open:
            self.transport.write(b"".join(frames))
        else:
            self._waiting += b"".join(frames)

    def _next(self) -> tuple[int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1], 2
        if size == 126:
            size, start = int.from_bytes(buffer[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(buffer[2:10], "big"), 10
        if len(buffer) < start + size:
            return None
        self._buffer = buffer[start + size :]
        return buffer[0] & 0x0F, buffer[start : start + size]

    def refused(self, status: str) -> None:
        """The handshake failed with this status line."""
        raise NotImplementedError

    def frame_received(self, opcode: int, data: bytes) -> None:
        """A frame came that is no ping."""
        raise NotImplementedError


Socket = TypeVar("Socket", bound=RawSocket)


async def open_socket(socket: Socket, port: int) -> Socket:
    """Connect to a server of this machine; returns the socket."""
    await asyncio.get_running_loop().create_connection(lambda: socket, "127.0.0.1", port)
    return socket
