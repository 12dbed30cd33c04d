"""Reading the rows that are due, whatever is in them.

Anybody who can write to the database can write a row, and one of them must not keep the others
waiting: it may hold times that Python does not have, or more data than a process has memory. See
`invalid_rows` for what cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.db import connections
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Length, Substr

from realtime.pending.models import FIRST, SHARDS, Pending, Relay, in_channels, now, stored
from realtime.pending.publications import MAX_LENGTH
from realtime.pending.shards import held_channels

LOOK_AHEAD = timedelta(seconds=1)
"""Rows that are due later do not matter before the next look."""

SHORT = 8192
"""Characters of data, and of extras, that are read together with the row."""
REASON_LENGTH = 500
"""Characters of an error."""
AHEAD = 1000
"""Rows behind parked ones that learn their error: more than the next round tries."""
LONG_TOGETHER = 16 * 2**20
"""Characters of longer rows in one round. One row may have more than that."""


def next_due(database: str) -> dict[int, datetime]:
    """Return shard → when its next row is due, for shards with rows that are due soon."""
    rows = due_until(database, now() + LOOK_AHEAD).filter(shard=OuterRef("shard"))
    first = Subquery(rows.order_by("due").values("due")[:1])
    shards = dict(Relay.objects.using(database).annotate(first=first).values_list("shard", "first"))
    if missing := [Relay(shard=shard) for shard in range(SHARDS) if shard not in shards]:
        Relay.objects.using(database).bulk_create(missing, ignore_conflicts=True)
        return next_due(database)
    return {shard: first for shard, first in shards.items() if first is not None}


def due_until(database: str, moment: datetime) -> QuerySet[Pending]:
    """Return the rows that are due at a moment."""
    return Pending.objects.using(database).filter(due__range=(stored(FIRST), moment))


def due_rows(database: str, taken: Sequence[Relay], limit: int) -> list[Pending]:
    """Return the rows to publish now, each shard's in their order.

    It is one query, where the database can join the parts. Call it after `taken`: rows that were
    read before the lock may have been published by the relay that had it.

    Args:
        limit: of all rows; each shard has an equal share.
    """
    parts = []
    for shard in taken:
        rows = due_until(database, now()).filter(shard=shard.shard)
        if held := held_channels(shard):
            rows = rows.exclude(in_channels(database, held))
        parts.append(with_lengths(rows).order_by("due", "id")[: limit // len(taken)])
    if len(parts) < 2 or not connections[database].features.supports_slicing_ordering_in_compound:
        found = [row for part in parts for row in part]
    else:
        first, *others = parts
        # databases promise no order of what they join
        found = sorted(first.union(*others, all=True), key=lambda row: (row.due, row.pk))
    return completed(database, found)


def rows_behind(database: str, parked: Sequence[Pending]) -> QuerySet[Pending]:
    """Return the first rows of the same channels that were not tried, and have no error yet."""
    names = {row.channel for row in parked}
    rows = due_until(database, now()).filter(shard__in={row.shard for row in parked})
    rows = rows.filter(in_channels(database, names), attempts=0, error="")
    # a list: MariaDB cannot limit a subquery
    ids = list(rows.order_by("due", "id").values_list("pk", flat=True)[:AHEAD])
    return Pending.objects.using(database).filter(pk__in=ids)


def with_lengths(rows: QuerySet[Pending]) -> QuerySet[Any]:
    """Read of rows what `completed` completes."""
    return rows.only("id", "key", "shard", "channel", "due", "attempts").annotate(
        characters=Length("data") + Length("extras"),
        short_data=Substr("data", 1, SHORT),
        short_extras=Substr("extras", 1, SHORT),
        short_error=Substr("error", 1, REASON_LENGTH),
    )


def completed(database: str, rows: list[Any]) -> list[Pending]:
    """Give rows their data. Leave out those behind more long ones than a round may have.

    What is longer than any publication stays cut.
    """
    lengths = [row.characters if SHORT < row.characters <= MAX_LENGTH else 0 for row in rows]
    before = accumulate(lengths, initial=0)
    rows = [row for row, sum_ in zip(rows, before, strict=False) if sum_ < LONG_TOGETHER]
    long = [row.pk for row, length in zip(rows, lengths, strict=False) if length]
    whole = {}
    if long:
        fields = Pending.objects.using(database).filter(pk__in=long)
        whole = {pk: texts for pk, *texts in fields.values_list("pk", "data", "extras")}
    for row in rows:
        row.length, row.reason = row.characters, row.short_error
        row.data, row.extras = whole.get(row.pk, (row.short_data, row.short_extras))
    return rows
