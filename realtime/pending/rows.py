"""Rows: writes durable publications in the caller's transaction, and shows them to operators."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from asgiref.sync import sync_to_async
from django.db import OperationalError, router
from django.db.models import Case, Count, F, Min, Q, QuerySet, When
from django.db.models.functions import Substr

from realtime.channel_rules import PENDING
from realtime.errors import EngineUnavailable
from realtime.metrics import Outage
from realtime.node.node import Node
from realtime.pending.invalid_rows import check_texts, is_time, is_unreadable, mend_parked
from realtime.pending.models import Pending, at_once, in_channels, now, stored
from realtime.pending.publications import row_of
from realtime.pending.relay import RelayThread
from realtime.pending.tables import with_table
from realtime.pending.wake_ups import WakeUps
from realtime.server_api.durable import DATA_SHOWN, Overview, ParkedRow, RelayCounters, RowKey
from realtime.server_api.transactions import Publications, under_way
from realtime.serving import Serving

logger = logging.getLogger("realtime.pending")

STOP_TIMEOUT = 1.0
"""Seconds."""
SUBSCRIBE_INTERVAL = 5.0
"""Seconds between attempts to subscribe to wake-ups."""


class Rows:
    """See `server_api.durable.PendingRows`."""

    def __init__(self, serving: Serving) -> None:
        self.counters = RelayCounters()
        self._serving = serving
        self._wake_ups = WakeUps(serving, self._wake)
        self._nodes: set[Node] = set()
        """The nodes of this process."""
        self._relay: RelayThread | None = None

    # writing

    def add(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> list[RowKey]:
        database = using or _database()
        created = now()
        at = at_once() if due is None else max(stored(due), at_once())
        rows = [row_of(new, at, created) for new, _ in publications]
        Pending.objects.using(database).bulk_create(rows)
        if due is None or stored(due) <= created:
            self._wake_ups.after_commit(database)
        return [RowKey(database, row.key.hex) for row in rows]

    def withdraw(self, keys: Sequence[RowKey]) -> None:
        for database in {row.database for row in keys}:
            here = [uuid.UUID(row.key) for row in keys if row.database == database]
            Pending.objects.using(database).filter(key__in=here)._raw_delete(database)

    async def aadd(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> None:
        await sync_to_async(self.add)(publications, due, using)

    # relaying

    async def start(self, node: Node) -> None:
        if self._relay is None or not self._relay.is_alive():
            self._nodes = set()  # in a forked process: those of the parent
            self._relay = RelayThread(self._serving, self.counters)
            self._relay.start()
        self._nodes.add(node)
        node.on_wake_up = self._wake
        await self._subscribe(node, Outage())

    async def _subscribe(self, node: Node, outage: Outage) -> None:
        """Subscribe a node to wake-ups, now or as soon as its engine lets it."""
        try:
            await node.broker.subscribe(PENDING)
        except EngineUnavailable as error:
            if outage.begins():
                logger.warning("Relays are not woken by other processes yet: %s", error)
            # of the node, so that the attempts end with it
            timer = node.timers.timer(lambda: node.spawn(self._subscribe(node, outage)))
            timer.set(node.timers.now() + SUBSCRIBE_INTERVAL)

    def begin_stop(self, node: Node) -> None:
        self._nodes.discard(node)
        if not self._nodes and self._relay is not None:
            self._relay.begin_stop()

    async def stop(self) -> None:
        if not self._nodes and self._relay is not None:
            await asyncio.to_thread(self._relay.join, STOP_TIMEOUT)

    def _wake(self) -> bool:
        relay = self._relay
        if relay is None or not relay.is_alive():  # as in a forked process
            return False
        relay.wake()
        return True

    # for operators

    def overview(self, databases: Sequence[str] | None = None) -> Overview:
        moment = now()
        is_due = Q(due__lte=moment)
        due_later = Q(due__gt=at_once()) & Q(due__gt=F("created"))  # than they were written
        with_rows = with_table(databases)
        if databases is None and not with_rows:
            raise OperationalError(f"no database has the table {Pending._meta.db_table}")
        counts = [
            Pending.objects.using(database).aggregate(
                waiting=Count("id", filter=is_due),
                scheduled=Count("id", filter=Q(due__gt=moment)),
                parked=Count("id", filter=Q(due__isnull=True)),
                due_when_written=Min(
                    "created", filter=is_due & ~due_later & is_time(database, "created")
                ),
                due_since=Min("due", filter=is_due & due_later & is_time(database, "due")),
            )
            for database in with_rows
        ]
        oldest = [
            each[name]
            for each in counts
            for name in ("due_when_written", "due_since")
            if each[name] is not None
        ]
        waiting = sum(each["waiting"] for each in counts)
        if waiting and not oldest:  # their times were changed by hand
            oldest = [moment]
        return Overview(
            waiting,
            sum(each["scheduled"] for each in counts),
            sum(each["parked"] for each in counts),
            max((moment - min(oldest)).total_seconds(), 0.0) if oldest else None,
        )

    def parked(self, limit: int) -> list[ParkedRow]:
        try:
            found = [row for rows in _parked() for row in _listed(rows, limit)]
        except Exception as error:  # of Django's conversions, if not of the database
            if not is_unreadable(error):
                raise
            for rows in _parked():
                mend_parked(rows.db, partial(_listed, limit=1), limit)
            found = [row for rows in _parked() for row in _listed(rows, limit)]
        found.sort(key=lambda row: (row.created is not None, row.created))
        return found[:limit]

    def retry(self, keys: Sequence[str] | None = None, channel: str | None = None) -> int:
        changed = 0
        for rows in _parked(keys, channel):
            if count := rows.update(due=at_once(), attempts=0, error=""):
                changed += count
                self._wake_ups.after_commit(rows.db)
        return changed

    def drop(self, keys: Sequence[str] | None = None, channel: str | None = None) -> int:
        # not `delete`: receivers of signals would have it read the rows, and delete them later
        return sum(rows._raw_delete(rows.db) for rows in _parked(keys, channel))


def _database() -> str:
    """Return where to write: the database of the transaction, or that of the routers."""
    routed = router.db_for_write(Pending)
    open_ones = [alias for alias in under_way() if router.allow_migrate_model(alias, Pending)]
    return open_ones[0] if open_ones and routed not in open_ones else routed


def _parked(
    keys: Sequence[str] | None = None, channel: str | None = None
) -> Iterator[QuerySet[Pending]]:
    """Yield the parked rows of each database; see `PendingRows.retry`."""
    for database in with_table():
        rows = Pending.objects.using(database).filter(due__isnull=True)
        if keys is not None:
            rows = rows.filter(key__in=[uuid.UUID(key) for key in keys])
        if channel is not None:
            rows = rows.filter(in_channels(database, [channel]))
        yield rows


def _listed(rows: QuerySet[Pending], limit: int) -> list[ParkedRow]:
    """Read rows for operators.

    Raises:
        Exception: `is_unreadable`: a row was changed by hand.
    """
    written = Case(When(is_time(rows.db, "created"), then=F("created")))
    rows = rows.annotate(beginning=Substr("data", 1, DATA_SHOWN + 1), written=written)
    fields = ("key", "channel", "beginning", "written", "attempts", "error")
    found = []
    for row in rows.order_by("id").values_list(*fields)[:limit]:
        key, channel, data, created, attempts, error = row
        check_texts(channel, data, error)
        found.append(ParkedRow(key.hex, channel, _cut(data), created, attempts, error))
    return found


def _cut(text: str) -> str:
    return text if len(text) <= DATA_SHOWN else text[:DATA_SHOWN] + "…"
