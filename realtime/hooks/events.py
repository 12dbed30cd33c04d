"""Send Django's signals about clients: outside the event loop, in order, with a limit."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from django.dispatch import Signal

from realtime import signals
from realtime.hooks.runner import Connections, name_of, own_connections
from realtime.node.hooks import Events

logger = logging.getLogger("realtime.hooks")

MAX_EVENTS = 10_000
"""Events that may wait for slow receivers."""

CLOSE_TIMEOUT = 1.0
"""Seconds for sending queued signals when the process ends."""

SIGNALS: Mapping[str, Signal] = {
    name: signal for name, signal in vars(signals).items() if isinstance(signal, Signal)
}
"""Name → signal, for each signal in `realtime.signals`."""

_Event = tuple[str, dict[str, Any]]
"""Kind and details."""


class SiteEvents(Events):
    """Sends signals in the order in which they were emitted, on one thread.

    The thread starts with the first event that has a receiver. A receiver that hangs does not
    keep the process from ending.
    """

    def __init__(self, connections: Connections = own_connections) -> None:
        """
        Args:
            connections: surrounds each signal, for the database connections of the thread.
        """
        self._connections = connections
        self._waiting: SimpleQueue[_Event | Future[None] | None] = SimpleQueue()
        """Events; futures, done when the events before them were sent; None at the end."""
        self._started = False
        self._closed = False
        self._given_up = False
        self._dropped = 0
        """Signals that were dropped since receivers kept up."""
        self.dropped = 0

    def emit(self, kind: str, **details: Any) -> None:
        """Queue a signal. Never waits and never raises."""
        if self._closed or not SIGNALS[kind].receivers:  # cheaper than `has_listeners`
            return
        waiting = self._waiting.qsize()
        if waiting >= MAX_EVENTS:
            if not self._dropped:
                logger.error("Signal receivers are too slow, dropping signals")
            self._dropped += 1
            self.dropped += 1
            return
        if self._dropped and waiting <= MAX_EVENTS // 2:
            logger.warning("Signal receivers keep up again, %d signals were dropped", self._dropped)
            self._dropped = 0
        self._waiting.put((kind, details))
        if not self._started:
            self._start()

    async def drained(self, timeout: float) -> bool:
        """Wait until all queued signals were sent. Return False after `timeout` seconds."""
        if not self._started:
            return True
        mark: Future[None] = Future()
        mark.set_running_or_notify_cancel()  # a caller that gives up must not cancel it
        self._waiting.put(mark)
        waiting = asyncio.wrap_future(mark)
        try:
            await asyncio.wait([waiting], timeout=timeout)
            return waiting.done()
        finally:
            waiting.cancel()

    async def close(self) -> None:
        """Send queued signals, for `CLOSE_TIMEOUT` at most, and take no more."""
        self._closed = True
        drained = False
        try:
            drained = await self.drained(CLOSE_TIMEOUT)
        finally:
            if not drained:
                self._given_up = True
                logger.error("Signal receivers are too slow, the last signals may be lost")
            self._waiting.put(None)

    # in the thread

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="realtime-signals", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            logger.exception("Could not start the thread for signals")  # the next event tries again
        else:
            self._started = True

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None and not self._given_up:
            if isinstance(event, Future):
                event.set_result(None)
            else:
                _send(self._connections, *event)


def _send(connections: Connections, kind: str, details: dict[str, Any]) -> None:
    try:
        with connections():
            results = SIGNALS[kind].send_robust(sender=None, **details)
    except BaseException:  # the thread must continue
        logger.exception("Could not send signal %s to all receivers", kind)
        return
    for receiver, result in results:
        if isinstance(result, Exception):
            name = name_of(receiver)
            logger.error("Receiver %s of signal %s failed", name, kind, exc_info=result)
