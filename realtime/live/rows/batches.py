"""Batches of changes: from a commit to the publications.

    note ──► the batch of this transaction and these savepoints ──commit──► flush ──► send
      │                                                  └──rolled back──► Django drops it
      └──without a transaction──────────────────────────────────────────►

Invariants:
- a batch that Django dropped gets no more changes: it is found among the hooks of the connection;
- a row is published once for each transaction, by the first of its batches, as it is then;
- the last publication of a row shows its last state, whichever process was faster: see `rounds`;
- nothing fails that the site does: what cannot be read or sent after a commit is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from django.db import connections, transaction
from django.db.models import Model, QuerySet

from realtime.cluster.member import NOTHING, NewPublication
from realtime.live.rows import rounds, sending
from realtime.live.rows.channels import is_durable, is_map, may_be_durable, names, values
from realtime.live.rows.feeds import LiveFeed, feeds, removed
from realtime.live.rows.rounds import Round
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName
from realtime.server_api.durable import RowKey
from realtime.server_api.transactions import CommitHook, in_transaction

logger = logging.getLogger("realtime.live")

T = TypeVar("T")

CHUNK = 1000
"""Rows that are read, and published, together."""

ATTRIBUTE = "realtime_live"
"""The attribute of a database connection with its transaction."""


@dataclass(slots=True)
class Change:
    """What happened to a row."""

    channels: dict[LiveFeed, set[str]] = field(default_factory=dict)
    """Feed → the channels in which the row was, or may be."""
    committed: list[Callable[[], None]] = field(default_factory=list)
    """To call after the commit."""

    def join(self, other: Change) -> None:
        """Add what happened to the same row later."""
        for feed, channels in other.channels.items():
            self.channels.setdefault(feed, set()).update(channels)
        self.committed += other.committed


Changes = Mapping[Any, Change]
"""Primary key → what happened to the row."""


class Found(NamedTuple):
    """A row of a feed as it is now."""

    feed: LiveFeed
    key: Any
    row: Any
    """None: there is none."""


Sent = dict[tuple[LiveFeed, Any], dict[ChannelName, Payload]]
"""Feed and primary key → channel → what was published of the row last."""


@dataclass(slots=True)
class WrittenRow:
    """What a transaction has written of a row."""

    keys: list[RowKey] = field(default_factory=list)
    """Of all its durable publications, also of those that a savepoint took back."""
    channels: set[str] = field(default_factory=set)
    """Where the row was, or is."""


class Transaction:
    """A transaction of one connection, as far as rows were changed in it."""

    def __init__(self) -> None:
        self.batches: list[RowBatch] = []
        """The oldest first; of each nesting of savepoints one."""
        self.told: dict[tuple[LiveFeed, Any], set[str]] = {}
        """Feed and primary key → the channels to which a batch has published the row."""
        self.written: dict[tuple[LiveFeed, Any], WrittenRow] = {}


Later = Callable[[str, Iterable[Any], Transaction | None], None]
"""Work after a commit: called with the alias of the database, keys, and the transaction."""


class RowBatch:
    """The changes in one nesting of savepoints."""

    def __init__(self, of: Transaction, using: str, savepoints: tuple[str, ...], at: int) -> None:
        """`at`: the place of its hook among those of the connection."""
        self.transaction = of
        self.using = using
        self.savepoints = savepoints
        """Those that are open: if one of them is rolled back, the batch is."""
        self.hook = CommitHook(self._committed, "realtime.live")
        self._at = at
        self.rows: dict[type[Model], dict[Any, Change]] = {}
        self.queries: dict[type[Model], list[QuerySet[Any]]] = {}
        self.later: dict[Later, set[Any]] = {}

    def is_waiting(self, connection: Any) -> bool:
        """Return whether it will be published if nothing more is rolled back."""
        if self.hook.running or self.hook.done:
            return False
        hooks = connection.run_on_commit
        if not (self._at < len(hooks) and hooks[self._at][1] is self.hook):
            places = (at for at, (_, hook, _) in enumerate(hooks) if hook is self.hook)
            self._at = next(places, len(hooks))
        return self._at < len(hooks)

    def join(self, other: RowBatch) -> None:
        """Take over the changes of another batch, whose savepoints were released."""
        for model, rows in other.rows.items():
            self.add(model, rows)
        for model, queries in other.queries.items():
            self.queries.setdefault(model, []).extend(queries)
        for work, keys in other.later.items():
            self.later.setdefault(work, set()).update(keys)
        other.rows, other.queries, other.later = {}, {}, {}

    def add(self, model: type[Model], changes: Changes) -> None:
        """Add changes of rows."""
        rows = self.rows.setdefault(model, {})
        for key, change in changes.items():
            rows.setdefault(key, Change()).join(change)

    def _committed(self) -> None:
        for model, rows in self.rows.items():
            flush(self.using, model, rows, self.transaction)
        for model, queries in self.queries.items():
            for query in queries:
                flush_query(model, query, self.transaction)
        for work, keys in self.later.items():
            work(self.using, keys, self.transaction)


def note(using: str, model: type[Model], changes: Changes) -> None:
    """Note changes of rows; publish them after the commit.

    Args:
        using: alias of the database.
        model: the model that has the table.
        changes: of rows.
    """
    if not in_transaction(using):
        flush(using, model, changes, None)
        return
    batch = _batch(using)
    batch.add(model, changes)
    if may_be_written(model):
        write(using, model, changes, batch.transaction)


def note_query(using: str, model: type[Model], query: QuerySet[Any]) -> None:
    """Note a query for rows that have changed, which is made after the commit."""
    if not in_transaction(using):
        flush_query(model, query, None)
        return
    batch = _batch(using)
    if may_be_written(model):
        changes = {_key(model, row): Change() for row in query}
        batch.add(model, changes)
        write(using, model, changes, batch.transaction)
    else:
        batch.queries.setdefault(model, []).append(query)


def note_later(using: str, work: Later, keys: set[Any]) -> None:
    """Note keys for work that is done after the commit, once for all of its keys."""
    if in_transaction(using):
        _batch(using).later.setdefault(work, set()).update(keys)
    else:
        work(using, keys, None)


def may_be_written(model: type[Model]) -> bool:
    """Return whether a row of a model may have durable channels."""
    return any(may_be_durable(each) for feed in feeds.of(model) for each in feed.patterns)


def _batch(using: str) -> RowBatch:
    """Return the batch for changes that are made now."""
    connection: Any = connections[using]
    current: Transaction | None = getattr(connection, ATTRIBUTE, None)
    open_ones = tuple(each for each in connection.savepoint_ids if each is not None)
    alive: dict[tuple[str, ...], RowBatch] = {}
    for batch in current.batches if current is not None else ():
        if batch.is_waiting(connection):
            batch.savepoints = tuple(each for each in batch.savepoints if each in open_ones)
            if alive.setdefault(batch.savepoints, batch) is not batch:
                alive[batch.savepoints].join(batch)
    if current is None or not alive:  # what it had was committed, or rolled back
        current = Transaction()
        setattr(connection, ATTRIBUTE, current)
    if open_ones not in alive:
        made = alive[open_ones] = RowBatch(current, using, open_ones, len(connection.run_on_commit))
        transaction.on_commit(made.hook, using=using, robust=True)
    current.batches = list(alive.values())
    return alive[open_ones]


def flush(using: str, model: type[Model], changes: Changes, of: Transaction | None) -> None:
    """Read rows, and publish them. Never raises. `of`: None if there was no transaction."""
    for keys in chunks(changes):
        try:
            begun = rounds.begin(model)
            sent = _publish(_read(using, model, keys), changes, of)
            _settle(using, model, begun, sent, of)
        except Exception:
            logger.exception("Changes of %d rows of %s are not published", len(keys), model)
    for change in changes.values():
        for work in change.committed:
            work()


def flush_query(model: type[Model], query: QuerySet[Any], of: Transaction | None) -> None:
    """Make a query, and publish its rows. Never raises. `of`: as for `flush`."""
    try:
        for alike in _alike(feeds.of(model)):
            begun = rounds.begin(model)
            for rows in chunks(rows_of(alike, query).iterator(chunk_size=CHUNK)):
                found = [Found(feed, _key(model, row), row) for feed in alike for row in rows]
                _settle(query.db, model, begun, _publish(found, {}, of), of)
    except Exception:
        logger.exception("Rows of %s that were announced are not published", model)


def _publish(found: Iterable[Found], changes: Changes, of: Transaction | None) -> Sent:
    """Publish rows as they were read. Return what was published."""
    sent: Sent = {}
    new: list[NewPublication] = []
    for feed, key, row in found:
        states = list(_about(feed, key, row, changes.get(key) or Change(), of))
        new += states
        if states:
            sent[feed, key] = {each.channel: each.data for each in states}
    sending.send(new)
    return sent


def _settle(
    using: str, model: type[Model], begun: Round | None, sent: Sent, of: Transaction | None
) -> None:
    """Publish rows again that changed while they were read and published; see `rounds`.

    Args:
        using: alias of the database.
        model: the model that has the table.
        begun: the round that began before they were read.
        sent: what was published.
        of: as for `flush`.
    """
    while begun is not None and (latest := rounds.latest(model)) != begun:
        begun = latest
        new: list[NewPublication] = []
        for feed, key, row in _read(using, model, {key for _, key in sent}):
            before = sent.get((feed, key), {})
            now = names_of(feed, row)
            for state in _states(feed, key, row, now, before.keys() - now) if before else ():
                if before.get(state.channel) != state.data and _goes_out(state, of):
                    before[state.channel] = state.data
                    new.append(state)
        if not new:
            return
        sending.send(new)


def write(using: str, model: type[Model], changes: Changes, of: Transaction) -> None:
    """Write the durable publications of rows into the transaction, in place of earlier ones.

    Raises:
        DatabaseError: the transaction is broken.
    """
    earlier: list[RowKey] = []
    new: list[tuple[WrittenRow, NewPublication]] = []
    for feed, key, row in _read(using, model, changes):
        written = of.written.setdefault((feed, key), WrittenRow())
        written.channels |= changes[key].channels.get(feed, set())
        earlier += written.keys
        now = names_of(feed, row)
        states = _states(feed, key, row, now, written.channels - now, can_fail=True)
        new += [(written, each) for each in states if is_durable(each.channel)]
    if earlier:
        sending.withdraw(earlier)
    for (written, _), row_key in zip(new, sending.write([each for _, each in new]), strict=True):
        written.keys.append(row_key)


def chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items in lists of `CHUNK`."""
    rest = iter(items)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def _read(using: str, model: type[Model], keys: Iterable[Any]) -> Iterator[Found]:
    """Yield rows as they are now, for each feed. Feeds that read alike share a query."""
    keys = list(keys)
    for alike in _alike(feeds.of(model)):
        rows = rows_of(alike, alike[0].model._default_manager.using(using)).in_bulk(keys)
        yield from (Found(feed, key, rows.get(key)) for feed in alike for key in keys)


def rows_of(alike: Sequence[LiveFeed], query: Any) -> Any:
    """Return the query of feeds that read alike; it loads the fields that name channels."""
    rows: Any = alike[0].feed.rows(query)
    names, are_deferred = rows.query.deferred_loading
    needed = {name for feed in alike for name in feed.fields}
    if names:
        rows = rows.all()
        rows.query.deferred_loading = (
            (names - needed, True) if are_deferred else (names | needed, False)
        )
    return rows


def _alike(all_feeds: Iterable[LiveFeed]) -> Collection[list[LiveFeed]]:
    """Return groups of feeds that read the same rows."""
    groups: dict[Any, list[LiveFeed]] = {}
    for feed in all_feeds:
        groups.setdefault((feed.model, feed.kind.rows), []).append(feed)
    return groups.values()


def _key(model: type[Model], row: Any) -> Any:
    pk: Any = model._meta.pk
    return getattr(row, pk.attname)


def _about(
    feed: LiveFeed, key: Any, row: Any, change: Change, of: Transaction | None
) -> Iterator[NewPublication]:
    """Yield what is published of one row after a commit.

    Args:
        feed: one of its model.
        key: the primary key.
        row: as it is now; None if there is none.
        change: what happened to it.
        of: the transaction, which has written what is durable; None if there was none.
    """
    told = None if of is None else of.told.get((feed, key))
    now = names_of(feed, row) if told is None else set()
    gone = change.channels.get(feed, set()) - now - (told or set())
    if of is not None:
        of.told[feed, key] = (told or set()) | now | gone
    for publication in _states(feed, key, row, now, gone):
        if _goes_out(publication, of):
            yield publication


def _goes_out(publication: NewPublication, of: Transaction | None) -> bool:
    """Return whether a publication goes out after the commit, since it is not written before."""
    return of is None or not is_durable(publication.channel)


def _states(
    feed: LiveFeed, key: Any, row: Any, now: set[str], gone: set[str], *, can_fail: bool = False
) -> Iterator[NewPublication]:
    """Yield the publications of a row that is in some channels, and not in others any more."""
    maps = {channel for channel in now | gone if is_map(channel)}
    if now - maps:
        shown = feed.put(row, can_fail=can_fail)
        yield from (NewPublication(channel, shown) for channel in sorted(now - maps))
    if gone - maps:
        no_more = removed(str(key))
        yield from (NewPublication(channel, no_more) for channel in sorted(gone - maps))
    if now & maps:
        entry = feed.entry(row, can_fail=can_fail)
        yield from (NewPublication(each, entry, key=str(key)) for each in sorted(now & maps))
    yield from (without(channel, str(key)) for channel in sorted(gone & maps))


def without(channel: ChannelName, key: str) -> NewPublication:
    """Return the removal of a row from a map."""
    return NewPublication(channel, NOTHING, key=key, removed=True)


def names_of(feed: LiveFeed, row: Any) -> set[str]:
    """Return the channels of a row as it is now; none if there is no row."""
    return set() if row is None else names(feed.patterns, values(feed.attributes, row))
