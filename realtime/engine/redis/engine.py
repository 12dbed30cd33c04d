"""The Redis engine: any number of processes on any number of hosts."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from realtime.channel_rules import CONTROL
from realtime.engine.base import Affects, Engine, Receiver, Store
from realtime.engine.redis.broker import (
    DEFAULT_META,
    MetaSettings,
    RedisBroker,
    RedisStreams,
)
from realtime.engine.redis.cluster import RedisCluster
from realtime.engine.redis.limits import RedisLimits
from realtime.engine.redis.lists import RedisLists, RedisNodeLists
from realtime.engine.redis.maps import RedisMaps
from realtime.engine.redis.presence import RedisPresence
from realtime.engine.redis.redis_bus import RedisBus, RedisGroups, Send
from realtime.engine.redis.shards import Shards


class RedisStore(Store):
    """See `engine.base.Store` for the contract. No coroutine suspends."""

    broker: RedisStreams

    def __init__(
        self,
        redis: RedisBus,
        prefix: str,
        meta: MetaSettings = DEFAULT_META,
        send: Send | None = None,
    ) -> None:
        """
        Args:
            redis: reaches Redis.
            prefix: begins the name of every key.
            send: of a third-party layer.
        """
        shards = Shards(redis, prefix, blocking=True)
        self.broker = RedisStreams(shards, meta, send)
        self.presence = RedisPresence(shards)
        self.lists = RedisLists(shards)
        self.seen = self.lists.seen
        self.cluster = RedisCluster(shards, self.broker)
        self.limits = RedisLimits(shards)
        self.maps = RedisMaps(shards, self.broker.read_call)


class RedisEngine(Engine):
    """See `engine.base.Engine` for the contract."""

    broker: RedisBroker
    lists: RedisNodeLists

    def __init__(
        self,
        redis: RedisBus,
        prefix: str,
        meta: MetaSettings = DEFAULT_META,
        groups: RedisGroups | None = None,
    ) -> None:
        """As `RedisStore`. `groups`: those that the node joins, if not its own in `redis`."""
        self.shards = Shards(redis, prefix)
        self.groups = groups or RedisGroups(redis)
        self.lists = RedisNodeLists(self.shards)
        self.seen = self.lists.seen
        self.broker = RedisBroker(self.shards, self.groups, meta, self.lists.channels)
        self.presence = RedisPresence(self.shards)
        self.cluster = RedisCluster(self.shards, self.broker, self.lists)
        self.limits = RedisLimits(self.shards)
        self.maps = RedisMaps(self.shards, self.broker.read_call)

    async def start(self, receiver: Receiver, uid: str) -> None:
        self.broker.receiver = receiver
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.groups.close)
            await self.groups.open(
                self.broker.on_message,
                lambda shards: receiver.on_interrupted(self._affected_by(shards)),
                lambda shards: self._on_resumed(shards, receiver),
            )
            undo.pop_all()
        self.lists.open(receiver, uid)

    async def stop(self) -> None:
        self.broker.receiver = None
        await self.lists.close()
        await self.groups.close()

    def _on_resumed(self, shards: Collection[int], receiver: Receiver) -> None:
        affects = self._affected_by(shards)
        if affects(CONTROL):
            self.lists.doubt()
        receiver.on_resumed(affects)

    def _affected_by(self, shards: Collection[int]) -> Affects:
        if not self.groups.sharded:  # it lost the groups of all shards at once
            return lambda channel: True
        return self.shards.affected_by(shards)
