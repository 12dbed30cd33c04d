"""Frames over any ASGI server's WebSocket. See `sending`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from realtime.protocol.frames import Frame
from realtime.transports.asgi import Send
from realtime.transports.sending import SendingTransport


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
        await self._send_close(code, reason)

    async def _send_close(self, code: int, reason: str) -> None:
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
