"""What was published, as `django.core.mail.outbox` has what was mailed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast, overload
from unittest.mock import ANY

from asgiref.sync import iscoroutinefunction

from realtime import payload
from realtime.server_api import transactions
from realtime.server_api.transactions import Publications
from realtime.testing.transactions import Committed

F = TypeVar("F", bound=Callable[..., Any])

delivered_to: list[object] = []
"""The services that run in this test. What is published goes to the outbox and to their clients."""

_open: list[Outbox] = []
_lock = threading.RLock()


class Published(NamedTuple):
    """One publication of the site. `data` as clients get it: decoded from JSON."""

    channel: str
    data: Any


class Outbox(Sequence[Published]):
    """What was published, oldest first, from any thread. Equals a list of the same.

    What is published in a transaction is here when the transaction has ended, and not if it
    was rolled back, in every kind of test case.
    """

    __hash__ = None  # type: ignore[assignment]  # what is equal to a list has none

    def __init__(self) -> None:
        self._published: list[Published] = []
        self._committed: Committed | None = None

    # reading

    def data(self, channel: str) -> list[Any]:
        """What was published into one channel, oldest first."""
        return [data for name, data in self if name == channel]

    def count(self, value: object) -> int:
        """How often this was published: `outbox.count(("chat:lobby", {"text": "hi"}))`."""
        return sum(value == published for published in self)

    def clear(self) -> None:
        """Forget what was published until now."""
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
        if self._committed is not None and _open[-1:] == [self]:
            self._committed.happen()
        return self._published

    # writing

    def begin(self) -> None:
        """Take what is published from now on."""
        with _lock:
            if _open:
                _open[-1]._look()
            self._committed = Committed()
            _open.append(self)
            transactions.capture = _take

    def end(self) -> None:
        """Take no more."""
        self._look()
        with _lock:
            self._committed = None
            _open[:] = [outbox for outbox in _open if outbox is not self]
            if not _open:
                transactions.capture = None

    def take(self, publications: Publications) -> None:
        """Publish into this outbox."""
        if self._committed is not None:
            self._committed.happen()  # it was published earlier
        for channel, data in publications:
            self._published.append(Published(channel, payload.value(data.json)))


class capture(ContextDecorator):  # noqa: N801, it is called like a function
    """Take what is published into an outbox, instead of publishing it.

        with capture() as outbox:
            ...
        assert outbox == [("chat:lobby", {"text": "hi"})]

    As a decorator, of coroutine functions too, it only keeps publications from going out. Of
    several the innermost takes. Clients of a `TestService` receive what is published as well.
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


def _take(publications: Publications) -> bool:
    """See `commits.capture`."""
    _open[-1].take(publications)
    return bool(delivered_to)


def matching(published: Iterable[Published], channel: str, data: object = ANY) -> list[Published]:
    """Those in a channel whose data equal these."""
    return [entry for entry in published if entry.channel == channel and entry.data == data]
