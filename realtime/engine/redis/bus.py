"""Bus: how the engine of one process reaches Redis and the groups of nodes.

    RedisNodeBus        a node: one mailbox, which joins the groups of subscribed channels
    RedisBlockingBus    threads without an event loop: publish and ask, receive nothing

With a channel layer of others, `foreign` has one of each, which sends in a second step.

Every method raises EngineUnavailable and nothing else. Coroutines of a blocking bus never suspend:
they can be run by hand, without an event loop (`realtime.serving` does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from realtime.engine.base import Published
from realtime.engine.redis.group_message import GroupMessage, Message
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import OnShards
from realtime.errors import EngineUnavailable
from realtime.redis.commands import Argument, Reply, Script, ScriptCall

R = TypeVar("R")
Handler = Callable[[Message], None]


class RedisNodeBus:
    """Groups in Redis, one mailbox for the node."""

    sharded = True
    """Whether groups belong to shards that are lost one by one."""
    ordered = True
    """Whether messages to one group leave in the order in which calls of `publish` begin."""

    def __init__(self, redis: RedisBus, *, owned: bool = True) -> None:
        """
        Args:
            owned: nothing else uses `redis`, so its connections are closed with this bus.
        """
        self.redis = redis
        self.execute = redis.execute
        self.run = redis.run
        self.read_many = redis.read_many
        self.publish = redis.publish
        self.publish_many = redis.publish_many
        self._owned = owned
        self._mailbox = redis.new_mailbox_name()

    async def open(self, handler: Handler, on_lost: OnShards, on_restored: OnShards) -> None:
        """Begin to receive.

        Args:
            handler: called with each message. All that has arrived is handled in one turn of
                the loop.
            on_lost: messages of the groups of shards may be missed from now on.
            on_restored: all of them are received again.
        """
        mailbox = _HandlerMailbox(self.redis.deserialize, handler)
        await self.redis.on_loop().open_mailbox(self._mailbox, mailbox, (on_lost, on_restored))

    async def close(self) -> None:
        """Receive nothing more, and release everything. Bounded in time."""
        loop_bus = self.redis.on_loop()
        loop_bus.close_mailbox(self._mailbox)
        if self._owned:
            await loop_bus.flush()  # leaves all groups, too
        else:
            loop_bus.leave_all(self._mailbox)

    async def join(self, group: str) -> None:
        """Receive what is sent to a group. Takes effect in the order of calls."""
        await self.redis.on_loop().join(self.redis.group_channel(group), self._mailbox)

    async def leave(self, group: str) -> None:
        """Receive it no longer. Takes effect in the order of calls."""
        self.redis.on_loop().leave(self.redis.group_channel(group), self._mailbox)


class _HandlerMailbox:
    """Handles messages at once."""

    __slots__ = ("put",)

    def __init__(self, deserialize: Callable[[bytes], Message], handler: Handler) -> None:
        def put(data: bytes) -> None:
            handler(deserialize(data))

        self.put = put


class RedisBlockingBus:
    """Groups in Redis, for threads without an event loop."""

    def __init__(self, redis: RedisBus) -> None:
        self.redis = redis

    async def execute(self, shard: int, *command: Argument) -> Reply:
        return self.redis.blocking(shard).execute(*command)

    async def run(
        self,
        shard: int,
        script: Script[R],
        keys: Sequence[Argument],
        arguments: Sequence[Argument],
    ) -> R:
        return self.redis.blocking(shard).run(script, keys, arguments)

    async def read_many(self, calls: Sequence[tuple[int, ScriptCall[R]]]) -> list[R]:
        return self.redis.read_many_blocking(calls)

    async def publish(self, message: GroupMessage) -> Published:
        return self.redis.publish_blocking(message)

    async def publish_many(
        self, messages: Sequence[GroupMessage]
    ) -> list[Published | EngineUnavailable]:
        return self.redis.publish_many_blocking(messages)


Bus = RedisNodeBus | RedisBlockingBus
"""What the engine needs in every process."""
