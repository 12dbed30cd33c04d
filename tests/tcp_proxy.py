"""A TCP proxy between a client and a server, whose connections can be cut and refused."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

TIMEOUT = 60.0


class TcpProxy:
    """Forwards bytes both ways until told otherwise: `async with TcpProxy(url) as proxy`."""

    def __init__(self, url: str, *, forbidden: bytes = b"") -> None:
        """`url`: what is behind the proxy.

        `forbidden`: a client that sends these bytes loses its connection; in lower case, and
        any case is meant.
        """
        self._forbidden = forbidden
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._refusing = False
        self.delay = 0.0
        """Seconds by which bytes come later, in both directions."""
        self._opened = asyncio.Condition()
        self.connections = 0
        """Connections that were opened so far, refused ones included."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The URL of what is behind the proxy, by way of the proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return urlunsplit(self._target._replace(netloc=f"127.0.0.1:{port}"))

    def cut(self) -> None:
        """Reset every connection. New ones are served."""
        for writer in self._writers:
            _abort(writer)

    def refuse(self) -> None:
        """Reset every connection, also those that will come."""
        self._refusing = True
        self.cut()

    def lead_to(self, url: str) -> None:
        """Lead new connections to another place."""
        self._target = urlsplit(url)

    def forbid(self, forbidden: bytes) -> None:
        """Reset every connection, and from now on those that send these bytes; b"": none."""
        self._forbidden = forbidden
        self.cut()

    def allow(self) -> None:
        """Serve new connections again."""
        self._refusing = False

    async def reached(self, connections: int) -> None:
        """Wait until this many connections were opened."""
        async with asyncio.timeout(TIMEOUT), self._opened:
            await self._opened.wait_for(lambda: self.connections >= connections)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        async with self._opened:
            self._opened.notify_all()
        if self._refusing:
            _abort(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            await self._forward(reader, writer)
        finally:
            _abort(writer)
            self._writers.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(
                self._target.hostname, self._target.port
            )
            self._writers.add(far_writer)
            try:
                await asyncio.gather(
                    self._pump(reader, far_writer, self._forbidden), self._pump(far_reader, writer)
                )
            finally:
                _abort(far_writer)
                self._writers.discard(far_writer)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, forbidden: bytes = b""
    ) -> None:
        """Forward one direction; its end ends both."""
        with suppress(OSError):
            while data := await reader.read(65536):
                if forbidden and forbidden in data.lower():
                    break
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        writer.close()


def _abort(writer: asyncio.StreamWriter) -> None:
    with suppress(AttributeError):  # of a TLS connection that is gone already, Python 3.11
        writer.transport.abort()
