"""Rows that were changed by hand."""

from __future__ import annotations

from typing import Any

from django.db import connection

import realtime
from realtime.pending.models import Pending, shard_of


def beside(channel: str) -> str:
    """A channel of the same shard."""
    names = (f"orders:{number}" for number in range(1000))
    return next(name for name in names if name != channel and shard_of(name) == shard_of(channel))


NEIGHBOUR = beside("orders:bad")


def bad_row(**fields: Any) -> Pending:
    """A row that was changed by hand, and another one behind it in its shard."""
    realtime.publish("orders:bad", 1, durable=True)
    realtime.publish(NEIGHBOUR, 2, durable=True)
    Pending.objects.filter(channel="orders:bad").update(**fields)
    return Pending.objects.get(id=min(Pending.objects.values_list("id", flat=True)))


def change_by_hand(column: str, value: Any, as_: str = "%s") -> None:
    with connection.cursor() as cursor:
        change = f"UPDATE realtime_pending SET {column} = {as_} WHERE channel = 'orders:bad'"
        cursor.execute(change, [value])
