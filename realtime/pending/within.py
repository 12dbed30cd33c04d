"""Streams of the PostgreSQL engine within a transaction of the site, on the site's connection.

What is published there is committed with rows of the site, or not at all. Rings follow the commit;
those of channels without history are in it: nothing else tells of their publications, and another
relay may have the next ones by then. Only for a database that the engine uses, too: sites with
another engine need no driver of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import Error, connections
from msgspec.structs import replace

from realtime.config.options import Config
from realtime.engine.base import Outgoing, Published
from realtime.engine.epochs import glanced_lifetime
from realtime.engine.postgresql.database import Address, Refused, Row
from realtime.engine.postgresql.rings import Message, Ringer
from realtime.engine.postgresql.streams import Keeping, PostgreSQLStreams

_USED = (
    "SELECT digest FROM {schema}.once WHERE digest = ANY(%s::bytea[])"
    " AND expires > {schema}.now_ms()"
)
_REPEATED = Published(kept=False)


class StreamsWithin(PostgreSQLStreams):
    """See the module. No coroutine suspends; after an error the transaction is lost."""

    _relaxes = False

    def __init__(self, address: Address, alias: str, config: Config) -> None:
        database = _SiteDatabase(address, alias)
        self._held = _HeldRinger(database, polled=bool(config.database_poll))
        least = glanced_lifetime(config)
        keeping = Keeping(config.database_history_meta_ttl, least_lifetime=least)
        super().__init__(database, self._held, keeping)

    async def _keep(
        self, publications: Sequence[Outgoing]
    ) -> list[tuple[Published, Message | None]]:
        digests = [_asked(each) for each in publications]
        used = {bytes(digest) for (digest,) in await self._database.fetch(_USED, digests)}
        left = [
            replace(each, once=None) if digest else each
            for each, digest in zip(publications, digests, strict=True)
            if digest not in used
        ]
        kept = iter(await super()._keep(left))
        return [(_REPEATED, None) if digest in used else next(kept) for digest in digests]

    def _is_sent_within(self, outgoing: Outgoing) -> bool:
        return not outgoing.options.keeps_history

    async def ring(self) -> None:
        """Notify the nodes, after the commit.

        Raises:
            EngineUnavailable: nodes learn of it by themselves.
        """
        await self._held.release()


def _asked(outgoing: Outgoing) -> bytes:
    """Return what is remembered of a key that is asked for and not kept; b"" without one."""
    once = outgoing.once
    return b"" if once is None or once.lifetime else bytes.fromhex(once.digest(outgoing.channel))


class _SiteDatabase:
    """See `engine.postgresql.database.Database`. A statement is committed with the transaction."""

    def __init__(self, address: Address, alias: str) -> None:
        self.address = address
        self._alias = alias

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        try:
            with connections[self._alias].cursor() as cursor:
                cursor.execute(self.address.text(query).decode(), arguments)
                return cursor.fetchall() if cursor.description else []
        except Error as error:
            cause = error.__cause__ or error
            failed = self.address.failed(cause)
            if isinstance(failed, Refused):  # the transaction is lost: there is nothing to repeat
                failed = self.address.unavailable(cause)
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
