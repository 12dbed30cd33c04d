"""The PostgreSQL engine: any number of processes over one database."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from realtime.engine.base import Engine, Receiver, Store
from realtime.engine.postgresql.broker import PostgreSQLBroker
from realtime.engine.postgresql.cluster import PostgreSQLCluster
from realtime.engine.postgresql.database import Address, BlockingDatabase, LoopDatabase
from realtime.engine.postgresql.limits import PostgreSQLLimits
from realtime.engine.postgresql.listening import Ears, ListeningEars, PollingEars
from realtime.engine.postgresql.lists import PostgreSQLLists, PostgreSQLNodeLists
from realtime.engine.postgresql.maps import PostgreSQLMaps
from realtime.engine.postgresql.presence import PostgreSQLNodePresence, PostgreSQLPresence
from realtime.engine.postgresql.rings import LoopRinger, Ringer
from realtime.engine.postgresql.streams import DEFAULT_KEEPING, Keeping, PostgreSQLStreams
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.engine")

HOUSEKEEPING_INTERVAL = 10.0
"""Seconds from one cleanup to the next of a node. Each reads whole tables, at one node."""
FLUSH_TIMEOUT = 2.0
"""Seconds for the rings that wait when a node stops."""


class Addresses(NamedTuple):
    """Where statements go, and how rings travel."""

    statements: Address
    rings: Address
    """The same, or past a pooler."""
    poll: float = 0.0
    """Seconds from one poll to the next where nodes do not listen; 0: they do."""


class PostgreSQLStore(Store):
    """See `engine.base.Store` for the contract. No coroutine suspends."""

    broker: PostgreSQLStreams

    def __init__(self, addresses: Addresses, keeping: Keeping = DEFAULT_KEEPING) -> None:
        database = BlockingDatabase(addresses.statements)
        self.databases = [database]
        if addresses.rings is not addresses.statements:
            self.databases.append(BlockingDatabase(addresses.rings))
        ringer = Ringer(self.databases[-1], polled=bool(addresses.poll))
        self.broker = PostgreSQLStreams(database, ringer, keeping)
        self.presence = PostgreSQLPresence(database)
        self.lists = PostgreSQLLists(database)
        self.seen = self.lists.seen
        self.cluster = PostgreSQLCluster(database, self.broker)
        self.limits = PostgreSQLLimits(database)
        self.maps = PostgreSQLMaps(database, keeping)

    def close(self) -> None:
        """Close the connections that no thread uses; they are opened again when needed."""
        for database in self.databases:
            database.close()


class PostgreSQLEngine(Engine):
    """See `engine.base.Engine` for the contract."""

    broker: PostgreSQLBroker
    presence: PostgreSQLNodePresence
    lists: PostgreSQLNodeLists
    cluster: PostgreSQLCluster

    def __init__(self, addresses: Addresses, keeping: Keeping = DEFAULT_KEEPING) -> None:
        self._addresses = addresses
        self.database = LoopDatabase(addresses.statements)
        self._ringing = LoopDatabase(addresses.rings, connections=1)
        self._ringer = LoopRinger(self._ringing, polled=bool(addresses.poll))
        self._ears: Ears | None = None
        self._housekeeping: asyncio.Task[None] | None = None
        self.lists = PostgreSQLNodeLists(self.database)
        self.seen = self.lists.seen
        self.broker = PostgreSQLBroker(self.database, self._ringer, keeping, self.lists.channels)
        self.presence = PostgreSQLNodePresence(self.database)
        self.cluster = PostgreSQLCluster(self.database, self.broker, self.lists)
        self.limits = PostgreSQLLimits(self.database)
        self.maps = PostgreSQLMaps(self.database, keeping)

    async def start(self, receiver: Receiver, uid: str) -> None:
        delivery = self.broker.delivery
        delivery.receiver = receiver

        def lost(error: EngineUnavailable) -> None:
            logger.warning("Delivery by PostgreSQL is interrupted: %s", error)
            delivery.is_interrupted = True
            receiver.on_interrupted(_everywhere)

        def restored() -> None:
            logger.warning("Delivery by PostgreSQL works again")
            self.lists.doubt()
            delivery.on_restored()
            receiver.on_resumed(_everywhere)

        rest = (delivery.on_ring, delivery.look, (lost, restored))
        if self._addresses.poll:
            self._ears = PollingEars(self.database, self._addresses.poll, *rest)
        else:
            self._ears = ListeningEars(self._ringing, *rest)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.stop)
            await self.broker.keep_house(waits=True)
            await self._ears.open()
            delivery.is_interrupted = False
            undo.pop_all()
        self.lists.open(receiver, uid)
        self._housekeeping = asyncio.get_running_loop().create_task(self._keep_house(uid))

    async def _keep_house(self, uid: str) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_INTERVAL)
            for work in (
                partial(self.broker.keep_house, waits=False),
                partial(self.cluster.remove_expired, uid),
            ):
                try:
                    await work()
                except EngineUnavailable as error:
                    logger.debug("Cleanup in PostgreSQL failed: %s", error)

    async def stop(self) -> None:
        self.broker.delivery.receiver = None
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            await asyncio.wait([self._housekeeping])
        await self.lists.close()
        await self.presence.close()
        await self.broker.close()
        await self._ringer.close(FLUSH_TIMEOUT)
        if self._ears is not None:
            await self._ears.close()
        await self.database.close()
        await self._ringing.close()


def _everywhere(channel: ChannelName) -> bool:
    return True
