"""Frames over one HTTP response that does not end: the transport of its client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from realtime.clients.client import Client
from realtime.errors import DisconnectShutdown
from realtime.transports.asgi import Exchange, Send
from realtime.transports.sending import SendingTransport
from realtime.transports.servers import daphne, uvicorn
from realtime.transports.streaming.formats import Format
from realtime.transports.streaming.sessions import new_session

DRAIN_INTERVAL = 0.05
"""Seconds between two looks whether everything has left, before a response ends."""


class PeerConnection(Protocol):
    """What a server knows of the connection of a response, beyond ASGI."""

    def backlog_bytes(self) -> int:
        """Return bytes that were written and have not left; 0 if unknown."""

    def abort(self) -> None:
        """Drop the connection, with what has not left."""


class UnknownConnection:
    """The connection of a server that tells nothing more. Its `send` waits for slow peers."""

    def backlog_bytes(self) -> int:
        return 0

    def abort(self) -> None:
        """The server drops the connection when the application ends before the response."""


def connection_of(send: Send) -> PeerConnection:
    """Return the connection behind a server's own `send`."""
    return daphne.connection_of(send) or uvicorn.connection_of(send) or UnknownConnection()


class StreamTransport(SendingTransport):
    """See `outbox.Transport`. The head of the response must have been sent."""

    ends_with_push = True

    def __init__(self, exchange: Exchange, response_format: Format) -> None:
        super().__init__(exchange.send, response_format.event)
        self.name = response_format.transport
        self.session = new_session()
        self._exchange = exchange
        self._connection = connection_of(exchange.send)
        self._ended = asyncio.Event()
        """Set when nothing follows."""

    @property
    def backlog(self) -> int:
        return super().backlog + self._connection.backlog_bytes()

    async def _end(self, code: int, reason: str) -> None:
        # the push that tells code and reason has been sent; a peer that does not read it is dropped
        while self._connection.backlog_bytes():
            await asyncio.sleep(DRAIN_INTERVAL)
        await self._send({"type": "http.response.body", "body": b""})
        self._ended.set()

    async def serve(self, client: Client, begin: Awaitable[None] | None = None) -> None:
        """Serve a client until either side ends the response.

        Args:
            begin: is run first.
        """
        self.when_ready(client.outbox.ready)
        try:
            try:
                if begin is not None:
                    await begin
                await self._until_end()
            except asyncio.CancelledError:
                # some servers end their applications before, or while, the node closes its clients
                client.close(DisconnectShutdown())
                await self._until_end()
            await self._answer()
        finally:
            self.closed()
            client.close(None)

    async def _answer(self) -> None:
        """Send what the client gets in place of a stream, if that was not begun."""

    async def _until_end(self) -> None:
        """Wait until the response has ended, or its peer has gone."""
        await self._exchange.unless_gone(self._ended.wait())

    def abandon(self) -> None:
        """Have the server drop the connection."""
        self.ready = False
        self._connection.abort()
        self._ended.set()
