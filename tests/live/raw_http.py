"""HTTP byte for byte: requests as they are wanted, and responses as they come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import NamedTuple

from tests.server import Server

TIMEOUT = 20.0
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
"""Headers of a WebSocket handshake."""


class Answer(NamedTuple):
    """A whole HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """A request on a connection of its own, and the response as it comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._body = bytearray()
        self._left = 0
        """Bytes of the body to come, where the response says how many."""
        self._ended = False
        self.status = 0
        self.headers: dict[str, str] = {}
        """Lower-case name → value; several of a name are joined by ", "."""

    async def write(self, data: bytes) -> None:
        """Send more of the request."""
        self._writer.write(data)
        await self._writer.drain()

    def next(self) -> Exchange:
        """The next request on the same connection; `write` sends it."""
        return Exchange(self._reader, self._writer)

    async def begin(self, method: str = "GET") -> None:
        """Read the head of the response."""
        async with asyncio.timeout(TIMEOUT):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        self.status = int(status_line.split(" ")[1])
        for line in lines:
            name, _, value = line.partition(":")
            earlier = self.headers.get(name.lower())
            value = value.strip()
            self.headers[name.lower()] = value if earlier is None else f"{earlier}, {value}"
        self._left = int(self.headers.get("content-length", 0))
        self._ended = (
            method == "HEAD"
            or self.status in (204, 304)
            or self.headers.get("content-length") == "0"
        )

    async def read_until(self, end: bytes) -> bytes:
        """The body up to and with `end`."""
        async with asyncio.timeout(TIMEOUT):
            while (position := self._body.find(end)) < 0:
                assert await self._fill(), f"the response ended with {bytes(self._body)!r}"
        position += len(end)
        part = bytes(self._body[:position])
        del self._body[:position]
        return part

    async def read(self, size: int) -> bytes:
        """So many bytes of the body."""
        async with asyncio.timeout(TIMEOUT):
            while len(self._body) < size:
                assert await self._fill(), f"the response ended with {bytes(self._body)!r}"
        part = bytes(self._body[:size])
        del self._body[:size]
        return part

    async def part(self) -> bytes:
        """The next part of the body, as large as it comes; b"" at its end."""
        async with asyncio.timeout(TIMEOUT):
            if not self._body:
                await self._fill()
        part = bytes(self._body)
        self._body.clear()
        return part

    async def is_over(self) -> bool:
        """Wait for more of the body, or for its end; whether it is the end."""
        async with asyncio.timeout(TIMEOUT):
            return not self._body and not await self._fill()

    async def rest(self) -> bytes:
        """The body up to its end, which must come."""
        async with asyncio.timeout(TIMEOUT):
            while await self._fill():
                pass
        part = bytes(self._body)
        self._body.clear()
        return part

    async def connection_ends(self) -> bool:
        """Wait for what comes behind the response; whether it is the end of the connection."""
        async with asyncio.timeout(TIMEOUT):
            return await self._reader.read(1) == b""

    async def abort(self) -> None:
        """Cut the connection."""
        self._writer.transport.abort()
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):  # the server was quicker
            await self._writer.wait_closed()

    async def _fill(self) -> bool:
        """Read a bit more of the body; whether there was any."""
        before = len(self._body)
        if self._ended:
            return False
        if "chunked" in self.headers.get("transfer-encoding", ""):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            self._body += (await self._reader.readexactly(size + 2))[:-2]
            self._ended = size == 0
        elif "content-length" in self.headers:
            part = await self._reader.read(self._left)
            assert part, "the response broke off"
            self._left -= len(part)
            self._ended = self._left == 0
            self._body += part
        else:
            part = await self._reader.read(65536)
            self._ended = not part
            self._body += part
        return len(self._body) > before


async def open_exchange(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    version: str = "1.1",
) -> Exchange:
    """Send a request; nothing of the response is read yet. The path is sent as it is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)
    exchange = Exchange(reader, writer)
    fields = {"Host": f"127.0.0.1:{server.port}", **(headers or {})}
    await exchange.write(request(method, path, body, fields, version=version))
    return exchange


def request(
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    version: str = "1.1",
) -> bytes:
    """Return the bytes of a request, with the headers that each has."""
    fields = {"Host": "127.0.0.1", **(headers or {})}
    if body is not None:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {fields[name]}" for name in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
