"""The outbox of a test: captured publications, like the mails in `django.core.mail.outbox`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from datetime import datetime
from functools import wraps
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeVar, cast, overload
from unittest.mock import ANY
from uuid import uuid4

from asgiref.sync import iscoroutinefunction, sync_to_async

from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.config.options import ChannelOptions
from realtime.engine.base import Published as Outcome
from realtime.engine.maps import Refusal
from realtime.protocol.messages import Publication, StreamPosition
from realtime.server_api.durable import RowKey
from realtime.server_api.transactions import (
    UNKNOWN,
    AfterCommit,
    Outcomes,
    Publications,
)
from realtime.serving import serving
from realtime.testing.transactions import CommitHooks

F = TypeVar("F", bound=Callable[..., Any])


class _Published(NamedTuple):
    channel: str
    data: Any


class Published(_Published):
    """A publication of the site. `data` is decoded from JSON, as clients get it."""

    at: datetime | None = None
    """When it is due, in UTC, if it was scheduled. Equality does not look at it."""
    key: str = ""
    """Of a change of a map; "" in other channels. Equality does not look at it."""
    removed: bool = False
    """Whether the change removes the key; `data` is None."""


class Outbox(Sequence[Published]):
    """The captured publications of all threads, oldest first. Equals a list of the same.

    A publication in a transaction is in the outbox when the transaction has ended, and not if it
    was rolled back, in every kind of test case.
    """

    __hash__ = None  # type: ignore[assignment]  # it equals lists, which have none

    def __init__(self) -> None:
        self._published: list[Published] = []
        self._tops: dict[str, StreamPosition] = {}
        """Channel → its position, since it was expected first: that one was believed."""
        self._entries: dict[tuple[str, str], Publication] = {}
        """Channel and key → the entry, without a `TestService`."""
        self._hooks: CommitHooks | None = None

    # reading

    def data(self, channel: str) -> list[Any]:
        """Return the data published into one channel, oldest first."""
        return [data for name, data in self if name == channel]

    def map(self, channel: str) -> dict[str, Any]:
        """Return the data of each key that changes into one map left: `{"seat1": {"user": 7}}`."""
        entries: dict[str, Any] = {}
        for each in self:
            if each.key and each.channel == channel:
                entries.pop(each.key, None)
                if not each.removed:
                    entries[each.key] = each.data
        return entries

    def count(self, value: object) -> int:
        """Count equal publications: `outbox.count(("chat:lobby", {"text": "hi"}))`."""
        return sum(value == published for published in self)

    def clear(self) -> None:
        """Remove all publications until now."""
        self._look()
        self._published.clear()

    def __len__(self) -> int:
        return len(self._look())

    @overload
    def __getitem__(self, index: int) -> Published: ...
    @overload
    def __getitem__(self, index: slice) -> list[Published]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._look()[index]

    def __iter__(self) -> Iterator[Published]:
        return iter(list(self._look()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Outbox):
            return list(self) == list(other)
        return list(self) == other

    def __repr__(self) -> str:
        return repr(list(self))

    def _look(self) -> list[Published]:
        if self._hooks is not None and recorder.is_innermost(self):
            self._hooks.run()
        return self._published

    # writing

    def begin(self) -> None:
        """Capture publications from now on."""
        recorder.open(self)
        self._hooks = CommitHooks()

    def end(self) -> None:
        """Capture no more publications."""
        self._look()
        self._hooks = None
        recorder.close(self)

    def add(self, publications: Publications, due: datetime | None = None) -> list[Published]:
        """Add publications, and return them. `due`: when, if they are scheduled."""
        if self._hooks is not None:
            self._hooks.run()  # these were published earlier
        added = []
        for new, _ in publications:
            published = Published(new.channel, payload.value(new.data.json))
            published.at, published.key, published.removed = due, new.key, new.removed
            added.append(published)
            if (top := self._tops.get(new.channel)) is not None and not new.skip_history:
                self._tops[new.channel] = StreamPosition(top.offset + 1, top.epoch)
        self._published += added
        return added

    def compare(self, new: NewPublication) -> Outcome:
        """Return what an engine says to a publication that expects a position."""
        expect = new.expect
        assert expect is not None
        top = self._tops.setdefault(new.channel, expect)
        if expect.offset == top.offset and expect.epoch in ("", top.epoch):
            return Outcome(StreamPosition(top.offset + 1, top.epoch))
        return Outcome(top, kept=False)

    def change(self, new: NewPublication, options: ChannelOptions) -> Outcome:
        """Make a change of a map, whose keys are those of this outbox, and return the outcome."""
        place = new.channel, new.key
        entry = self._entries.get(place)
        top = self._tops.setdefault(new.channel, StreamPosition(0, "captured"))
        reason: Refusal = ""
        if new.expect is not None and (
            new.expect.offset != (entry.offset if entry else 0)
            or new.expect.epoch not in ("", top.epoch)
        ):
            reason = "position_mismatch"
        elif entry is not None and new.key_mode == "if_new":
            reason = "key_exists"
        elif entry is None and (new.removed or new.key_mode == "if_exists"):
            return Outcome(top, False, "key_not_found")
        if reason:
            return Outcome(top, False, reason, entry)
        if new.removed:
            del self._entries[place]
        else:
            self._entries[place] = Publication(
                new.data, offset=top.offset + 1, tags=new.tags, key=new.key
            )
        if not options.keeps_history:
            return Outcome()
        return Outcome(StreamPosition(top.offset + 1, top.epoch))

    def remove(self, published: Published) -> None:
        """Remove this publication, and no equal one."""
        self._published = [each for each in self._published if each is not published]


class Recorder:
    """The publisher of tests: it adds publications to the innermost outbox.

    It passes them on to the service's own publisher only while a `TestService` runs.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._outboxes: list[Outbox] = []
        self._services: list[object] = []
        self._rows: dict[RowKey, tuple[Outbox, Published]] = {}
        """The publications that would be rows, and where they are."""
        self._publisher = serving.publisher
        self._row_writer = serving.row_writer
        """The service's own."""

    # see `server_api.transactions.Publisher`

    def send(self, publications: Publications) -> Outcomes:
        """Record publications, and send them to the clients of a `TestService`."""
        if _answered(publications):
            return self._compared(
                publications, self._sends() and self._publisher.send(publications)
            )
        if self._record(publications):
            return self._publisher.send(publications)
        return [UNKNOWN] * len(publications)

    async def asend(self, publications: Publications) -> Outcomes:
        """Record publications, and send them. Async version of `send`."""
        if _answered(publications):
            sent = self._sends() and await self._publisher.asend(publications)
            return self._compared(publications, sent)
        if self._record(publications):
            return await self._publisher.asend(publications)
        return [UNKNOWN] * len(publications)

    def _sends(self) -> bool:
        return self._innermost() is None or bool(self._services)

    def _compared(self, publications: Publications, sent: Outcomes | Literal[False]) -> Outcomes:
        """Record the publications that were kept. `sent`: what the engine says, if it was asked."""
        innermost = self._innermost()
        if innermost is None:
            return sent or []
        outcomes: list[Outcome] = []
        for index, (new, options) in enumerate(publications):
            if sent:
                outcome = sent[index]
            else:
                outcome = innermost.change(new, options) if new.key else innermost.compare(new)
            if outcome.kept:
                innermost.add([(new, options)])
            outcomes.append(outcome)
        return outcomes

    def _record(
        self,
        publications: Publications,
        due: datetime | None = None,
        keys: Sequence[RowKey] = (),
    ) -> bool:
        """Record publications; return whether to send them, too. `keys`: of their rows."""
        innermost = self._innermost()
        if innermost is None:
            return True
        for key, published in zip_longest(keys, innermost.add(publications, due)):
            if key is not None:
                self._rows[key] = (innermost, published)
        return bool(self._services)

    # see `server_api.durable.RowWriter`: what would be a row is recorded at the commit

    def add(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> list[RowKey]:
        """Record durable publications, and send those that are due."""
        keys = [RowKey("", uuid4().hex) for _ in publications]

        def record(publications: Publications) -> Outcomes:
            if self._record(publications, due, keys) and due is None:
                return self._publisher.send(publications)
            return [UNKNOWN] * len(publications)

        AfterCommit(lambda: _Calls(record)).send(publications)
        return keys

    def withdraw(self, keys: Sequence[RowKey]) -> None:
        """Remove durable publications from the outbox, when the transaction has ended."""

        def remove(publications: Publications) -> Outcomes:
            for key in keys:
                if (found := self._rows.pop(key, None)) is not None:
                    outbox, published = found
                    outbox.remove(published)
            return []

        AfterCommit(lambda: _Calls(remove)).send([])

    async def aadd(
        self, publications: Publications, due: datetime | None, using: str | None
    ) -> None:
        """Record durable publications. Async version of `add`."""
        await sync_to_async(self.add)(publications, due, using)

    # outboxes and services

    def open(self, outbox: Outbox) -> None:
        """Record into this outbox from now on."""
        innermost = self._innermost()
        if innermost is not None:
            # not under the lock: another thread may send now what waited for a commit
            innermost._look()
        with self._lock:
            if not self._outboxes:
                self._publisher, serving.publisher = serving.publisher, self
                self._row_writer = serving.row_writer
                if serving.row_writer is not None:
                    serving.row_writer = self
            self._outboxes.append(outbox)

    def close(self, outbox: Outbox) -> None:
        """Record into this outbox no longer."""
        with self._lock:
            self._outboxes = [other for other in self._outboxes if other is not outbox]
            if not self._outboxes and serving.publisher is self:
                serving.publisher = self._publisher
                serving.row_writer = self._row_writer
                self._rows.clear()

    def is_innermost(self, outbox: Outbox) -> bool:
        """Return whether publications are added to this outbox."""
        return self._innermost() is outbox

    def _innermost(self) -> Outbox | None:
        with self._lock:
            return self._outboxes[-1] if self._outboxes else None

    def begin_service(self, service: object) -> None:
        """Send what is recorded to the clients of a service, from now on."""
        with self._lock:
            self._services.append(service)

    def end_service(self, service: object) -> None:
        """Undo `begin_service`, if it was called."""
        with self._lock:
            if service in self._services:
                self._services.remove(service)


class _Calls:
    """A publisher that calls a function."""

    def __init__(self, send: Callable[[Publications], Outcomes]) -> None:
        self.send = send

    async def asend(self, publications: Publications) -> Outcomes:
        return self.send(publications)


def _answered(publications: Publications) -> bool:
    """Return whether the caller wants to know which publications are kept."""
    return any(new.expect is not None or new.key for new, _ in publications)


recorder = Recorder()
"""The one of this process."""


class capture(ContextDecorator):  # noqa: N801, it is called like a function
    """Capture publications in an outbox, instead of publishing them.

        with capture() as outbox:
            ...
        assert outbox == [("chat:lobby", {"text": "hi"})]

    As a decorator, of functions and coroutine functions, it only keeps publications from going
    out. Where several are nested, the innermost one captures. Clients of a `TestService` receive
    captured publications, too.
    """

    def __init__(self) -> None:
        self.outbox = Outbox()

    def __enter__(self) -> Outbox:
        self.outbox.begin()
        return self.outbox

    def __exit__(self, *_: object) -> None:
        self.outbox.end()

    def _recreate_cm(self) -> capture:
        return capture()

    def __call__(self, function: F) -> F:
        if not iscoroutinefunction(function):
            return super().__call__(function)

        @wraps(function)
        async def captured(*arguments: Any, **named: Any) -> Any:
            with self._recreate_cm():
                return await function(*arguments, **named)

        return cast(F, captured)


def matching(published: Iterable[Published], channel: str, data: object = ANY) -> list[Published]:
    """Return the publications in a channel whose data equal these."""
    return [entry for entry in published if entry.channel == channel and entry.data == data]
