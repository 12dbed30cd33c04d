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
from django.db.models import OuterRef, Q, Subquery

from realtime.pending.models import SHARDS, Pending, Relay, stored

LEASE = timedelta(seconds=3)


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


def held_channels(shard: Relay) -> dict[str, float]:
    """Return the channels of a shard that wait after a failure, and until when."""
    held: dict[str, float] = json.loads(shard.held) if shard.held else {}
    now = time.time()
    return {channel: until for channel, until in held.items() if until > now}


def hold(database: str, shard: Relay, channels: dict[str, float]) -> None:
    """Let channels of a shard wait: channel → Unix seconds."""
    text = json.dumps(held_channels(shard) | channels)
    Relay.objects.using(database).filter(shard=shard.shard).update(held=text)
