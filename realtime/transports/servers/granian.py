"""What granian needs beyond ASGI: close frames that leave, and clients that are closed at a stop.

- granian sends no close frame while the application waits in `receive`. So the receive loop stops
  waiting before the close frame is sent.
- When granian stops, it first drops its WebSockets, and then ends the lifespan. It sets its signal
  handlers with a function that `install` replaces: clients are closed first, then granian stops.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

from realtime.serving import serving
from realtime.transports.asgi import Event, Receive, Send
from realtime.transports.websocket_transport import WebSocketTransport

logger = logging.getLogger("realtime.granian")

_SERVER = "granian._granian"
_SIGNALS_MODULE = "granian._signals"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

DROP_TIMEOUT = 0.5
"""Seconds that granian's threads have to take a connection that is dropped."""


def is_loaded() -> bool:
    """Return whether granian is the server of this process."""
    return _SERVER in sys.modules


def install() -> None:
    """Make granian close the clients before it stops. No effect under other servers."""
    if not is_loaded():
        return
    module: Any = sys.modules.get(_SIGNALS_MODULE)
    set_signals = getattr(module, "set_loop_signals", None)
    if set_signals is None:
        logger.warning("Clients get no advice when this version of granian stops.")
        return
    if getattr(set_signals, "closes_clients", False):
        return

    def set_signals_and_close_clients(loop: asyncio.AbstractEventLoop) -> Any:
        stop = set_signals(loop)
        _close_clients_first(loop, stop)
        return stop

    set_signals_and_close_clients.closes_clients = True  # type: ignore[attr-defined]
    module.set_loop_signals = set_signals_and_close_clients


def _close_clients_first(loop: asyncio.AbstractEventLoop, stop: Any) -> None:
    """On a signal, stop the service, then granian with `stop.set()`."""
    stopping: list[asyncio.Task[None]] = []

    def begin() -> None:
        serving.on_signal()
        if not stopping:
            stopping.append(loop.create_task(serving.stop()))
            stopping[0].add_done_callback(stopped)

    def stopped(task: asyncio.Task[None]) -> None:
        stop.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Could not stop the service", exc_info=error)

    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, begin)
    except NotImplementedError:
        pass  # on Windows, where granian ends its workers without a signal


def transport(
    send: Send, receive: Receive, receiving: asyncio.Task[Any]
) -> GranianTransport | None:
    """Return the transport for granian, also behind middleware; None under other servers."""
    return GranianTransport(send, receive, receiving) if is_loaded() else None


class GranianTransport(WebSocketTransport):
    """Stops waiting in `receive` before it sends a close frame."""

    def __init__(self, send: Send, receive: Receive, receiving: asyncio.Task[Any]) -> None:
        super().__init__(send, receiving)
        self._receive = receive
        self._waiting: asyncio.Future[Event] | None = None
        """What the receive loop waits for."""
        self._closing = asyncio.Event()
        self._close_sent = asyncio.Event()
        self._dropping: asyncio.Task[None] | None = None

    async def receive(self) -> Event:
        """Return the next event; once the connection is closed from here, a disconnect."""
        if not self._closing.is_set():
            # granian's awaitables are futures; middleware makes coroutines
            self._waiting = asyncio.ensure_future(self._receive())
            try:
                return await self._waiting
            except asyncio.CancelledError:
                if not self._closing.is_set() or self._receiving.cancelling():
                    raise
            finally:
                self._waiting = None
        await self._close_sent.wait()
        return {"type": "websocket.disconnect", "code": 1006}

    async def _send_close(self, code: int, reason: str) -> None:
        self._stop_waiting()
        try:
            await super()._send_close(code, reason)
        finally:
            self._close_sent.set()

    def _stop_waiting(self) -> None:
        self._closing.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def abandon(self) -> None:
        """Drop the connection at once: granian would wait for a peer that does not read."""
        if self._dropping is None:
            self.ready = False
            self.abandoned = True
            self._dropping = self._loop.create_task(self._drop())

    async def _drop(self) -> None:
        self._stop_waiting()
        if self._sending is not None:
            self._sending.cancel()
        # it takes the connection out of granian, and cancelled it ends it
        closing = asyncio.ensure_future(self._send({"type": "websocket.close", "code": 1001}))
        await asyncio.wait([closing], timeout=DROP_TIMEOUT)
        closing.cancel()
        self._receiving.cancel()
