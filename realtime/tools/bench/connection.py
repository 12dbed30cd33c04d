"""One connection of the second generation of the protocol, in JSON, over asyncio's streams.

docs/protocol.md, 2.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
MAX_MESSAGE = 1 << 20
"""Bytes."""

Message = dict[str, Any]


class ConnectionRefused(Exception):
    """The service ended the connection, or refused what it was asked; the text says why."""


class Place(NamedTuple):
    """The address of an endpoint for WebSocket connections."""

    host: str
    port: int
    path: str
    tls: bool


@contextmanager
def _readable() -> Iterator[None]:
    """Raise Refused where the service ends the connection, or sends what cannot be read."""
    try:
        yield
    except EOFError:
        raise ConnectionRefused("the connection was closed") from None
    except (ValueError, RecursionError, asyncio.LimitOverrunError):
        raise ConnectionRefused("what answers does not speak the protocol") from None


class BenchConnection:
    """A connection that receives what is published into one channel."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._pushes: list[Message] = []
        """What came in front of a reply."""

    @classmethod
    async def open(cls, place: Place, token: str, channel: str, timeout: float) -> BenchConnection:
        """Connect, and subscribe to a channel.

        Args:
            place: the endpoint.
            token: a connection token; "" for none.
            channel: its name.
            timeout: seconds for all of it.

        Raises:
            Refused: the service does not want that.
            OSError: the service is not there, or did not answer in time.
        """
        async with asyncio.timeout(timeout):
            tls = ssl.create_default_context() if place.tls else None
            streams = await asyncio.open_connection(place.host, place.port, ssl=tls)
            connection = cls(*streams)
            try:
                with _readable():
                    await connection._shake_hands(place)
                    await connection._ask({"id": 1, "connect": {"token": token} if token else {}})
                    await connection._ask({"id": 2, "subscribe": {"channel": channel}})
            except BaseException:
                connection.close()
                raise
            return connection

    def close(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()

    async def receive(self) -> list[Message]:
        """Return the next messages.

        Raises:
            Refused: the service ended the connection.
            OSError: the connection broke.
        """
        if self._pushes:
            pushes, self._pushes = self._pushes, []
            return pushes
        with _readable():
            return await self._messages()

    async def _shake_hands(self, place: Place) -> None:
        key = base64.b64encode(os.urandom(16))
        host = f"[{place.host}]" if ":" in place.host else place.host
        self._writer.write(
            f"GET {place.path} HTTP/1.1\r\nHost: {host}:{place.port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key.decode()}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[len("HTTP/1.1 ") :][:3])
        if status != 101:
            raise ConnectionRefused(f"the answer to the WebSocket handshake has status {status}")
        if base64.b64encode(hashlib.sha1(key + _ACCEPT).digest()) not in head:
            raise ValueError("not the answer to this handshake")

    async def _ask(self, command: Message) -> None:
        self._send(_TEXT, json.dumps(command).encode())
        while True:
            messages = await self._messages()
            replies = [each for each in messages if each.get("id") == command["id"]]
            self._pushes += [each for each in messages if each not in replies]
            match replies:
                case [{"error": {"code": code, "message": text}}, *_]:
                    raise ConnectionRefused(f"{code}: {text}")
                case [_, *_]:
                    return

    async def _messages(self) -> list[Message]:
        while True:
            opcode, data = await self._frame()
            if opcode == _CLOSE:
                code, reason = int.from_bytes(data[:2], "big"), data[2:].decode(errors="replace")
                raise ConnectionRefused(f"closed with {code}: {reason}")
            if opcode == _PING:
                self._send(_PONG, data)
            elif opcode == _TEXT:
                messages = [json.loads(line) for line in data.splitlines()]
                if {} in messages:  # a ping of the protocol
                    self._send(_TEXT, b"{}")
                return [each for each in messages if isinstance(each, dict) and each]

    async def _frame(self) -> tuple[int, bytes]:
        first, length = await self._reader.readexactly(2)
        if length in (126, 127):
            extended = await self._reader.readexactly(2 if length == 126 else 8)
            length = int.from_bytes(extended, "big")
        is_last = first & 0x80
        if length > MAX_MESSAGE or not is_last:
            raise ConnectionRefused("the service sends a message that is too large, or in parts")
        return first & 0x0F, await self._reader.readexactly(length)

    def _send(self, opcode: int, data: bytes) -> None:
        length = len(data)
        if length < 126:
            head = bytes((0x80 | opcode, 0x80 | length))
        else:
            head = bytes((0x80 | opcode, 0x80 | 126)) + length.to_bytes(2, "big")
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._writer.write(head + mask + masked)
