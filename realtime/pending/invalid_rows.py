"""Rows that were changed by hand so that no relay reads them, or fails to: they are parked.

SQLite keeps anything in any column, whatever its type is. Parked rows can be listed, retried and
dropped; the others of their shards go out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from django.db import DatabaseError, connections
from django.db.models import BinaryField, BooleanField, F, Func, Q, QuerySet
from django.db.models.functions import Substr

from realtime.pending.models import FIRST, LAST, SHARDS, Pending, now, shard_of, stored
from realtime.pending.publications import MAX_LENGTH
from realtime.pending.reading import completed, due_until, with_lengths

MAX_ROWS = 500
"""Rows that are parked together, and rows of a shard that are read one by one."""

_SQLITE_TIME = (
    "(substr(strftime('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%S', substr({0}, 1, 19), '+0 days'),"
    " 1, length({0})) IS substr({0}, 1, 19)"
    " AND (length({0}) < 20"
    " OR (substr({0}, 20) GLOB '.[0-9]*' AND substr({0}, 21) NOT GLOB '*[^0-9]*'))"
    " AND instr({0}, char(0)) = 0 AND rtrim({0}) = {0})"
).format("%(expressions)s")
"""A date that the calendar has, perhaps with hours, minutes, seconds and their fractions. Adding no
days makes 3 March of 31 February."""


def is_time(database: str, name: str) -> Q:
    """Return the condition that a field holds a time that Python has."""
    condition = Q(**{f"{name}__range": (stored(FIRST), stored(LAST))})
    if connections[database].vendor == "sqlite":
        condition &= Q(Func(F(name), template=_SQLITE_TIME, output_field=BooleanField()))
    return condition


def park_invalid(database: str) -> int:
    """Park rows that no relay would read: their shard or their time was changed by hand.

    They get the shard of their channel, so that they are published when an operator retries them.

    Returns:
        The number of rows. Others are left for the next call when there are many.
    """
    rows = Pending.objects.using(database)
    known = Q(shard__in=range(SHARDS))  # so that the index finds the times
    others = Q(shard__lt=0) | Q(shard__gte=SHARDS)
    is_sqlite = connections[database].vendor == "sqlite"
    if is_sqlite:
        for shard in range(SHARDS - 1):  # ranges, so that the index finds 3.5
            others |= Q(shard__gt=shard, shard__lt=shard + 1)
    invalid = [
        (others, f"the shard was not 0 to {SHARDS - 1}"),
        (known & Q(due__lt=stored(FIRST)), "it was due before the calendar begins"),
        (known & Q(due__gt=stored(LAST)), "it was due after the calendar ends"),
    ]
    if is_sqlite:
        invalid.append((~is_time(database, "due"), "it was due at no time of the calendar"))
    parked = 0
    for condition, reason in invalid:
        found = rows.filter(condition, due__isnull=False)
        # in SQLite a channel may be no text
        ids: Iterable[tuple[int, object]] = found.values_list("pk", "channel")[:MAX_ROWS]
        for pk, channel in ids:
            if isinstance(channel, str):
                parked += found.filter(pk=pk).update(
                    due=None, shard=shard_of(channel), error=f"Changed by hand: {reason}"
                )
            else:
                parked += _mend(rows.filter(pk=pk), _read)
    return parked


def is_unreadable(error: Exception) -> bool:
    """Return whether an error came of what is in a row, and not of the database."""
    if isinstance(error, DatabaseError):
        return "decode to UTF-8" in str(error)  # SQLite
    return isinstance(error, (ValueError, TypeError, AttributeError, OverflowError))


def park_unreadable(database: str) -> int:
    """Park rows that a relay fails to read: in columns of SQLite, and in keys, may be anything.

    It reads one row at a time, so it is for after such a failure. What was not text becomes text,
    and the key is a new one: operators see the row, and may retry it.

    Returns:
        The number of rows.
    """
    rows = Pending.objects.using(database)
    due = due_until(database, now()).order_by("due", "id").values_list("pk", flat=True)
    parked = 0
    for shard in range(SHARDS):
        for pk in list(due.filter(shard=shard)[:MAX_ROWS]):
            parked += _mend(rows.filter(pk=pk), _read)
    return parked


def mend_parked(database: str, read: Callable[[QuerySet[Pending]], object], limit: int) -> None:
    """Make the first of the parked rows readable, as `park_unreadable` does; after a failure, too.

    Args:
        read: reads rows as the caller did when it failed.
        limit: of the rows.
    """
    rows = Pending.objects.using(database)
    parked = rows.filter(due__isnull=True).order_by("id").values_list("pk", flat=True)
    for pk in list(parked[:limit]):
        _mend(rows.filter(pk=pk), read)


def _mend(row: QuerySet[Pending], read: Callable[[QuerySet[Pending]], object]) -> int:
    """Park a row if reading it fails. Return the number of rows: 1 or 0."""
    try:
        read(row)
    except Exception as error:  # of Django's conversions
        if not is_unreadable(error):
            raise
        changes: dict[str, Any] = {**_as_text(row)}
        if "channel" in changes:
            changes["shard"] = shard_of(changes["channel"])
        return row.update(
            **changes,
            key=uuid.uuid4(),
            due=None,
            attempts=0,
            error="Changed by hand: it cannot be read",
        )
    return 0


def _read(row: QuerySet[Pending]) -> None:
    for each in completed(row.db, list(with_lengths(row))):
        check_texts(each.channel, each.data, each.extras)


def check_texts(*texts: object) -> None:
    """Raise TypeError if one of these values of a row is not text."""
    if not all(isinstance(text, str) for text in texts):
        raise TypeError


def _as_text(row: QuerySet[Pending]) -> dict[str, str]:
    """Return the texts of a row as text, where the database keeps anything."""
    if connections[row.db].vendor != "sqlite":
        return {}
    names = ("channel", "data", "extras")
    cut = (Substr(name, 1, MAX_LENGTH) for name in names)
    template = "CAST(%(expressions)s AS BLOB)"
    columns = [Func(each, template=template, output_field=BinaryField()) for each in cut]
    texts = row.values_list(*columns).first() or ()  # an operator may have dropped it
    decoded = (bytes(each).decode(errors="backslashreplace") for each in texts)
    return dict(zip(names, decoded, strict=False))
