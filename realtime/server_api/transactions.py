"""Publishers: how checked publications of the site go out, now or after a commit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from django.db import connections, transaction

from realtime.cluster.member import Member, NewPublication
from realtime.config.options import Config
from realtime.engine.base import Published
from realtime.errors import BadRequest, EngineUnavailable, NotServing
from realtime.server_api import operations
from realtime.tracing.recording import recorder

logger = logging.getLogger("realtime.api")

T = TypeVar("T")

Publications = Sequence[operations.Checked]

Outcomes = Sequence[Published]
"""What became of each publication: `UNKNOWN` where it is not known yet."""

UNKNOWN = Published()
"""Has no position. It waits for a commit or in a row, was dropped, or tests keep it."""


class Publisher(Protocol):
    """Sends publications that were checked. A later one may keep them in the site's database."""

    def send(self, publications: Publications) -> Outcomes:
        """Send them, from a thread without an event loop. Return what became of each.

        Raises:
            Exception: they could not be sent; some of them may be.
        """

    async def asend(self, publications: Publications) -> Outcomes:
        """Send them, from a coroutine. Async version of `send`."""


class Members(Protocol):
    """Reaches the member of the service that this process is."""

    def call(self, work: Callable[[Member], Awaitable[T]]) -> T:
        """Run `work` from a thread without an event loop."""

    async def acall(self, work: Callable[[Member], Awaitable[T]]) -> T:
        """Run `work` from a coroutine. Async version of `call`."""


class Direct:
    """Publishes at once, to every process."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def send(self, publications: Publications) -> Outcomes:
        work = partial(operations.publish_checked, publications=publications)
        if (recording := recorder.get()) is None:
            return self._members.call(work)
        with recording.sending(publications) as sent:
            return sent(self._members.call(work))

    async def asend(self, publications: Publications) -> Outcomes:
        work = partial(operations.publish_checked, publications=publications)
        if (recording := recorder.get()) is None:
            return await self._members.acall(work)
        with recording.sending(publications) as sent:
            return sent(await self._members.acall(work))


class Forgiving:
    """Publishes at once, and drops what reaches no clients or no engine."""

    def __init__(self, publisher: Callable[[], Publisher]) -> None:
        """`publisher`: returns the one that sends, asked when it does."""
        self._publisher = publisher

    def send(self, publications: Publications) -> Outcomes:
        try:
            return self._publisher().send(publications)
        except (NotServing, EngineUnavailable) as error:
            return _dropped(publications, error)

    async def asend(self, publications: Publications) -> Outcomes:
        try:
            return await self._publisher().asend(publications)
        except (NotServing, EngineUnavailable) as error:
            return _dropped(publications, error)


def _dropped(publications: Publications, error: Exception) -> Outcomes:
    logger.info("Could not publish %d publications: %s", len(publications), error)
    return [UNKNOWN] * len(publications)


class AfterCommit:
    """Publishes after the commit of every transaction that is under way in the thread.

    Where none is, and in coroutines, it publishes at once: Django's transactions belong to
    threads. A failure after the commit is logged, for the transaction is not undone by it.
    """

    def __init__(self, publisher: Callable[[], Publisher]) -> None:
        """`publisher`: called at the time of sending; returns the publisher to use."""
        self._publisher = publisher

    def send(self, publications: Publications) -> Outcomes:
        databases = under_way()
        if not databases:
            return self._publisher().send(publications)
        uncommitted = set(databases)

        def committed(database: str) -> None:
            uncommitted.discard(database)
            if not uncommitted:
                self._publisher().send(publications)

        for database in databases:
            after_commit(partial(committed, database), "realtime.publish", database)
        waits(publications, "commit")
        return [UNKNOWN] * len(publications)


def waits(publications: Publications, until: str) -> None:
    """Tell what records this request that publications wait; see `RequestRecorder.waits`."""
    if (recording := recorder.get()) is not None:
        recording.waits(publications, until)


def check(publications: Sequence[NewPublication], config: Config) -> Publications:
    """Check publications before they are sent, or wait for a commit.

    Returns:
        The publications, each with the options of its channel.

    Raises:
        BadRequest: there are none, or a name of a channel is not one.
        NamespaceNotFound: a channel is in no namespace of the configuration.
        NotAvailable: one has a version, and is not kept.
    """
    if not publications:
        raise BadRequest
    return [(new, operations.check_new(new, config)) for new in publications]


# Django's transactions


class CommitHook:
    """Work that a transaction does after its commit. Done once, however often it is called.

    Tests of a site run in a transaction that is never committed: there `realtime.testing`
    finds this, and calls it when the code under test has left its own.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        """`name`: what Django's log calls it when it fails."""
        self._work = work
        self.__qualname__ = name
        self.running = False
        self.done = False

    def __call__(self) -> None:
        if self.running or self.done:
            return
        self.running = True
        try:
            self._work()
        finally:
            self.running = False
            self.done = True


def after_commit(work: Callable[[], None], name: str, using: str | None = None) -> None:
    """Run `work` after the commit of the transaction that is under way; log a failure.

    Args:
        work: what to do.
        name: what the log calls it.
        using: alias of the database; None for the default one.
    """
    transaction.on_commit(CommitHook(work, name), using=using, robust=True)


def in_transaction(using: str | None = None) -> bool:
    """Return whether a transaction of one database is under way. `using`: its alias."""
    return is_under_way(transaction.get_connection(using))


def under_way() -> list[str]:
    """Return the aliases of the databases with a transaction of this thread."""
    known = connections.all(initialized_only=True)
    return [connection.alias for connection in known if is_under_way(connection)]


def is_under_way(connection: Any) -> bool:
    """Return whether a connection has a transaction that will be committed or rolled back.

    Those that Django's `TestCase` puts around tests are never committed, and do not count.
    """
    return any(not block._from_testcase for block in connection.atomic_blocks)
