"""Pending publications, and which relay works on them.

A row of `Pending` is deleted as soon as it is published, so the table is small and busy. Rows of a
channel belong to one shard, and one relay at a time works on a shard: it keeps their order.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Collection
from datetime import UTC, datetime

from django.conf import settings
from django.db import connections, models
from django.db.models import BinaryField, F, Func, Q
from django.db.models.lookups import In
from django.utils import timezone

SHARDS = 16

FIRST = datetime(1, 1, 3, tzinfo=UTC)
LAST = datetime(9999, 12, 29, tzinfo=UTC)
"""The calendar of rows: in no time zone its ends are beyond that of Python. Databases keep times
outside of it, and times without an end; see `invalid_rows`."""


def shard_of(channel: str) -> int:
    """Return the shard of a channel. It must be the same in every version and process."""
    return zlib.crc32(channel.encode()) % SHARDS


def stored(moment: datetime) -> datetime:
    """Return a moment as this site stores it: without a time zone where USE_TZ is off.

    Raises:
        ValueError: it is after the `LAST`.
    """
    if moment > LAST:
        raise ValueError("at is beyond the calendar")
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def now() -> datetime:
    """Return the time as rows have it."""
    return stored(datetime.now(UTC))


def at_once() -> datetime:
    """Return the `due` of rows to be published at once.

    It is the same for all of them, so that their order is that of their ids, and does not depend
    on the clocks of several hosts.
    """
    return stored(datetime(2000, 1, 1, tzinfo=UTC))


class Pending(models.Model):
    """A publication that was committed and is not published yet."""

    id = models.BigAutoField(primary_key=True)
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """The idempotency key with which it is published, unless the caller gave one."""
    shard = models.SmallIntegerField()
    channel = models.TextField()
    data = models.TextField()
    """JSON text, as it was given."""
    extras = models.TextField(default="", blank=True)
    """What else belongs to the publication, as text; see `publications`."""
    due = models.DateTimeField(null=True)
    """When to publish it; `at_once`; or None, when it is parked."""
    created = models.DateTimeField()
    attempts = models.SmallIntegerField(default=0)
    """How often the service refused it."""
    error = models.TextField(default="", blank=True)
    """Why the service refused it, the last time; without an attempt, why one before it was."""

    length: int
    """Characters of `data` and `extras`, in rows of `reading`."""
    reason: str
    """The beginning of `error`, there."""

    class Meta:
        db_table = "realtime_pending"
        verbose_name = "pending publication"
        verbose_name_plural = "pending publications"
        indexes = (models.Index(fields=("shard", "due", "id"), name="realtime_pending_due"),)

    def __str__(self) -> str:
        return f"{self.channel} ({self.key})"


def in_channels(database: str, names: Collection[str]) -> Q:
    """Return the condition that a row is of one of these channels.

    MySQL and MariaDB take "A" and "a" for the same, so they compare bytes.
    """
    if connections[database].vendor != "mysql":
        return Q(channel__in=names)
    template = "CAST(%(expressions)s AS BINARY)"
    column = Func(F("channel"), template=template, output_field=BinaryField())
    return Q(In(column, [name.encode() for name in names]))


class Relay(models.Model):
    """A shard, and which relay works on it. Databases with SKIP LOCKED need only its lock."""

    shard = models.SmallIntegerField(primary_key=True)
    owner = models.CharField(max_length=32, default="", blank=True)
    until = models.DateTimeField(null=True)
    """Until when it belongs to the owner; where the database cannot lock it."""
    held = models.TextField(default="", blank=True)
    """Channels that wait after a failure, as a JSON object: channel → Unix seconds."""

    class Meta:
        db_table = "realtime_pending_relay"
        verbose_name = "shard of pending publications"
        verbose_name_plural = "shards of pending publications"

    def __str__(self) -> str:
        return str(self.shard)
