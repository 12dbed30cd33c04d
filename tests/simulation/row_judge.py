"""Row judge: durable publications, from their commit to Redis, and the promises to keep.

It learns the truth from the database and from Redis, not from the relay:

    written ── commit of the database ──► COMMITTED ── PUBLISH of Redis ──► PUBLISHED ── DELETE

Invariants, of which each failure is a sentence in the failures of the judge:

    committed  what is published was committed before
    once       it is published once, unless Redis lost data in between
    order      what was committed before another publication of its channel was written comes first,
               and so does what the same transaction wrote before; scheduled ones keep no order
    due        a scheduled one is not published before its time
    prompt     it is published soon after it is due, where nothing has gone wrong
    pauses     a refused one is not tried again before its channel has waited
    complete   at the end, when all faults are over, everything committed was published, and
               acknowledged to a relay; only rows that the service refuses are left, parked with a
               reason; no shard is taken
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from realtime.engine.base import Published
from realtime.errors import EngineUnavailable
from realtime.pending.retries import is_refusal
from tests.simulation.judge import Judge, Publishing
from tests.simulation.site_database import POSTGRESQL, SiteDatabase
from tests.simulation.world import World

PROMPT = 0.5
"""Seconds until a row that is due is published; in SQLite relays wait for writers."""
CLOCK_ERROR = 10.0
"""Seconds by which clocks of two processes may differ."""
PAUSES = 1.0, 5.0
"""Seconds between the attempts at a row that Redis refuses."""
SPLIT = 10.0
"""Seconds after a failover in which the old master may publish what it loses."""
REFUSED = ("gone:", "kept:odd")
"""Channels in which the service refuses publications, or may do so."""


@dataclass(slots=True)
class DurableRow:
    """A durable publication as the site knows it."""

    publishing: Publishing
    transaction: int
    delay: float
    """Seconds from its call until it is due."""
    committed: float | None = None
    published: float | None = None
    refused: list[float] = field(default_factory=list)
    """When Redis refused it."""

    @property
    def keeps_order(self) -> bool:
        return not self.delay and not self.publishing.channel.startswith(REFUSED)


class RowJudge:
    """See the module."""

    def __init__(self, world: World, judge: Judge, database: SiteDatabase) -> None:
        self._world = world
        self._judge = judge
        self._database = database
        self._rows: dict[int, DurableRow] = {}
        self._waiting: dict[str, dict[int, DurableRow]] = {}
        """Channel → number → what is committed and not published."""
        self.is_calm = True
        """Whether nothing has gone wrong until now."""
        self._retries = 0
        self._lost_until = 0.0
        """Redis may have lost what was published before."""
        database.on_commit = self._commit

    def write(self, channel: str, transaction: int, delay: float) -> Publishing:
        """Record that a transaction writes a durable publication."""
        publishing = self._judge.begin(channel)
        publishing.is_durable = True
        self._rows[publishing.number] = DurableRow(publishing, transaction, delay)
        return publishing

    def _commit(self, rows: Sequence[tuple[int, str]]) -> None:
        for id_, data in rows:
            row = self._rows[int(data)]
            row.committed = self._world.now
            self._waiting.setdefault(row.publishing.channel, {})[int(data)] = row
            self._judge.note(f"committed {data} of {row.publishing.channel} with ID {id_}")

    def lose(self, split: float = SPLIT) -> None:
        """Record that Redis loses data. `split`: for how many seconds from now on."""
        self._lost_until = self._world.now + split

    def forget(self, rows: Sequence[tuple[int, str]]) -> None:
        """Record that the database has lost the commit of rows."""
        for _, data in rows:
            row = self._rows[int(data)]
            row.committed = row.published = None
            self._waiting[row.publishing.channel].pop(int(data), None)
            self._judge.note(f"lost {data} of {row.publishing.channel}")

    def unpublish(self, number: int | None) -> None:
        """Record that the publication of a row is lost, whose row is there again."""
        row = self._rows.get(number or 0)
        if row is not None and row.committed is not None:
            row.published = None
            self._waiting[row.publishing.channel][row.publishing.number] = row

    def publish(self, channel: str, number: int) -> None:
        """Record that a Redis publishes something."""
        row, judge, now = self._rows.get(number), self._judge, self._world.now
        if row is None:
            return
        judge.note(f"Redis publishes {number} of {channel}")
        if row.committed is None:
            judge.fail(f"{number} of {channel} was published, and not committed")
        if row.published is not None:
            if row.published >= self._lost_until:
                judge.fail(f"{number} of {channel} was published twice")
            row.publishing.has_places = True
            return
        row.published = now
        if now - row.publishing.began + CLOCK_ERROR < row.delay:
            judge.fail(f"{number} of {channel} was published before its time")
        late = now - max(row.committed or now, row.publishing.began + row.delay)
        is_due = self._database.kind == POSTGRESQL and not channel.startswith(REFUSED)
        if self.is_calm and is_due and late > PROMPT:
            judge.fail(f"{number} of {channel} was published {late:.2f} s late")
        waiting = self._waiting.get(channel, {})
        waiting.pop(number, None)
        for other in waiting.values():
            if row.keeps_order and other.keeps_order and self._is_before(other, row):
                judge.fail(f"{number} of {channel} overtook {other.publishing.number}")

    @staticmethod
    def _is_before(one: DurableRow, other: DurableRow) -> bool:
        assert one.committed is not None
        if one.transaction == other.transaction:
            return one.publishing.number < other.publishing.number
        return one.committed < other.publishing.began

    def relay(self, number: int, outcome: Published | EngineUnavailable) -> None:
        """Record what a relay learns of a publication."""
        row = self._rows.get(number)
        if row is None:
            return
        if isinstance(outcome, EngineUnavailable):
            self._refuse(row, outcome)
            return
        publishing, position = row.publishing, outcome.position
        if publishing.acknowledged is not None:
            return
        if position is None:
            self._judge.acknowledge(publishing)
        else:
            self._judge.acknowledge(publishing, position.offset, position.epoch)

    def _refuse(self, row: DurableRow, error: EngineUnavailable) -> None:
        if not self.is_calm or self._retries or not is_refusal(error):
            return
        now, number, before = self._world.now, row.publishing.number, row.refused
        if len(before) > len(PAUSES) or (before and now - before[-1] < PAUSES[len(before) - 1]):
            self._judge.fail(f"{number} was refused at {now:.2f} s, and before at {before}")
        before.append(now)

    @contextmanager
    def retrying(self) -> Iterator[None]:
        """Let rows that are parked be tried again, within this block and after it."""
        self._retries += 1
        yield
        self._retries -= 1
        for row in self._rows.values():
            row.refused.clear()

    # the end

    def check(self) -> None:
        """Check what must be true when all faults are over."""
        judge, sqlite = self._judge, self._database.sqlite
        left = set()
        query = "SELECT channel, data, due, error FROM realtime_pending"
        for channel, data, due, error in sqlite.execute(query):
            left.add(int(data))
            if not channel.startswith(REFUSED) or due is not None:
                judge.fail(f"{data} of {channel} is left, due {due}: {error}")
            elif not error:
                judge.fail(f"{data} of {channel} was parked without a reason")
        for number, row in self._rows.items():
            if row.committed is None or number in left:
                continue
            if row.published is None or row.publishing.acknowledged is None:
                judge.fail(f"{number} of {row.publishing.channel} was committed, and is lost")
        for what, name in self._database.locked:
            judge.fail(f"{what} {name} of the database is still locked")
        now = str(datetime.fromtimestamp(self._world.unix_time() + CLOCK_ERROR, UTC))
        query = "SELECT shard FROM realtime_pending_relay WHERE owner != '' AND until > ?"
        for (shard,) in sqlite.execute(query, (now,)):
            judge.fail(f"shard {shard} is still taken")
