"""Wake a relay after a commit, so that rows do not wait for its next look.

    a process that relays           wakes its own thread
    another process, shared engine  sends a message to the nodes, which nothing keeps
    another process, PostgreSQL     NOTIFY, in autocommit: not in the caller's transaction
    otherwise                       nothing: the relay looks once a second

A wake-up that is lost costs that second and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django.db import connections, transaction

from realtime.engine import factory
from realtime.errors import EngineUnavailable
from realtime.serving import Serving

logger = logging.getLogger("realtime.pending")

NOTIFICATION = "realtime_pending"
"""The channel of PostgreSQL."""

SILENCE = 5.0
"""Seconds without messages after one failed: callers must not wait for an engine that is away."""


class WakeUps:
    """Wakes a relay of the service from this process."""

    def __init__(self, serving: Serving, wake: Callable[[], bool]) -> None:
        """`wake`: wakes the relay of this process; returns False if there is none."""
        self._serving = serving
        self._wake = wake
        self._silent_until = 0.0

    def after_commit(self, database: str) -> None:
        """Wake a relay after the commit; now, if no transaction is under way.

        Not where autocommit is off: there the relay looks once a second.
        """
        connection = connections[database]
        if not (connection.in_atomic_block or connection.get_autocommit()):
            return  # the site commits by hand, and Django does not say when
        waiting = connection.run_on_commit
        if waiting:
            last: Any = waiting[-1]
            if isinstance(last[1], _WakeUp) and last[0] == set(connection.savepoint_ids):
                return  # one is enough, and this one lives as long as the rows do
        transaction.on_commit(_WakeUp(self, database), using=database, robust=True)

    def send(self, database: str) -> None:
        """Wake a relay. Failures are ignored."""
        if self._wake():
            return
        if not factory.is_shared(self._serving.config()):
            if connections[database].vendor == "postgresql":
                with connections[database].cursor() as cursor:
                    cursor.execute(f"NOTIFY {NOTIFICATION}")
            return
        if time.monotonic() < self._silent_until:
            return
        try:
            self._serving.call(lambda member: member.wake_relays())
        except EngineUnavailable as error:
            logger.debug("Could not wake a relay: %s", error)
            self._silent_until = time.monotonic() + SILENCE


class _WakeUp:
    """The work after one commit."""

    def __init__(self, wake_ups: WakeUps, database: str) -> None:
        self._wake_ups = wake_ups
        self._database = database
        self.__qualname__ = "realtime.pending"  # for Django's log

    def __call__(self) -> None:
        self._wake_ups.send(self._database)
