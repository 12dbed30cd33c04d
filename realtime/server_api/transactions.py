"""Publishing and transactions: what is published in one goes out after its commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import connections, transaction

from realtime import channel_rules, serving
from realtime.config import sources
from realtime.errors import BadRequest
from realtime.payload import Payload
from realtime.server_api import operations

Publications = Sequence[tuple[str, Payload]]

capture: Callable[[Publications], bool] | None = None
"""Sees what is about to be published, in tests of a site; whether it is sent all the same.

Set by `realtime.testing`.
"""


class AfterCommit:
    """Work that a transaction does after its commit. Done once, however often it is called.

    Tests of a site run in a transaction that is never committed: there `realtime.testing`
    finds this, and calls it when the code under test has left its own.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self.__qualname__ = name  # Django's log calls what failed so
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


class Sending:
    """Publications that are about to go out, one after another.

    Called, it sends them: that is what a transaction does after its commit.
    """

    def __init__(self, publications: Publications, twin: str = "apublish_many") -> None:
        """
        Args:
            publications: at least one.
            twin: what to await where an event loop must not be blocked.

        Raises:
            Error: BadRequest or NamespaceNotFound: there is none, or one of them is refused.
        """
        if not publications:
            raise BadRequest
        config = sources.current()
        for channel, _ in publications:
            channel_rules.check_channel(channel, config)
        self.publications = publications
        self.twin = twin

    def __call__(self) -> None:
        if capture is not None and not capture(self.publications):
            return
        serving.call(
            lambda member: operations.publish_many(member, self.publications), twin=self.twin
        )

    async def asend(self) -> None:
        """Send them, from a coroutine."""
        if capture is not None and not capture(self.publications):
            return
        await serving.acall(lambda member: operations.publish_many(member, self.publications))


def send(sending: Sending, *, on_commit: bool) -> None:
    """Send now, or after the commit of every transaction that is under way in this thread.

    Raises:
        RuntimeError: called on an event loop.
        Exception: when it is sent now, whatever that raises.
    """
    serving.refuse_on_loop(sending.twin)
    databases = under_way() if on_commit else []
    if not databases:
        sending()
        return
    uncommitted = set(databases)

    def committed(database: str) -> None:
        uncommitted.discard(database)
        if not uncommitted:
            sending()

    for database in databases:
        after_commit(partial(committed, database), "realtime.publish", database)


def after_commit(work: Callable[[], None], name: str, using: str | None = None) -> None:
    """Do it after the commit of the transaction that is under way; a failure is logged."""
    transaction.on_commit(AfterCommit(work, name), using=using, robust=True)


def in_transaction(using: str | None = None) -> bool:
    """Whether a transaction of one database is under way that the code under test began."""
    return is_under_way(transaction.get_connection(using))


def under_way() -> list[str]:
    """The databases with a transaction that the code under test began in this thread."""
    known = connections.all(initialized_only=True)
    return [connection.alias for connection in known if is_under_way(connection)]


def is_under_way(connection: Any) -> bool:
    """Whether the code under test began a transaction on a connection.

    Those in which Django's `TestCase` wraps tests are never committed, and do not count.
    """
    return any(not block._from_testcase for block in connection.atomic_blocks)
