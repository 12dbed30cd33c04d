"""The groups that a node joins, in Redis: one mailbox receives the messages of all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from realtime.engine.redis.records import Message
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import OnShards
from realtime.protocol.messages import StreamPosition

Handler = Callable[[Message], None]
Send = Callable[[str, Message, StreamPosition | None], Awaitable[None]]
"""Sends a message to a group, with its position if it has one."""


class RedisGroups:
    """See the module."""

    sharded = True
    """Whether groups belong to shards that are lost one by one."""
    send: Send | None = None
    """Sends a publication in a second step; None: Redis does it in the step that keeps it."""

    def __init__(self, redis: RedisBus, *, owned: bool = True) -> None:
        """`owned`: nothing else uses `redis`, so its connections are closed with the groups."""
        self._redis = redis
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
        deserialize = self._redis.deserialize

        def put(data: bytes) -> None:
            handler(deserialize(data))

        await self._redis.on_loop().open_mailbox(self._mailbox, put, (on_lost, on_restored))

    async def close(self) -> None:
        """Receive nothing more, and release everything. Bounded in time."""
        loop_bus = self._redis.on_loop()
        loop_bus.close_mailbox(self._mailbox)
        if self._owned:
            await loop_bus.flush()  # leaves all groups, too
        else:
            loop_bus.leave_all(self._mailbox)

    async def join(self, group: str) -> None:
        """Receive what is sent to a group. Takes effect in the order of calls."""
        await self._redis.on_loop().join(self._redis.group_channel(group), self._mailbox)

    async def leave(self, group: str) -> None:
        """Receive it no longer. Takes effect in the order of calls."""
        self._redis.on_loop().leave(self._redis.group_channel(group), self._mailbox)
