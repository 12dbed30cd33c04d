"""Publishes what the producers of this process write: one thread for all of them.

    write ──► waiting ──► under way ──► kept       the next tick takes what waits by then
                 ▲            │ ├─────► refused    the answer has ended: the producer stops
                 │            │ └─────► no answer  the same chunks again, with the same version
                 └────────────┘

Every tick the chunks of all answers that are due leave together, in one round trip, so a slow
engine gets fewer and larger publications. A lease of the process says that its producers live,
whether they write or not.

Invariants:
- One publication of an answer is under way at a time; versions grow by one.
- What the thread does for one answer neither raises nor delays another by more than a tick.
- A producer that could not publish for `producer.AWAY` seconds, or has more than
  `producer.MAX_WAITING` bytes waiting, fails; its writes raise.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Sequence
from functools import partial

from django.db import DatabaseError

from realtime.answers import forms, rows, stream
from realtime.answers.models import Answer, Status
from realtime.answers.producer import LOOK, TICK, Producer
from realtime.cluster.member import Member
from realtime.engine.base import Published
from realtime.errors import EngineUnavailable, Error, NotServing
from realtime.hooks.runner import own_connections
from realtime.metrics import Outage
from realtime.server_api import operations
from realtime.serving import serving

logger = logging.getLogger("realtime.answers")

LEASE = 25.0
"""Seconds for which the claim of a process holds."""
RENEW = 4.0
"""Seconds between claims."""


def lease_of(producer: str) -> str:
    """Return the name that a process claims while its producers live."""
    return f"answers:{producer}"


class AnswerFlusher:
    """See the module."""

    def __init__(self) -> None:
        self.uid = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._producers: set[Producer] = set()
        self._thread: threading.Thread | None = None
        self._lease_until = 0.0
        self._outage = Outage()
        self._saver = threading.Thread()
        self._outage_of_rows = Outage()
        self._left: list[tuple[Answer, str]] = []
        """Rows that the sweeper has to end, which the database does not know yet, and why."""

    def renew(self) -> None:
        """Claim the lease.

        Raises:
            NotServing: with the memory engine, in a process that serves no clients.
            EngineUnavailable: the engine is away.
        """
        began = time.monotonic()
        serving.call(partial(_claim, uid=self.uid))
        self._lease_until = began + LEASE

    def add(self, producer: Producer) -> None:
        """Publish for a producer from now on."""
        with self._lock:
            self._producers.add(producer)
            self._start()

    def _start(self) -> None:
        """Have the thread run; the caller has the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="realtime-answers", daemon=True)
            self._thread.start()

    def end(self, producer: Producer, status: str, error: str) -> None:
        """End an answer: what waits, then the end, then the row.

        Raises:
            EngineUnavailable: the engine is away; the sweeper ends the answer when it is back.
            InternalError: the site's `answer_end` failed; the sweeper calls it again.
            DatabaseError: the database is away; the sweeper ends the row when it is back.
        """
        row, own = producer.row, producer.own_end
        if own is not None and status == Status.COMPLETE:
            status, error = forms.status_of(own), forms.error_of(own)
        try:
            rows.settle(row, status, error, producer.end(status))
            rows.promote(row.channel)
        except (EngineUnavailable, NotServing):
            self._leave(row, error or "the engine was away at the end")
            raise
        except DatabaseError:
            self._leave(row, error)
            raise
        finally:
            with self._lock:
                self._producers.discard(producer)

    def _leave(self, row: Answer, error: str) -> None:
        """Have the sweeper end a row: now, or when the database is back."""
        try:
            rows.leave(row, error)
        except DatabaseError:
            with self._lock:
                self._left.append((row, error))
                self._start()

    def is_alive(self, producer: str) -> bool:
        """Return whether the process with this ID writes answers; raises EngineUnavailable."""
        owner = partial(_owner, name=lease_of(producer))
        return producer == self.uid or bool(serving.call(owner))

    def _run(self) -> None:
        while (producers := self._begun()) is not None:
            began = time.monotonic()
            try:
                self._tick(producers, began)
            except Exception as error:  # a defect here must not end every answer untold
                is_known = isinstance(error, EngineUnavailable | NotServing | Error)
                if self._outage.begins():
                    logger.warning("Answers wait: %s", error, exc_info=not is_known)
            time.sleep(max(TICK - (time.monotonic() - began), TICK / 10))

    def _begun(self) -> list[Producer] | None:
        """Return the producers; None if nothing is left to do: the thread is about to end."""
        with self._lock:
            if not self._producers and not self._left:
                self._thread = None
                return None
            return list(self._producers)

    def _tick(self, producers: Sequence[Producer], now: float) -> None:
        ready = [(each, new) for each in producers if (new := each.take(now)) is not None]
        if self._lease_until - LEASE + RENEW < now:
            self.renew()
        if ready:
            outcomes = stream.publish([new for _, new in ready])
            for (producer, _), outcome in zip(ready, outcomes, strict=True):
                if isinstance(outcome, Published):
                    producer.published(outcome)
        if silent := [each for each in producers if each.is_silent(now)]:
            channels = [each.row.own_channel for each in silent]
            tops = serving.call(partial(operations.positions, channels=channels))
            for producer, top in zip(silent, tops, strict=True):
                producer.looked(top, time.monotonic())
        saving = [each for each in producers if each.wants_saving]
        if (saving or self._left) and not self._saver.is_alive():
            self._saver = threading.Thread(target=self._save, args=(saving,), daemon=True)
            self._saver.start()

    def _save(self, producers: Sequence[Producer]) -> None:
        """Write rows in a thread of its own: a database that hangs delays no publication."""
        try:
            with own_connections():
                for producer in producers:
                    producer.save()
                while self._left:
                    rows.leave(*self._left[0])
                    del self._left[0]
        except DatabaseError as error:
            if self._outage_of_rows.begins():
                logger.warning("Rows of answers wait: %s", error)
            time.sleep(LOOK)


async def _claim(member: Member, uid: str) -> None:
    if member.cluster is not None:
        await member.cluster.claim(lease_of(uid), uid, LEASE)


async def _owner(member: Member, name: str) -> str | None:
    return None if member.cluster is None else await member.cluster.owner(name)


flusher = AnswerFlusher()
"""The flusher of this process."""


def _begin_forked() -> None:
    global flusher
    flusher = AnswerFlusher()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_forked)
