"""Frames over any ASGI server's WebSocket, with nothing but `send`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

from realtime.errors import Disconnect
from realtime.protocol.frames import Frame
from realtime.transports.asgi import Send

logger = logging.getLogger("realtime.websocket")

CLOSE_TIMEOUT = 3.0
"""Seconds a peer has to answer a close frame, and a server to send one."""


def send_event(frame: Frame) -> dict[str, Any]:
    """Return the ASGI event that sends a frame."""
    if frame.binary:
        return {"type": "websocket.send", "bytes": frame.data}
    return {"type": "websocket.send", "text": frame.data.decode()}


class WebSocketTransport:
    """Carries frames for one client over an ASGI WebSocket. See `outbox.Transport`."""

    name = "websocket"

    def __init__(self, send: Send, receiving: asyncio.Task[Any]) -> None:
        """`receiving`: the task of the consumer's receive loop."""
        self._send = send
        self._receiving = receiving
        self._loop = asyncio.get_running_loop()
        self._sending: asyncio.Task[None] | None = None
        self._outbox_ready: Callable[[], None] | None = None
        self._closed = asyncio.Event()
        self.ready = True
        self.abandoned = False
        """Whether the receive loop was cancelled because nothing can be sent any more."""

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call back whenever a frame that had to wait has left."""
        self._outbox_ready = callback

    def send(self, frame: Frame) -> int:
        try:
            rest = begin(self._send(frame.form(send_event)))
        except Exception as error:  # each server has its own for a peer that is gone
            logger.info("A frame could not be sent: %r", error)
            self.abandon()
            return 0
        if rest is not None:
            self.ready = False
            self._sending = in_task(rest, self._loop, self._sent)
        return 0

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if task.cancelled() or task.exception() is not None:
            return
        self.ready = True
        if self._outbox_ready is not None:
            self._outbox_ready()

    async def close(self, disconnect: Disconnect, last: Frame | None = None) -> None:
        """As any transport. `last`: a frame to send before."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                # whatever waits in the outbox follows the frame on its way
                while self._sending is not None:
                    await asyncio.wait([self._sending])
                    await asyncio.sleep(0)
                self.ready = False  # nothing follows a close frame (RFC 6455, 5.5.1)
                if last is not None:
                    await self._send(send_event(last))
                await self._send(
                    {
                        "type": "websocket.close",
                        "code": disconnect.code,
                        "reason": disconnect.advice,
                    }
                )
                await self._closed.wait()
        except TimeoutError:
            self.abandon()  # the peer neither reads nor answers
        except Exception:  # as above
            logger.debug("The close frame could not be sent", exc_info=True)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    def abandon(self) -> None:
        """End the application, which makes the server drop the connection."""
        self.ready = False
        self.abandoned = True
        self._receiving.cancel()

    def closed(self) -> None:
        """The connection is gone."""
        self.ready = False
        self._outbox_ready = None
        self._closed.set()


class Continued:
    """The rest of an awaitable whose first step was made by hand.

    Coroutines can be thrown into and closed; what servers written in other languages
    return may be plain iterators.
    """

    def __init__(self, steps: Iterator[Any], waiting_for: Any) -> None:
        self._steps = steps
        self._waiting_for = waiting_for

    def close(self) -> None:
        """Let go of what is left, also when its task was cancelled before it ran."""
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


def begin(awaitable: Awaitable[None]) -> Continued | None:
    """Run an awaitable as far as it goes without waiting; returns the rest, None if there is none.

    Raises:
        Exception: whatever it raises on the way.
    """
    steps = awaitable.__await__()
    try:
        waiting_for = next(steps)
    except StopIteration:
        return None
    return Continued(steps, waiting_for)


async def finish(rest: Continued) -> None:
    """Wait for the rest."""
    await rest


def in_task(
    rest: Continued, loop: asyncio.AbstractEventLoop, done: Callable[[asyncio.Task[None]], None]
) -> asyncio.Task[None]:
    """Finish the rest in a task of its own."""

    def finished(task: asyncio.Task[None]) -> None:
        rest.close()
        done(task)

    task = loop.create_task(finish(rest))
    task.add_done_callback(finished)
    return task
