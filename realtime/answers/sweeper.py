"""The sweeper: ends what no process works on any more. One per service, beside a node.

Rows, and what becomes of them:

    streaming, and its process has had no lease for `PATIENCE`  ──► interrupted, with what it has
    queued for longer than `QUEUE_TIMEOUT`               ──► failed: no worker began it
    waiting, and nothing runs in its channel             ──► queued
    ended, longer than `KEEP_STREAM` ago                 ──► its chunks leave the engine
    ended, longer than `answers_keep` ago                ──► deleted
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta

from django.db import DatabaseError, DataError, IntegrityError
from django.utils import timezone

from realtime.answers import flusher as flushing
from realtime.answers import rows
from realtime.answers.models import Answer, Status, answers
from realtime.config import sources
from realtime.errors import EngineUnavailable, Error, NotServing
from realtime.hooks.runner import own_connections
from realtime.metrics import Outage
from realtime.node.node import Node
from realtime.server_api.queries import history_remove
from realtime.timers import Timer

logger = logging.getLogger("realtime.answers")

INTERVAL = 5.0
"""Seconds between looks."""
PATIENCE = 4.5
"""Seconds within which a process that lives renews a lease that the engine lost."""
CLAIM = "answers"
CLAIM_LIFETIME = 3 * INTERVAL
QUEUE_TIMEOUT = timedelta(seconds=300)
KEEP_STREAM = timedelta(seconds=60)
"""How long readers who come back find the chunks that they missed."""
AT_ONCE = 500
"""Answers of one look, of each kind."""


class AnswerSweeper:
    """See the module; the contract is `server_api.node_apps.NodeApp`."""

    def __init__(self) -> None:
        self._missing: dict[str, float] = {}
        """Producers without a lease → when that was seen first."""
        self._outage = Outage()
        self._outage_of_ends = Outage()

    async def start(self, node: Node) -> None:
        """Look now, and every `INTERVAL` seconds, until the node stops."""
        timer = node.timers.timer(lambda: node.spawn(self._run(node, timer)))
        timer.set(node.timers.now())

    def begin_stop(self, node: Node) -> None:
        """Do nothing: the timer ends with the node."""

    async def stop(self) -> None:
        """Wait for nothing: a look may end at any point, as when its process dies."""

    async def _run(self, node: Node, timer: Timer) -> None:
        try:
            cluster = node.cluster
            if cluster is None or await cluster.claim(CLAIM, node.uid, CLAIM_LIFETIME) == node.uid:
                await asyncio.to_thread(self.sweep)
        except Exception as error:
            is_known = isinstance(error, DatabaseError | EngineUnavailable | NotServing)
            if self._outage.begins():
                message = "Answers of processes that died wait for their end: %s"
                logger.warning(message, error, exc_info=not is_known)
        timer.set(node.timers.now() + INTERVAL)

    def sweep(self) -> None:
        """Look once, in this thread.

        Raises:
            EngineUnavailable, DatabaseError: the engine, or the database, is away.
        """
        with own_connections():
            self._end_lost()
            self._end_queued()
            self._promote()
            self._forget_streams()
            self._delete()

    def _end_lost(self) -> None:
        streaming = answers(status=Status.STREAMING)
        producers = streaming.values_list("producer", flat=True).distinct()
        gone = [each for each in producers if each and not flushing.flusher.is_alive(each)]
        now = time.monotonic()
        self._missing = {each: self._missing.get(each, now) for each in gone}
        lost = [each for each, since in self._missing.items() if now - since >= PATIENCE]
        for row in streaming.filter(producer__in=["", *lost]).order_by("?")[:AT_ONCE]:
            self._end(row, Status.FAILED if row.error else Status.INTERRUPTED, row.error)

    def _end_queued(self) -> None:
        late = answers(status=Status.QUEUED, queued__lt=timezone.now() - QUEUE_TIMEOUT)
        for row in late.order_by("?")[:AT_ONCE]:  # some may fail again and again
            self._end(row, Status.FAILED, "no worker began it in time")

    def _end(self, row: Answer, status: str, error: str) -> None:
        try:
            rows.end(row, status, error)
        except (Error, DataError, IntegrityError) as failure:  # one row must not keep the others
            if self._outage_of_ends.begins():
                logger.error("Answer %s could not be ended, trying again: %s", row.pk, failure)

    def _promote(self) -> None:
        channels = answers(status=Status.WAITING).values_list("channel", flat=True).distinct()
        for channel in channels[:AT_ONCE]:
            rows.promote(channel)

    def _forget_streams(self) -> None:
        """Remove the chunks of answers that ended a while ago: their rows have them."""
        ended = answers(ended__lt=timezone.now() - KEEP_STREAM, position__gte=0)
        for row in ended[:AT_ONCE]:
            history_remove(row.own_channel)
            answers(pk=row.pk).update(position=-1, epoch="")

    def _delete(self) -> None:
        """Delete old answers, once their chunks have left the engine."""
        if keep := sources.current().answers_keep:
            old = answers(ended__lt=timezone.now() - timedelta(seconds=keep), position__lt=0)
            found = list(old.values_list("pk", flat=True)[:AT_ONCE])
            answers(pk__in=found).delete()
