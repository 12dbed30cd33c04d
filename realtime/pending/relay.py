"""The relay: publishes rows after their commit, and deletes them. One thread per process.

    look ──► which shards have a row that is due ──► take the free ones ──► read rows ──► publish
      ▲                                                                                     │
      └── wake, next due row, or a second ◄── give the shards back ◄── delete the rows ◄────┘

Where the engine uses the database of the rows, the rows are deleted and published in one
transaction, and the nodes are notified after its commit.

Invariants:
- Apart from that, a row is deleted only after the engine has answered for it. A relay that
  dies in between leaves the row, and the next one repeats it: with the same idempotency key, so
  nothing is published. So does a row whose deletion PostgreSQL lost in a crash: the relay waits
  for its disk only where publications are in the commit.
- Rows of a channel go out in the order of their ids. One relay at a time works on a channel. Those
  of one round trip name the row before them, so that the engine refuses them if it refused that
  one.
- Where the engine is away, rows stay as they are. Only a refusal counts as an attempt.
- Shards take turns, so a busy one keeps none of the others waiting.
- Rows that were changed by hand so that no relay would read them are parked, once a minute; those
  that a relay fails to read, at its next look.
- After a refusal the channel waits for the next attempt, or the row is parked and the rows behind
  it go on without it; see `retries`. Other channels never wait.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from django.db import connections
from msgspec.structs import replace

from realtime.cluster.member import NewPublication
from realtime.config import site_databases
from realtime.config.options import ChannelOptions
from realtime.engine import factory
from realtime.engine.base import Published
from realtime.engine.once import Once
from realtime.errors import EngineUnavailable, Error, InternalError, NoReply, NotServing
from realtime.metrics import Outage
from realtime.pending import invalid_rows, reading, shards
from realtime.pending.models import Pending, Relay, now
from realtime.pending.publications import ONCE_LIFETIME, publication_of
from realtime.pending.retries import Refusals, is_refusal
from realtime.pending.tables import Tables
from realtime.pending.wake_ups import NOTIFICATION
from realtime.server_api.durable import RelayCounters
from realtime.server_api.operations import check_kept
from realtime.serving import Serving, run_by_hand

if TYPE_CHECKING:
    from realtime.pending.within import StreamsWithin

logger = logging.getLogger("realtime.pending")

LOOK_INTERVAL = 0.8
"""Seconds between looks that nobody asks for: after a lost wake-up, or the death of a relay."""
BUSY_PAUSE = 0.1
"""Seconds until the next look at a shard on which another relay works."""
INVALID_ROWS_INTERVAL = 60.0
"""Seconds between looks for rows that no relay would read."""
RETRY_PAUSE = 0.5
"""Seconds until the next attempt while the engine, or a database, is away."""

APART = 60.0
"""Seconds after a refusal for which publications have a transaction of their own."""

BATCH = 500
"""Rows of one round."""
SHARDS_AT_ONCE = 8
"""Half of the shards: another relay can work on the others meanwhile."""


Ready = tuple[NewPublication, ChannelOptions]


class Round(NamedTuple):
    """Rows that were published together, and what became of each."""

    rows: list[Pending]
    outcomes: list[Published | EngineUnavailable]
    refusals: Refusals
    """Rows behind one that waits were not tried."""


class Waker:
    """Wakes the thread of the relay, from any thread.

    A pair of sockets, so that the thread can wait for database connections as well.
    """

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)

    def wake(self) -> None:
        """Wake the thread, or its next wait. Two calls wake it once."""
        with contextlib.suppress(OSError):  # full: it will wake; closed: it has ended
            self._sender.send(b"\0")

    def wait(self, seconds: float, *connections: int) -> None:
        """Wait for `wake`, for data on one of these files, or for the end of the time."""
        with selectors.DefaultSelector() as selector:
            for file in (self._receiver.fileno(), *connections):
                selector.register(file, selectors.EVENT_READ)
            selector.select(seconds)
        with contextlib.suppress(BlockingIOError):
            while self._receiver.recv(4096):
                pass

    def close(self) -> None:
        """Release the sockets."""
        self._receiver.close()
        self._sender.close()


class RelayThread(threading.Thread):
    """See the module. It has a database connection of its own."""

    def __init__(self, serving: Serving, counters: RelayCounters) -> None:
        super().__init__(name="realtime-pending", daemon=True)
        self._serving = serving
        self._counters = counters
        self._waker = Waker()
        self._owner = uuid.uuid4().hex
        self._stopping = False
        self._outage = Outage()
        self._tables = Tables(NOTIFICATION, self._waker.wake)
        self._not_before: dict[str, float] = {}
        """Database → monotonic seconds until which it rests, after a failure."""
        self._busy: dict[tuple[str, int], float] = {}
        """Shard of a database → monotonic seconds until which it is left alone."""
        self._looked: dict[tuple[str, int], float] = {}
        """The same → monotonic seconds of the last attempt to take it."""
        self._invalid_rows_at: dict[str, float] = {}
        """Database → monotonic seconds from which it is looked through for invalid_rows."""
        self._apart_until: dict[str, float] = {}
        """Database → monotonic seconds until which rows are not published in its transactions."""
        self._unreadable: set[str] = set()
        """Databases in which a row could not be read."""

    def wake(self) -> None:
        """Look now. From any thread."""
        self._waker.wake()

    def begin_stop(self) -> None:
        """Begin to stop. Returns at once; `join` waits."""
        self._stopping = True
        self._waker.wake()

    def run(self) -> None:
        pause = LOOK_INTERVAL
        try:
            while not self._stopping:
                self._waker.wait(pause, *self._tables.files())
                self._tables.consume()
                pause = LOOK_INTERVAL
                for database in self._tables.databases():
                    if not self._stopping:
                        pause = min(pause, self._look(database))
        finally:
            connections.close_all()
            self._waker.close()

    def _look(self, database: str) -> float:
        """Relay what is due in a database. Return seconds until the next look. Never raises."""
        left = self._not_before.get(database, 0.0) - time.monotonic()
        if left > 0:
            return left
        try:
            self._tables.open(database)
            if not factory.is_shared(self._serving.config()):
                self._tables.listen(database)
            if time.monotonic() >= self._invalid_rows_at.get(database, 0.0):
                self._invalid_rows_at[database] = time.monotonic() + INVALID_ROWS_INTERVAL
                self._park(invalid_rows.park_invalid(database))
            if database in self._unreadable:
                self._unreadable.discard(database)
                self._park(invalid_rows.park_unreadable(database))
            return self._relay(database)
        except Exception as error:  # of every database, and of every engine
            self._counters.failures += 1
            if self._outage.begins():
                logger.warning("Pending publications wait: %s", str(error) or type(error).__name__)
            if not isinstance(error, EngineUnavailable):
                if invalid_rows.is_unreadable(error):
                    self._unreadable.add(database)
                self._tables.close(database)
            self._not_before[database] = time.monotonic() + RETRY_PAUSE
            return RETRY_PAUSE

    def _park(self, count: int) -> None:
        """Count rows that were parked."""
        if count:
            self._counters.parked += count
            logger.error("Parked %d pending publications that were changed by hand", count)

    def _relay(self, database: str) -> float:
        due, moment = reading.next_due(database), now()
        ready = [shard for shard, first in due.items() if first <= moment]
        started = time.monotonic()
        free = [each for each in ready if self._busy.get((database, each), 0.0) <= started]
        if free:
            # those come first that have waited longest for their turn: all may be busy all the time
            free.sort(key=lambda each: self._looked.get((database, each), 0.0))
            turn = free[:SHARDS_AT_ONCE]
            self._looked.update(((database, each), started) for each in turn)
            within = self._within(database)
            with shards.taken(database, turn, self._owner, within is not None) as taken:
                worked = self._work(database, taken, within)
            if within is not None:
                self._ring(within)
            for shard in set(turn) - worked:
                self._busy[database, shard] = time.monotonic() + BUSY_PAUSE
            return 0.0
        if ready:
            return BUSY_PAUSE
        return min(
            ((first - moment).total_seconds() for first in due.values()), default=LOOK_INTERVAL
        )

    def _within(self, database: str) -> StreamsWithin | None:
        """Return the streams of the engine within the transactions of a database, if it has them.

        After a refusal the other way takes its place for a while: a role may lack rights, or
        transactions be serializable.
        """
        config = self._serving.config()
        is_there = site_databases.engine_database(config) == database
        if not is_there or time.monotonic() < self._apart_until.get(database, 0.0):
            return None
        from realtime.pending.within import StreamsWithin

        engine = self._serving.engines(config).database(config)
        return StreamsWithin(engine.address, database, config) if engine else None

    def _ring(self, within: StreamsWithin) -> None:
        try:
            run_by_hand(within.ring())
        except EngineUnavailable as error:
            self._counters.failures += 1
            logger.warning("Nodes learn later of pending publications: %s", error)

    def _work(
        self, database: str, taken: Sequence[Relay], within: StreamsWithin | None
    ) -> set[int]:
        """Relay rows of these shards. Return the shards that had any.

        Args:
            within: where to publish in the transaction that deletes the rows; None: apart from it.
        """
        rows = reading.due_rows(database, taken, BATCH)
        if not rows:
            return set()
        result, ready = self._check(rows, ONCE_LIFETIME if within is None else 0)
        if within is None:
            result.outcomes.extend(self._publish(ready))
        else:  # all of them, or nothing is committed
            result.outcomes.extend(Published() for _ in ready)
        failed = self._settle(database, result)
        for shard in taken:
            if here := {name: at for name, (at, number) in failed.items() if number == shard.shard}:
                shards.hold(database, shard, here)
        if within is not None:  # at last: channels are locked until the commit
            try:
                self._publish(ready, within)
            except EngineUnavailable as error:
                if not isinstance(error, NoReply):
                    self._apart_until[database] = time.monotonic() + APART
                raise
        self._counters.relayed += sum(isinstance(each, Published) for each in result.outcomes)
        return {row.shard for row in rows}

    def _check(self, rows: Sequence[Pending], lifetime: int) -> tuple[Round, list[Ready]]:
        """Refuse rows that cannot be published. Return the others, and what to publish.

        Args:
            lifetime: of the keys of rows.
        """
        config = self._serving.config()
        ready: list[Ready] = []
        tried: list[Pending] = []
        refusals = Refusals()
        before: dict[str, Once | None] = {}
        for row in rows:
            if row.channel in refusals.waiting:
                continue
            try:
                new = replace(publication_of(row, lifetime), after=before.get(row.channel))
                ready.append((new, check_kept(new, config)))
            except (Error, ValueError, TypeError) as error:
                refusals.add(row, error)
            else:
                tried.append(row)
                if not (new.version or new.key_mode or new.removed):  # refused, it leaves no key
                    before[row.channel] = new.once
        return Round(tried, [], refusals), ready

    def _publish(
        self, ready: Sequence[Ready], within: StreamsWithin | None = None
    ) -> Sequence[Published | EngineUnavailable]:
        """Publish, in one round trip.

        Raises:
            EngineUnavailable: none was published.
        """
        if not ready:
            return ()
        try:
            outcomes = self._serving.call(lambda member: member.publish_many(ready, within))
        except (NotServing, InternalError) as error:
            raise EngineUnavailable(str(error)) from error
        failures = [each for each in outcomes if isinstance(each, EngineUnavailable)]
        is_away = len(failures) == len(outcomes) and not any(map(is_refusal, failures))
        if failures and (is_away or within is not None):
            raise failures[0]
        return outcomes

    def _settle(self, database: str, result: Round) -> dict[str, tuple[float, int]]:
        """Delete what was published, and note refusals.

        Returns:
            The channels that wait: name → until when, Unix seconds, and the shard.
        """
        rows = Pending.objects.using(database)
        done: list[int] = []
        waiting: dict[str, tuple[float, int]] = {}
        for row, outcome in zip(result.rows, result.outcomes, strict=True):
            if not isinstance(outcome, EngineUnavailable):
                done.append(row.pk)
            elif is_refusal(outcome):
                result.refusals.add(row, outcome)
            else:
                self._counters.failures += 1
                waiting[row.channel] = time.time() + RETRY_PAUSE, row.shard
        if done:
            rows.filter(pk__in=done)._raw_delete(database)  # `delete` tells the site's receivers
        result.refusals.write(database, self._counters)
        return waiting | result.refusals.waiting
