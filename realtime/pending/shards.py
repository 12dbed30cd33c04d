"""Shards of the table of pending publications: which relay works on them, and what waits in them.

A relay takes a shard before it reads rows of it. Where the database has SKIP LOCKED the relay locks
the row of the shard in a transaction, so the database frees it when the relay dies. Elsewhere it
writes a lease into the row, which ends after `LEASE` seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.db import connections, transaction
from django.db.models import Func, Q, TextField, Value

from realtime.pending.models import Relay, now

LEASE = timedelta(seconds=3)
MAX_HOLD = 10.0
"""Seconds. A channel that waits for longer, or a lease of twice its time, is of a wrong clock."""


def _set(name: str, value: str) -> Func:
    # True: in this transaction; a pooler may give the session to others
    values = map(Value, (name, value, True))
    return Func(*values, function="set_config", output_field=TextField())


_IDLE = "idle_in_transaction_session_timeout"
_APART = {
    "without_sync": _set("synchronous_commit", "off"),
    "until_idle": _set(_IDLE, "60s"),
}
_TOGETHER = {"until_idle": _set(_IDLE, "5s")}
"""Of PostgreSQL, set by the query that locks: to commit without waiting for the disk, unless
publications are in the commit, and to free the shards of a process that stands still: soon, if it
may have locked channels."""


@contextmanager
def taken(
    database: str, shards: Sequence[int], owner: str, together: bool = False
) -> Iterator[list[Relay]]:
    """Take those of these shards that are free, until the end of the block.

    Args:
        owner: of the leases: a word that no other relay has.
        together: publications are in the commit.
    """
    # not the end of a lease, which may be a time that Python does not have
    rows = Relay.objects.using(database).filter(shard__in=shards).only("shard", "held")
    if connections[database].features.has_select_for_update_skip_locked:
        with transaction.atomic(using=database):
            if connections[database].vendor == "postgresql":
                rows = rows.annotate(**_TOGETHER if together else _APART)
            yield list(rows.select_for_update(skip_locked=True))
        return
    began = now()
    free = Q(owner="") | Q(until__isnull=True) | ~Q(until__range=(began, began + 2 * LEASE))
    if not rows.filter(free).update(owner=owner, until=began + LEASE):
        yield []
        return
    try:
        yield list(rows.filter(owner=owner))
    finally:
        rows.filter(owner=owner).update(owner="", until=None)


def held_channels(shard: Relay) -> dict[str, float]:
    """Return the channels of a shard that wait after a failure, and until when."""
    try:
        held = json.loads(shard.held or "{}")
        now = time.time()
        return {name: until for name, until in held.items() if now < until < now + MAX_HOLD}
    except (ValueError, TypeError, AttributeError, RecursionError):  # changed by hand
        return {}


def hold(database: str, shard: Relay, channels: dict[str, float]) -> None:
    """Let channels of a shard wait: channel → Unix seconds."""
    text = json.dumps(held_channels(shard) | channels)
    Relay.objects.using(database).filter(shard=shard.shard).update(held=text)
