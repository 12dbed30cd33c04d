"""Where the publications of operators are: so the history can say who published what.

A row says that one position of a stream belongs to an entry of the log, in whose database it is.
Only a publication with history has a position. One that the service took for a repetition has the
position of another one, and no row: see `is_own`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable

from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, router, transaction

from .. import audit
from ..models import Published
from ..service import Position

logger = logging.getLogger("realtime.admin_panel")

LAST_OFFSET = 2**63 - 1
"""What databases store. No stream comes so far."""


def stream_of(channel: str, epoch: str) -> str:
    """Return the digest of a channel and an epoch. It must be the same in every version."""
    text = f"{len(channel)}:{channel}{epoch}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_own(position: Position, before: Position | None) -> bool:
    """Return whether a publication is the operator's, and not one that was there before.

    Args:
        position: what the service returned for it.
        before: the top of the stream before it; None: the service publishes it in any case.
    """
    return before is None or position.epoch != before.epoch or position.offset > before.offset


def record(entry: LogEntry, published: Iterable[tuple[str, Position | None]]) -> None:
    """Keep where the publications of an entry are. Without its row, one has no name in the history.

    Args:
        entry: of the log.
        published: the channel and the position of each; None without history.
    """
    rows = [
        # by its key: a router may say that models of the panel are in another database
        Published(
            entry_id=entry.pk, stream=stream_of(channel, position.epoch), offset=position.offset
        )
        for channel, position in published
        if position is not None and position.offset <= LAST_OFFSET
    ]
    database = router.db_for_write(LogEntry)
    try:
        with transaction.atomic(using=database):
            Published.objects.using(database).bulk_create(rows)
    except DatabaseError:
        logger.exception("Could not keep the positions of publications; has `migrate` run?")


def publishers(channel: str, epoch: str, offsets: Collection[int]) -> dict[int, str]:
    """Return which operators published what a channel keeps: offset → name.

    Args:
        channel: its name.
        epoch: of its stream.
        offsets: of the publications to look for.
    """
    looked_for = [offset for offset in offsets if 0 < offset <= LAST_OFFSET]
    if not looked_for:
        return {}
    database = router.db_for_read(LogEntry)
    rows = (
        Published.objects.using(database)
        .filter(stream=stream_of(channel, epoch), offset__in=looked_for)
        .select_related("entry__user")
        .order_by("-pk")  # of several, the first one counts
    )
    try:
        with audit.reading():
            return {
                row.offset: row.entry.user.get_username()
                for row in rows
                # where another program emptied the log, another entry may have the key
                if channel in audit.targets_of(row.entry)
            }
    except DatabaseError:
        return {}
