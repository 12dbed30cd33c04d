"""The last publications by operators, from the admin's log."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import NamedTuple

from django.contrib.admin.models import LogEntry
from django.db import DatabaseError

from .. import audit, channel_names
from ..operators import Operator

SHOWN = 10
"""Publications in the list."""

MAX_ENTRIES = 200
"""Entries of the log that are read for the list."""

CHANNELS_SHOWN = 5


class PastPublication(NamedTuple):
    """One publication into one or many channels."""

    pk: int
    """Primary key of its entry, which names it in URLs."""
    time: datetime
    by: str
    channels: list[str]
    """Channels that this operator may publish into, too."""
    data: str
    is_whole: bool
    """False if the log has only the beginning of the data."""

    @property
    def first_channels(self) -> list[str]:
        """The channels to show."""
        return self.channels[:CHANNELS_SHOWN]

    @property
    def other_channels(self) -> int:
        """Number of channels that are not shown."""
        return max(0, len(self.channels) - CHANNELS_SHOWN)

    @property
    def form_values(self) -> dict[str, str]:
        """Values of the form to publish it again."""
        return {
            "channel": channel_names.join(self.channels),
            "data": self.data if self.is_whole else "",
        }


def publications(operator: Operator) -> list[PastPublication]:
    """Return the last publications into channels of this operator, newest first.

    Nothing if the log cannot be read.
    """
    try:
        with audit.reading():
            # in chunks, because the first one usually has the whole list
            entries = audit.entries(audit.PUBLISH)[:MAX_ENTRIES].iterator(chunk_size=50)
            found = (_publication(entry, operator) for entry in entries)
            return list(islice((each for each in found if each.channels), SHOWN))
    except DatabaseError:
        return []


def publication(operator: Operator, pk: str) -> PastPublication | None:
    """Return one publication of the log; None if this operator may publish into none of it.

    Raises:
        DatabaseError: the log cannot be read.
    """
    key = audit.key_of(pk)
    with audit.reading():
        entry = None if key is None else audit.entries(audit.PUBLISH).filter(pk=key).first()
        found = _publication(entry, operator) if entry is not None else None
    return found if found and found.channels else None


def _publication(entry: LogEntry, operator: Operator) -> PastPublication:
    data = audit.detail_of(entry)
    return PastPublication(
        pk=entry.pk,
        time=entry.action_time,
        by=entry.user.get_username(),
        channels=[name for name in audit.targets_of(entry) if operator.may_publish(name)],
        data=data,
        is_whole=len(data) <= audit.DETAIL_MAX_LENGTH,
    )
