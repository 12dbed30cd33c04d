"""Retries: which rows that were refused get another attempt, and which are parked.

| the cause is | for example | the row is parked |
| in the row | data that are not JSON, other extras, more than a row may have | at once |
| in its channel | an unknown namespace, an invalid or too long name, a version but no history,
  a key of another type in Redis | after MAX_ATTEMPTS; the channel waits between them |
| in its channel, of which an earlier row is parked | | after its first attempt |

There are several attempts because options may be new, and other relays may know them already.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from typing import NamedTuple

from realtime.errors import EngineUnavailable, Error, NoReply
from realtime.pending import reading
from realtime.pending.models import Pending
from realtime.server_api.durable import RelayCounters

logger = logging.getLogger("realtime.pending")

PAUSES = (1.0, 5.0)
"""Seconds for which a channel waits after the attempts at a row that was refused."""
MAX_ATTEMPTS = len(PAUSES) + 1

REFUSED_BY_REDIS = ("WRONGTYPE", "is not a number")
"""What Redis answers where a key holds something else: that does not pass by itself."""


class RefusalVerdict(NamedTuple):
    """What is written into a row."""

    attempts: int
    error: str
    is_last: bool
    """Whether the row is parked."""
    is_of_channel: bool
    """Whether other rows of the channel may be refused for the same reason."""


class Refusals:
    """Those of one round."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[float, int]] = {}
        """Channel → until when it waits, Unix seconds, and its shard."""
        self._alike = defaultdict[RefusalVerdict, list[Pending]](list)
        self._parked: set[str] = set()
        """Channels of which a row was parked for a reason that others may share."""

    def add(self, row: Pending, error: Exception) -> None:
        """Add a refusal, unless the row is behind one that waits."""
        if row.channel in self.waiting:
            return
        verdict = self._verdict(row, error)
        self._alike[verdict].append(row)
        if not verdict.is_last:
            self.waiting[row.channel] = time.time() + PAUSES[verdict.attempts - 1], row.shard
        elif verdict.is_of_channel:
            self._parked.add(row.channel)

    def _verdict(self, row: Pending, error: Exception) -> RefusalVerdict:
        text = f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()
        text = text.replace("\0", "")[: reading.REASON_LENGTH]
        before: object = row.attempts  # in SQLite it may be anything
        before = before if isinstance(before, int) else 0
        attempts = min(max(before, 0) + 1, MAX_ATTEMPTS)
        is_behind = before == 0 and (bool(row.reason) or row.channel in self._parked)
        is_of_channel = isinstance(error, (Error, EngineUnavailable))
        is_last = is_behind or not is_of_channel or attempts == MAX_ATTEMPTS
        return RefusalVerdict(attempts, text, is_last, is_of_channel)

    def write(self, database: str, counters: RelayCounters) -> None:
        """Write the refusals into their rows, and the reason of parked ones into rows behind."""
        for verdict, refused in self._alike.items():
            attempts, error, is_last, is_of_channel = verdict
            counters.refused += len(refused)
            rows = Pending.objects.using(database).filter(pk__in=[row.pk for row in refused])
            if not is_last:
                rows.update(attempts=attempts, error=error)
                continue
            rows.update(attempts=attempts, error=error, due=None)
            counters.parked += len(refused)
            text = "Parked %d pending publications, the first of them in %r: %s"
            logger.error(text, len(refused), refused[0].channel, error)
            if is_of_channel:
                reading.rows_behind(database, refused).update(error=error)


def is_refusal(error: EngineUnavailable) -> bool:
    """Return whether the engine refused one publication, and is there."""
    return not isinstance(error, NoReply) and any(word in str(error) for word in REFUSED_BY_REDIS)
