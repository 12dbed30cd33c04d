"""A publication as a row, and back."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.engine.once import Once
from realtime.errors import BadRequest
from realtime.pending.models import Pending, shard_of
from realtime.server_api import extras

ONCE_LIFETIME = 86_400
"""Seconds for which the engine remembers that a row was published."""

MAX_LENGTH = 64 * 2**20
"""Characters of a row. Redis closes the connection on which half a gigabyte comes."""


def row_of(new: NewPublication, due: datetime, created: datetime) -> Pending:
    """Return the row of a publication. It is not written yet.

    Raises:
        BadRequest: the name of the channel holds a null character, which databases refuse.
        ValueError: the publication is longer than a row may be.
    """
    if "\0" in new.channel:
        raise BadRequest
    data, more = new.data.raw.decode(), extras.to_text(new)
    check_length(len(data) + len(more))
    return Pending(
        shard=shard_of(new.channel),
        channel=new.channel,
        data=data,
        extras=more,
        due=due,
        created=created,
    )


def check_length(length: int) -> None:
    """Raise ValueError if a row is longer than it may be. `length`: of data and extras."""
    if length > MAX_LENGTH:
        raise ValueError(f"a durable publication has at most {MAX_LENGTH} characters, not {length}")


def publication_of(row: Pending) -> NewPublication:
    """Return the publication that a row keeps; see `shards.due_rows`.

    Raises:
        ValueError, TypeError: the row holds something else, or is too long.
    """
    check_length(row.length)
    data = payload.check(row.data.encode())
    new = extras.with_extras(NewPublication(row.channel, data), row.extras)
    return new if new.once else replace(new, once=Once(row.key.hex, ONCE_LIFETIME))
