"""Durable publications: the contract between `publish` and the app that keeps them in rows.

When Django loads the app `realtime.pending`, the app gives `serving` a `PendingRows`. Nothing
outside the app imports it: publishing, serving, the console and the panel know this contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec
from django.core.exceptions import ImproperlyConfigured

from realtime.config.options import ChannelOptions
from realtime.server_api.node_apps import NodeApp
from realtime.server_api.transactions import Publications

LATE = 60.0
"""Seconds. A row that waits longer than this is worth a warning."""


DATA_SHOWN = 200
"""Characters of the data of a parked row."""


class ParkedRow(NamedTuple):
    """A row that the service refused or could not read, and that waits for an operator."""

    key: str
    """Hexadecimal digits, the same in no two rows."""
    channel: str
    data: str
    """JSON text. What follows `DATA_SHOWN` characters is left out."""
    created: datetime | None
    """None: it was changed by hand, and is no time."""
    attempts: int
    error: str


class Overview(NamedTuple):
    """The rows of the databases, counted."""

    waiting: int
    """Rows that are due."""
    scheduled: int
    """Rows that are due later."""
    parked: int
    oldest: float | None
    """Seconds for which the first of the waiting rows has been due; None: none waits."""

    @property
    def is_late(self) -> bool:
        """Whether a row waits longer than it should: no process relays, or the engine is away."""
        return self.oldest is not None and self.oldest > LATE


class RelayCounters:
    """What the relay of this process has done since its start. The numbers only grow."""

    __slots__ = ("failures", "parked", "refused", "relayed")

    def __init__(self) -> None:
        self.relayed = 0
        """Rows that were published, and deleted."""
        self.refused = 0
        """Attempts that the service refused."""
        self.parked = 0
        """Rows that were refused too often."""
        self.failures = 0
        """Attempts that failed because the engine, or a database, was away."""


class RowKey(NamedTuple):
    """Where a row is, until it is published."""

    database: str
    """An alias."""
    key: str
    """Hexadecimal digits, the same in no two rows."""


class RowWriter(Protocol):
    """Writes publications into the site's databases."""

    def add(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> list[RowKey]:
        """Write a row for each publication, in the transaction that is under way.

        Args:
            due: when to publish them; None: as soon as they are committed.
            using: alias of the database; None: that of the transaction.

        Returns:
            The keys of the rows, in the order of the publications.

        Raises:
            BadRequest: the name of a channel holds a null character, which databases refuse.
            Exception: the database refused.
        """

    async def aadd(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> None:
        """Write a row for each publication. Async version of `add`."""

    def withdraw(self, keys: Sequence[RowKey]) -> None:
        """Delete rows that the transaction under way has written; others must not be named.

        Raises:
            Exception: the database refused.
        """


class PendingRows(RowWriter, NodeApp, Protocol):
    """Keeps publications in the site's databases until they are published.

    `overview` and the methods below it raise what the database raises.
    """

    counters: RelayCounters

    def overview(self, databases: Sequence[str] | None = None) -> Overview:
        """Count the rows in databases with these aliases; None: in all that have the table.

        Raises:
            OperationalError: none has it. The app was not migrated.
        """

    def parked(self, limit: int) -> list[ParkedRow]:
        """Return the oldest of the parked rows, `limit` at most."""

    def retry(self, keys: Sequence[str] | None = None, channel: str | None = None) -> int:
        """Relay parked rows again: those with these keys, or of this channel, or all of them.

        Returns:
            The number of rows.
        """

    def drop(self, keys: Sequence[str] | None = None, channel: str | None = None) -> int:
        """Delete parked rows, chosen as for `retry`. They are never published."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """When and how a publication goes out: options of `publish`."""

    on_commit: bool = True
    fail_silently: bool = False
    durable: bool | None = None
    at: datetime | timedelta | None = None
    using: str | None = None
    is_answered: bool = False
    """Whether the caller expects a position, and needs the answer."""

    def check(self) -> None:
        """Check that the options agree.

        Raises:
            ValueError: they do not.
        """
        if self.is_answered and (self.durable or self.at is not None):
            raise ValueError("expect is answered at once: leave out durable and at")
        if self.durable is False and (self.at is not None or self.using is not None):
            raise ValueError("at and using are for durable publications")
        if not self.on_commit and (self.durable or self.at is not None):
            raise ValueError("a durable publication goes out after the commit: leave out on_commit")

    def due(self) -> datetime | None:
        """Return when publications are due, in UTC; None: as soon as they are committed.

        Raises:
            TypeError: `at` is not a time.
            ValueError: it has no time zone, or is beyond the calendar.
        """
        at = self.at
        try:
            if at is None:
                return None
            if isinstance(at, timedelta):
                return datetime.now(UTC) + at
            if not isinstance(at, datetime):
                raise TypeError(f"at must be a datetime or timedelta, not {type(at).__name__}")
            if at.utcoffset() is None:
                raise ValueError("at must have a time zone: use django.utils.timezone.now()")
            return at.astimezone(UTC)
        except OverflowError:
            raise ValueError("at is beyond the calendar") from None

    def chooses_row(self, options: ChannelOptions) -> bool:
        """Return whether a publication in a channel with these options is kept in a row.

        Raises:
            ValueError: the channel is durable, and the caller expects a position.
        """
        if self.durable is not None or self.at is not None:
            return self.durable is not False
        if not (self.on_commit and options.durable):
            return False
        if self.is_answered:
            raise ValueError("expect is answered at once: in a durable channel, pass durable=False")
        return True


def rows_of(writer: RowWriter | None) -> RowWriter:
    """Return what writes rows in this process.

    Raises:
        ImproperlyConfigured: the app is not installed.
    """
    if writer is None:
        raise ImproperlyConfigured(
            'A durable publication needs the app: add "realtime.pending" to INSTALLED_APPS, and'
            " migrate."
        )
    return writer
