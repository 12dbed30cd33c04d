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
from collections.abc import Callable
from typing import Any

from realtime.protocol.frames import Frame
from realtime.transports.asgi import Event, Send, start

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


def send_event(frame: Frame) -> dict[str, Any]:
    """Return the ASGI event that sends a frame."""
    if frame.binary:
        return {"type": "websocket.send", "bytes": frame.data}
    return {"type": "websocket.send", "text": frame.data.decode()}


def close_event(code: int, reason: str) -> dict[str, Any]:
    """Return the ASGI event that closes a connection."""
    return {"type": "websocket.close", "code": code, "reason": reason}


class WebSocketTransport(SendingTransport):
    """Carries frames for one client over an ASGI WebSocket. See `outbox.Transport`."""

    name = "websocket"

    def __init__(self, send: Send, receiving: asyncio.Task[Any]) -> None:
        """
        Args:
            receiving: the task of the consumer's receive loop.
        """
        super().__init__(send, send_event)
        self._receiving = receiving
        self._last: Frame | None = None
        self.abandoned = False
        """Whether the receive loop was cancelled because the connection is of no use."""

    async def close(self, code: int, reason: str, last: Frame | None = None) -> None:
        """Close the connection. Returns in bounded time.

        Args:
            code: of the close frame.
            reason: of the close frame.
            last: a frame to send before.
        """
        self._last = last
        await super().close(code, reason)

    async def _end(self, code: int, reason: str) -> None:
        if self._last is not None:
            await self._send(send_event(self._last))
        await self._send(close_event(code, reason))

    def abandon(self) -> None:
        """End the application, so that the server drops the connection."""
        self.ready = False
        self.abandoned = True
        self._receiving.cancel()


class WrappingTransport:
    """Writes to a WebSocket in a way of its own. See `outbox.Transport`."""

    session = ""
    ends_with_push = False

    def __init__(self, websocket: WebSocketTransport) -> None:
        self._websocket = websocket

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time what had to wait has left."""
        self._websocket.when_ready(callback)

    @property
    def ready(self) -> bool:
        """Return whether a frame may be sent."""
        return self._websocket.ready

    @property
    def backlog(self) -> int:
        """Bytes that have not left for the peer."""
        return self._websocket.backlog

    async def close(self, code: int, reason: str) -> None:
        """Close the connection with this code and reason. Returns in bounded time."""
        await self._websocket.close(code, reason)

    def closed(self) -> None:
        """Send nothing more: the connection is lost."""
        self._websocket.closed()
