"""Shards of the table of pending publications: which are due, and which relay works on them.

A relay takes a shard before it reads rows of it. Where the database has SKIP LOCKED the relay locks
the row of the shard in a transaction, so the database frees it when the relay dies. Elsewhere it
writes a lease into the row, which ends after `LEASE` seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import connections, transaction
from django.db.models import Func, OuterRef, Q, Subquery, TextField, Value

from realtime.pending.models import SHARDS, Pending, Relay, stored

LEASE = timedelta(seconds=3)

_WITHOUT_SYNC = Func(
    # True: in this transaction; a pooler may give the session to others
    *map(Value, ("synchronous_commit", "off", True)),
    function="set_config",
    output_field=TextField(),
)
"""Has PostgreSQL commit without waiting for its disk, set by the query that locks."""


def now() -> datetime:
    """Return the time as rows have it."""
    return stored(datetime.now(UTC))


def next_due(database: str) -> dict[int, datetime]:
    """Return shard → when its next row is due, for shards with rows that are not parked."""
    rows = Pending.objects.using(database).filter(shard=OuterRef("shard"), due__isnull=False)
    first = Subquery(rows.order_by("due").values("due")[:1])
    shards = dict(Relay.objects.using(database).annotate(first=first).values_list("shard", "first"))
    if len(shards) < SHARDS:
        missing = [Relay(shard=shard) for shard in range(SHARDS) if shard not in shards]
        Relay.objects.using(database).bulk_create(missing, ignore_conflicts=True)
        return next_due(database)
    return {shard: first for shard, first in shards.items() if first is not None}


@contextmanager
def taken(database: str, shards: Sequence[int], owner: str) -> Iterator[list[Relay]]:
    """Take those of these shards that are free, until the end of the block.

    Args:
        owner: of the leases: a word that no other relay has.
    """
    rows = Relay.objects.using(database).filter(shard__in=shards)
    if connections[database].features.has_select_for_update_skip_locked:
        with transaction.atomic(using=database):
            if connections[database].vendor == "postgresql":
                rows = rows.annotate(without_sync=_WITHOUT_SYNC)
            yield list(rows.select_for_update(skip_locked=True))
        return
    began = now()
    free = Q(owner="") | Q(until__isnull=True) | Q(until__lt=began)
    if not rows.filter(free).update(owner=owner, until=began + LEASE):
        yield []
        return
    try:
        yield list(rows.filter(owner=owner))
    finally:
        rows.filter(owner=owner).update(owner="", until=None)


def due_rows(database: str, taken: Sequence[Relay], limit: int) -> list[Pending]:
    """Return the rows to publish now, each shard's in their order.

    It is one query, where the database can join the parts. Call it after `taken`: rows that were
    read before the lock may have been published by the relay that had it.

    Args:
        limit: of all rows; each shard has an equal share.
    """
    parts = []
    for shard in taken:
        rows = Pending.objects.using(database).filter(shard=shard.shard, due__lte=now())
        if held := held_channels(shard):
            rows = rows.exclude(channel__in=held)
        parts.append(rows.order_by("due", "id")[: limit // len(taken)])
    if len(parts) < 2 or not connections[database].features.supports_slicing_ordering_in_compound:
        return [row for part in parts for row in part]
    first, *others = parts
    # databases promise no order of what they join
    return sorted(first.union(*others, all=True), key=lambda row: (row.due, row.pk))


def held_channels(shard: Relay) -> dict[str, float]:
    """Return the channels of a shard that wait after a failure, and until when."""
    held: dict[str, float] = json.loads(shard.held) if shard.held else {}
    now = time.time()
    return {channel: until for channel, until in held.items() if until > now}


def hold(database: str, shard: Relay, channels: dict[str, float]) -> None:
    """Let channels of a shard wait: channel → Unix seconds."""
    text = json.dumps(held_channels(shard) | channels)
    Relay.objects.using(database).filter(shard=shard.shard).update(held=text)
