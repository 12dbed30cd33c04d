"""A response to one HTTP request of a client, as a receiver of a session's frames.

A polling response ends after one frame. A streaming response goes on until it is large, because
browsers keep all of it in memory; then the client makes another request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from realtime.transports.asgi import Exchange, Headers

STREAMING_LIMIT = 128 * 1024
"""Bytes of frames after which a streaming response ends."""

LAST_FRAME_TIMEOUT = 5.0
"""Seconds a response waits for its last frame when the server cancels its applications."""


class FrameReceiver(Protocol):
    """Takes the frames of one session, one receiver at a time."""

    finishing: bool
    """Whether it takes no more frames: it is full, or `finish` was called."""

    def write(self, frame: bytes) -> None:
        """Take a frame. Never waits."""

    def finish(self) -> None:
        """End the response when the frames that it took have been sent."""

    async def is_there(self) -> bool:
        """Return whether the peer still reads. If not, the receiver takes no more frames."""


@dataclass(frozen=True)
class ResponseFormat:
    """How frames stand in one kind of response."""

    content_type: str
    wrap: Callable[[bytes], bytes]
    """Return the bytes of one frame."""
    prelude: bytes = b""
    """Bytes before the first frame."""
    limit: int = STREAMING_LIMIT
    """Bytes of frames after which a response ends; 0: after one frame."""

    @property
    def streams(self) -> bool:
        return self.limit > 0


@dataclass(eq=False, repr=False)
class SessionResponse:
    """The response of this process to a request. See `FrameReceiver`."""

    _exchange: Exchange
    _format: ResponseFormat
    _headers: Headers
    _is_stopping: Callable[[], bool] = lambda: False
    """Returns whether the node is closing its clients."""
    finishing: bool = False
    _size: int = 0
    _last_frame_timeout: asyncio.TimerHandle | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._chunks = [self._format.prelude] if self._format.prelude else []

    @property
    def limit(self) -> int:
        """Bytes of frames after which it is full."""
        return self._format.limit

    def write(self, frame: bytes) -> None:
        self._chunks.append(self._format.wrap(frame))
        self._size += len(frame)  # not of the chunk: an owner at another node counts frames, too
        if self._size >= self._format.limit:
            self.finish()
        self._wake.set()

    def finish(self) -> None:
        self.finishing = True
        self._wake.set()

    async def is_there(self) -> bool:
        return True  # otherwise `run` would have ended

    async def run(self) -> bool:
        """Send frames until the response ends.

        Returns:
            True if everything was given to the server; False if the peer has gone, so that frames
            may be lost.
        """
        gone = asyncio.ensure_future(self._exchange.gone())
        gone.add_done_callback(lambda _: self._wake.set())
        try:
            if self._format.streams:
                return await self._stream(gone)
            return await self._respond(gone)
        finally:
            gone.cancel()
            if self._last_frame_timeout is not None:
                self._last_frame_timeout.cancel()

    async def _respond(self, gone: asyncio.Future[None]) -> bool:
        while not (self.finishing or gone.done()):
            await self._next()
        if gone.done():
            return False
        await self._exchange.respond(
            200, b"".join(self._chunks), self._format.content_type, self._headers
        )
        return True

    async def _stream(self, gone: asyncio.Future[None]) -> bool:
        await self._exchange.begin(self._format.content_type, self._headers)
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
        """Wait for a frame, for `finish` or for the peer to go."""
        try:
            await self._wake.wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or self._last_frame_timeout is not None or not self._is_stopping():
                raise
            # daphne cancels its applications while the node still closes its clients
            task.uncancel()
            self._last_frame_timeout = task.get_loop().call_later(LAST_FRAME_TIMEOUT, task.cancel)
        self._wake.clear()
