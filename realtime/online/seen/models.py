"""When each user was online last.

User IDs may be any text. So the key is a digest: databases differ in how long a key may be, which
characters it may have, and whether "A" and "a" are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from django.conf import settings
from django.db import connections, models, router
from django.utils import timezone

from realtime.protocol.messages import UserID

BATCH = 500
"""Rows of one statement."""


class LastSeen(models.Model):
    """A user, and when the last connection of theirs ended."""

    key = models.CharField(max_length=32, primary_key=True)
    """Digest of the user ID."""
    user = models.TextField()
    """The user ID; characters that are not ASCII as in JSON, for all databases take that."""
    at = models.DateTimeField()

    class Meta:
        db_table = "realtime_last_seen"
        verbose_name = "user last seen"
        verbose_name_plural = "users last seen"

    def __str__(self) -> str:
        return self.user


def key_of(user: UserID) -> str:
    """Return the key of a user's row."""
    return hashlib.blake2b(user.encode(), digest_size=16).hexdigest()


def write(seen: Mapping[UserID, int]) -> None:
    """Write when users were online last, in Unix ms. Raises what the database raises."""
    rows = [
        LastSeen(key=key_of(user), user=json.dumps(user)[1:-1], at=_stored(at))
        for user, at in sorted(seen.items())  # in one order, so that no two writers deadlock
    ]
    database = router.db_for_write(LastSeen)
    by_key = connections[database].features.supports_update_conflicts_with_target
    LastSeen._default_manager.using(database).bulk_create(
        rows,
        BATCH,
        update_conflicts=True,
        update_fields=["at"],
        unique_fields=["key"] if by_key else None,
    )


def find(user: UserID) -> datetime | None:
    """Return when a user was online last, in UTC; None if there is no row."""
    return _in_utc(_rows(user).first())


async def afind(user: UserID) -> datetime | None:
    """Return when a user was online last. Async version of `find`."""
    return _in_utc(await _rows(user).afirst())


def _rows(user: UserID) -> models.QuerySet[LastSeen, datetime]:
    return LastSeen._default_manager.filter(key=key_of(user)).values_list("at", flat=True)


def _stored(at: int) -> datetime:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    aware = moment if settings.USE_TZ else timezone.make_aware(moment)
    return aware.astimezone(UTC)
