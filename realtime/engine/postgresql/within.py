"""Streams within a transaction of the site, on the site's own connection.

What is published there is committed with rows of the site, or not at all. Rings follow the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from realtime.engine.postgresql.database import Address, Row
from realtime.engine.postgresql.rings import Message, Ringer
from realtime.engine.postgresql.streams import Keeping, PostgreSQLStreams


class StreamsWithin(PostgreSQLStreams):
    """See the module. No coroutine suspends; after an error the transaction is lost."""

    def __init__(
        self,
        address: Address,
        connection: psycopg.Connection[Any],
        keeping: Keeping,
        polled: bool,
    ) -> None:
        database = _SiteConnection(address, connection)
        self._held = _HeldRinger(database, polled)
        super().__init__(database, self._held, keeping)

    async def ring(self) -> None:
        """Notify the nodes, after the commit.

        Raises:
            EngineUnavailable: nodes learn of what is kept by themselves; the rest may be lost.
        """
        await self._held.release()


class _SiteConnection:
    """See `database.Database`. A statement is committed with the transaction."""

    def __init__(self, address: Address, connection: psycopg.Connection[Any]) -> None:
        self.address = address
        self._connection = connection

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        try:
            cursor: psycopg.Cursor[Row] = psycopg.Cursor(self._connection)
            cursor.execute(self.address.text(query), arguments, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:  # not Refused: there is nothing to repeat
            raise self.address.unavailable(error) from None


class _HeldRinger(Ringer):
    """Keeps messages until the commit."""

    _messages: Sequence[Message] = ()

    async def ring(self, messages: Sequence[Message]) -> None:
        self._messages = [*self._messages, *messages]

    async def release(self) -> None:
        messages, self._messages = self._messages, ()
        if messages:
            await super().ring(messages)
