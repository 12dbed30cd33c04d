"""Streams within a transaction of the site, on the site's own connection.

What is published there is committed with rows of the site, or not at all. Rings follow the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from msgspec.structs import replace

from realtime.engine.base import Outgoing, Published
from realtime.engine.postgresql.database import Address, Refused, Row
from realtime.engine.postgresql.rings import Message, Ringer
from realtime.engine.postgresql.streams import Keeping, PostgreSQLStreams, key
from realtime.protocol.messages import ChannelName, StreamPosition

_TOPS = (
    "SELECT channel, top, epoch FROM {schema}.stream WHERE channel = ANY(%s::bytea[])"
    " AND (expires IS NULL OR expires > {schema}.now_ms())"
)

_USED = (
    "SELECT digest FROM {schema}.once WHERE digest = ANY(%s::bytea[])"
    " AND expires > {schema}.now_ms()"
)
_REPEATED = Published(kept=False)


class StreamsWithin(PostgreSQLStreams):
    """See the module. No coroutine suspends; after an error the transaction is lost."""

    def __init__(
        self,
        address: Address,
        connection: psycopg.Connection[Any],
        keeping: Keeping,
        polled: bool,
    ) -> None:
        self._connection = connection
        database = _SiteConnection(address, connection)
        self._held = _HeldRinger(database, polled)
        super().__init__(database, self._held, keeping)

    async def _keep(
        self, publications: Sequence[Outgoing]
    ) -> list[tuple[Published, Message | None]]:
        digests = [_asked(each) for each in publications]
        used = {digest for (digest,) in await self._database.fetch(_USED, digests)}
        left = [
            replace(each, once=None) if digest else each
            for each, digest in zip(publications, digests, strict=True)
            if digest not in used
        ]
        kept = iter(await super()._keep(left))
        return [(_REPEATED, None) if digest in used else next(kept) for digest in digests]

    async def is_snapshot(self) -> bool:
        """Return whether all statements of the transaction see the same rows."""
        ((isolation,),) = await self._database.fetch("SHOW transaction_isolation")
        return isolation in ("repeatable read", "serializable")

    async def tops(self, channels: Sequence[ChannelName]) -> dict[ChannelName, StreamPosition]:
        """Return the positions of channels as the transaction sees them. Nothing is written.

        A channel that has no stream yet is left out.

        Raises:
            EngineUnavailable: the transaction can go on, if the connection is there.
        """
        names = {key(channel): channel for channel in channels}
        try:
            with self._connection.transaction():  # a savepoint: the caller goes on after an error
                rows = await self._database.fetch(_TOPS, [*names])
        except psycopg.Error as error:
            raise self._database.address.failed(error) from None
        return {names[name]: StreamPosition(*position) for name, *position in rows}

    async def ring(self) -> None:
        """Notify the nodes, after the commit.

        Raises:
            EngineUnavailable: nodes learn of what is kept by themselves; the rest may be lost.
        """
        await self._held.release()


def _asked(outgoing: Outgoing) -> bytes:
    """Return what is remembered of a key that is asked for and not kept; b"" without one."""
    once = outgoing.once
    return b"" if once is None or once.lifetime else bytes.fromhex(once.digest(outgoing.channel))


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
        except psycopg.Error as error:
            failed = self.address.failed(error)
            if isinstance(failed, Refused):  # the transaction is lost: there is nothing to repeat
                failed = self.address.unavailable(error)
            raise failed from None


class _HeldRinger(Ringer):
    """Keeps messages until the commit."""

    _messages: Sequence[Message] = ()

    async def ring(self, messages: Sequence[Message]) -> None:
        self._messages = [*self._messages, *messages]

    async def release(self) -> None:
        messages, self._messages = self._messages, ()
        if messages:
            await super().ring(messages)
