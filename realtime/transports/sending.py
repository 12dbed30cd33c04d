"""Frames over any ASGI server's `send`, for one client.

`send` of an ASGI server is a coroutine function. Most calls do not wait, so a task per frame
would cost more than the frame. The first step of the coroutine runs at once, without a task; only
the rest of a call that waits (its peer does not read) gets one. Until that task is done the
transport is not ready, and messages wait in the client's outbox.

    outbox ─Frame─► send ─► start(server's send) ─┬─► done at once: ready
                                                  └─► Suspended ─task─► ready again
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

from realtime.protocol.frames import Frame
from realtime.transports.asgi import Event, Send

logger = logging.getLogger("realtime.client")

CLOSE_TIMEOUT = 3.0
"""Seconds a peer has to answer a close frame, and a server to send the last bytes."""


class SendingTransport:
    """Carries frames for one client with `send`. See `outbox.Transport`."""

    session = ""
    ends_with_push = False

    def __init__(self, send: Send, event: Callable[[Frame], Event]) -> None:
        """
        Args:
            event: returns the ASGI event that sends a frame. See `Frame.form`.
        """
        self._send = send
        self._event = event
        self._loop = asyncio.get_running_loop()
        self._sending: asyncio.Task[None] | None = None
        """Finishes a `send` that waits."""
        self._waiting_bytes = 0
        """Size of the frame that it sends."""
        self._on_ready: Callable[[], None] | None = None
        self._is_closed = False
        self._until_closed: asyncio.Future[None] | None = None
        """While `close` waits for the peer. An `Event` from the start would cost 800 bytes."""
        self.ready = True

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time a frame that had to wait has left."""
        self._on_ready = callback

    @property
    def backlog(self) -> int:
        """Bytes that the server buffers because the peer has not read them; 0 if unknown."""
        return self._waiting_bytes

    def send(self, frame: Frame) -> int:
        try:
            rest = start(self._send(frame.form(self._event)))
        except Exception as error:  # each server has its own for a lost connection
            logger.info("Could not send a frame: %r", error)
            self.abandon()
            return 0
        if rest is not None:
            self.ready = False
            self._waiting_bytes = len(frame.data)
            self._sending = rest.finish_in_task(self._loop, self._sent)
        return self.backlog

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        self._waiting_bytes = 0
        if task.cancelled() or task.exception() is not None:
            return
        self.ready = True
        if self._on_ready is not None:
            self._on_ready()

    async def close(self, code: int, reason: str) -> None:
        """Close the connection. Returns in bounded time."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                # the outbox still sends what it holds when the frame on its way has left
                await self._until_sent()
                self.ready = False  # nothing follows the end
                await self._end(code, reason)
                if not self._is_closed:
                    self._until_closed = self._loop.create_future()
                    await self._until_closed
        except TimeoutError:
            self.abandon()  # the peer neither reads nor answers
        except Exception:  # each server has its own for a lost connection
            logger.debug("Could not send the end of a connection", exc_info=True)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    async def _until_sent(self) -> None:
        """Wait until nothing is on its way."""
        while self._sending is not None:
            await asyncio.wait([self._sending])
            await asyncio.sleep(0)

    async def _end(self, code: int, reason: str) -> None:
        """Send what ends the connection."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Have the server drop the connection."""
        raise NotImplementedError

    def closed(self) -> None:
        """Send nothing more: the connection is lost."""
        self.ready = False
        self._on_ready = None
        self._is_closed = True
        if self._until_closed is not None and not self._until_closed.done():
            self._until_closed.set_result(None)


def start(awaitable: Awaitable[None]) -> Suspended | None:
    """Run an awaitable until it waits for something.

    Returns:
        The rest of it; None if it is done.

    Raises:
        Exception: whatever the awaitable raises before it waits.
    """
    steps = awaitable.__await__()
    try:
        waiting_for = next(steps)
    except StopIteration:
        return None
    return Suspended(steps, waiting_for)


class Suspended:
    """An awaitable whose first step is done.

    Coroutines can be thrown into and closed. Servers written in other languages may return plain
    iterators, which cannot.
    """

    def __init__(self, steps: Iterator[Any], waiting_for: Any) -> None:
        self._steps = steps
        self._waiting_for = waiting_for

    def finish_in_task(
        self, loop: asyncio.AbstractEventLoop, done: Callable[[asyncio.Task[None]], None]
    ) -> asyncio.Task[None]:
        """Run the rest in a task, then call `done` with it."""

        def finished(task: asyncio.Task[None]) -> None:
            self._close()
            done(task)

        task = loop.create_task(self._finish())
        task.add_done_callback(finished)
        return task

    async def _finish(self) -> None:
        await self

    def _close(self) -> None:
        """Close the coroutine, which a task cancelled before its first step leaves open."""
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def __await__(self) -> Generator[Any, Any, None]:
        waiting_for = self._waiting_for
        while True:
            try:
                try:
                    yield waiting_for
                except BaseException as error:
                    throw = getattr(self._steps, "throw", None)
                    if throw is None:
                        raise
                    waiting_for = throw(error)
                else:
                    waiting_for = next(self._steps)
            except StopIteration:
                return
