"""Pending rows for metrics and the panel: the database is asked when they are read, not too often.

A thread asks, one at a time. A request of metrics waits `TIMEOUT` seconds for its answer at most; a
database that hangs keeps that one thread. Answers are used for `INTERVAL` seconds, or for ten times
as long as the database took, if that is more.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import Future, wait

from django.db import connections

from realtime.metrics import Outage
from realtime.monitoring.figures import Figures
from realtime.server_api.durable import Overview, PendingRows, RelayCounters
from realtime.serving import serving

logger = logging.getLogger("realtime.monitoring")

TIMEOUT = 2.0
"""Seconds."""
INTERVAL = 5.0
"""Seconds."""
SHARE = 10
"""The database works on questions for at most one tenth of the time."""


class Counter:
    """Counts the rows of a process's databases."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Future[Overview | None] | None = None
        """Of the last question; None: it failed."""
        self._asked_at = 0.0
        """Monotonic seconds of the last question."""
        self._ask_at = 0.0
        """Monotonic seconds of the next question."""
        self._outage = Outage()

    async def read(self, rows: PendingRows | None) -> Figures:
        """Return the metrics.

        Args:
            rows: None where the app is not installed: there are no such metrics.

        Returns:
            What the relay of this process did; the rows, if the database answered.
        """
        if rows is None:
            return {}
        answer = self._ask(rows)
        await asyncio.wait({asyncio.wrap_future(answer)}, timeout=TIMEOUT)
        overview = answer.result() if answer.done() else None
        return {**_relayed(rows.counters), **({} if overview is None else _counted(overview))}

    def overview(self, rows: PendingRows, patience: float) -> Overview | None:
        """Return the numbers of the rows; None if the database did not answer.

        Args:
            patience: seconds for the database, from the question on: who comes later, waits less.
        """
        answer = self._ask(rows)
        wait([answer], timeout=max(0.0, self._asked_at + patience - time.monotonic()))
        return answer.result() if answer.done() else None

    def _ask(self, rows: PendingRows) -> Future[Overview | None]:
        with self._lock:
            answer = self._answer
            if answer is None or (answer.done() and time.monotonic() >= self._ask_at):
                answer = self._answer = Future()
                self._asked_at = time.monotonic()
                thread = threading.Thread(
                    target=self._count,
                    args=(rows, answer),
                    name="realtime-pending-rows",
                    daemon=True,
                )
                thread.start()
            return answer

    def _count(self, rows: PendingRows, answer: Future[Overview | None]) -> None:
        began = time.monotonic()
        overview = None
        try:
            overview = rows.overview()
        except Exception as error:  # of every database
            if self._outage.begins():
                logger.warning("Pending rows could not be counted: %s", error)
        finally:
            connections.close_all()
            now = time.monotonic()
            self._ask_at = now + max(INTERVAL, SHARE * (now - began))
            answer.set_result(overview)


def _relayed(counters: RelayCounters) -> Figures:
    return {
        "realtime_pending_relayed_total": {
            ("published",): counters.relayed,
            ("refused",): counters.refused,
            ("parked",): counters.parked,
            ("failed",): counters.failures,
        }
    }


def _counted(overview: Overview) -> Figures:
    return {
        "realtime_pending_rows": {
            ("waiting",): overview.waiting,
            ("scheduled",): overview.scheduled,
            ("parked",): overview.parked,
        },
        "realtime_pending_oldest_seconds": {(): overview.oldest or 0.0},
    }


counter = Counter()
"""That of this process."""


async def read() -> Figures:
    """Return the metrics of this process; see `Counter.read`."""
    return await counter.read(serving.pending)
