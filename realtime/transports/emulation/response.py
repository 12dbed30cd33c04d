"""Where a SockJS session writes its frames: the response to a request of the client.

A transport says how frames look in it; everything else is the same for all of them. A polling
response has one frame and is over. A streaming one goes on until it has become large, because
browsers keep all of it; then the client makes another request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from realtime.transports.asgi import Exchange, Headers

STREAMING_LIMIT = 128 * 1024
"""Bytes after which a streaming response ends."""

FAREWELL_PATIENCE = 5.0
"""Seconds a response waits for its last frame when the server ends its applications."""


class Receiver(Protocol):
    """Takes the frames of one session, one receiver at a time."""

    finishing: bool
    """Whether it takes no more: it is full, or was told to finish."""

    def write(self, frame: bytes) -> None:
        """Take a SockJS frame. Never waits."""
        ...

    def finish(self) -> None:
        """End the response when what was written has left."""
        ...

    async def is_there(self) -> bool:
        """Whether there is still somebody who reads; where not, it takes no more."""
        ...


@dataclass(frozen=True)
class ReceivingTransport:
    """How one transport's responses look."""

    content_type: str
    wrap: Callable[[bytes], bytes]
    """A SockJS frame as it stands in the response."""
    prelude: bytes = b""
    limit: int = STREAMING_LIMIT
    """Bytes after which a response ends; 0: after one frame."""

    @property
    def streams(self) -> bool:
        return self.limit > 0


class Response:
    """A receiver: the response of this process to a request. See `Receiver`."""

    def __init__(
        self,
        exchange: Exchange,
        transport: ReceivingTransport,
        headers: Headers,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_stopping`: whether the node is telling its clients to come back elsewhere."""
        self._exchange = exchange
        self._transport = transport
        self._headers = headers
        self._chunks: list[bytes] = [transport.prelude] if transport.prelude else []
        self._size = 0
        self._wake = asyncio.Event()
        self._is_stopping = is_stopping
        self._farewell: asyncio.TimerHandle | None = None
        self.finishing = False

    @property
    def limit(self) -> int:
        """Bytes of frames after which it is full."""
        return self._transport.limit

    def write(self, frame: bytes) -> None:
        chunk = self._transport.wrap(frame)
        self._chunks.append(chunk)
        self._size += len(frame)  # as the owner counts, where that is another node
        if self._size >= self._transport.limit:
            self.finish()
        self._wake.set()

    def finish(self) -> None:
        self.finishing = True
        self._wake.set()

    async def is_there(self) -> bool:
        return True  # otherwise `run` would have ended

    async def run(self) -> bool:
        """Send what is written, until the end; returns whether it came to a good one.

        Otherwise the peer has gone, and what it has not read is lost.
        """
        gone = asyncio.ensure_future(self._exchange.gone())
        gone.add_done_callback(lambda _: self._wake.set())
        try:
            if self._transport.streams:
                return await self._stream(gone)
            return await self._respond(gone)
        finally:
            gone.cancel()
            if self._farewell is not None:
                self._farewell.cancel()

    async def _respond(self, gone: asyncio.Future[None]) -> bool:
        while not (self.finishing or gone.done()):
            await self._next()
        if gone.done():
            return False
        await self._exchange.respond(
            200, b"".join(self._chunks), self._transport.content_type, self._headers
        )
        return True

    async def _stream(self, gone: asyncio.Future[None]) -> bool:
        await self._exchange.begin(self._transport.content_type, self._headers)
        while True:
            chunk = b"".join(self._chunks)
            self._chunks.clear()
            if gone.done():
                return False
            if self.finishing:
                await self._exchange.end(chunk)
                return True
            if chunk:
                await self._exchange.write(chunk)
            await self._next()

    async def _next(self) -> None:
        try:
            await self._wake.wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or self._farewell is not None or not self._is_stopping():
                raise
            # daphne ends its applications while clients are still being told
            task.uncancel()
            self._farewell = task.get_loop().call_later(FAREWELL_PATIENCE, task.cancel)
        self._wake.clear()
