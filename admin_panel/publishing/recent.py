"""The last publications by operators, from the admin's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from django.contrib.admin.models import LogEntry

from .. import audit
from ..operators import Operator
from . import channel_names

SHOWN = 10
"""Publications in the list."""

MAX_ENTRIES = 1500
"""Entries of the log that are read for the list."""

CHANNELS_SHOWN = 5

ONE_ACTION = timedelta(seconds=2)
"""Longest time between the entries of one publication into many channels."""


class Publication(NamedTuple):
    """One publication into one or many channels."""

    pk: int
    """Primary key of its newest entry, which names it in URLs."""
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


def publications(operator: Operator) -> list[Publication]:
    """Return the last publications into channels of this operator, newest first."""
    # in chunks, because the first one usually has the whole list
    entries = audit.entries(audit.PUBLISH)[:MAX_ENTRIES].iterator(chunk_size=200)
    own = (entry for entry in entries if operator.may_publish(entry.object_id or ""))
    return list(islice(_gathered(own), SHOWN))


def _gathered(entries: Iterable[LogEntry]) -> Iterator[Publication]:
    group: dict[str | None, LogEntry] = {}  # one entry for each channel of a publication
    newer: LogEntry | None = None
    for entry in entries:
        if newer and (entry.object_id in group or not _belong_together(newer, entry)):
            yield _publication(list(group.values()))
            group = {}
        group[entry.object_id] = newer = entry
    if group:
        yield _publication(list(group.values()))


def _belong_together(newer: LogEntry, older: LogEntry) -> bool:
    return (
        newer.user_id == older.user_id
        and newer.change_message == older.change_message
        and newer.action_time - older.action_time < ONE_ACTION
    )


def _publication(group: list[LogEntry]) -> Publication:
    newest = group[0]
    data = audit.detail_of(newest)
    return Publication(
        pk=newest.pk,
        time=newest.action_time,
        by=newest.user.get_username(),
        channels=[entry.object_id or "" for entry in reversed(group)],
        data=data,
        is_whole=len(data) <= audit.DETAIL_MAX_LENGTH,
    )
