"""RedisBus: the shards and groups of one service, from any event loop and any thread.

A group is a Redis channel. Sending to it is a PUBLISH; or a script that numbers the message, keeps
it in a stream, trims the stream and publishes it, in one round trip. The group, its stream and all
that belongs to it are on one shard.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import re
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, NamedTuple

from realtime.engine.records import Message
from realtime.engine.redis.loop_bus import LoopBus
from realtime.engine.redis.messages import MessageSerializer, decode
from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.scripts import SEAL
from realtime.engine.redis.servers import BlockingClient, OnShards, Servers
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import StreamPosition
from realtime.redis.blocking_cluster import Routed, run_many
from realtime.redis.commands import Argument, Reply, Request, ScriptCall, Wait
from realtime.redis.hosts import Timeouts
from realtime.redis.link import Link, encode
from realtime.redis.replicas import TooFewReplicas

logger = logging.getLogger("realtime.engine")

MAX_BATCH_BYTES = 1024 * 1024
"""Bytes of messages that are sent together; far less than may wait for replies."""

SEAL_LIFETIME = 60
"""Seconds for which a master that was left accepts nothing: until all processes have left it."""
SEAL_LIFETIME_BACK = 10
"""The same where the Sentinels come back to the master before it."""
_REPLICATION_IDS = re.compile(rb"master_replid:(\w{40})\s+master_replid2:(\w{40})")
"""Of a master, and the one that it had as a replica: that of its master."""


Handler = Callable[[Message], None]
Send = Callable[[str, Message, StreamPosition | None], Awaitable[None]]
"""Sends a message to a group, with its position if it has one."""


class ShardRequest(NamedTuple):
    """A round trip to a shard."""

    shard: int
    request: Request
    wait: Wait | None = None
    """For replicas, after it."""
    beside: bool = False
    """Keep its order among those that wait for replicas."""


class _Confirmations:
    """Logs once per outage. Threads count without a lock: the number is for the log."""

    def __init__(self) -> None:
        self._missing: dict[int, int] = {}
        """Shard → publications that its replicas did not confirm, since the last that they did."""

    @contextmanager
    def counting(self, shard: int) -> Iterator[None]:
        """Keep a publication that waits for replicas within this block."""
        try:
            yield
        except TooFewReplicas as error:
            self.note(shard, error)
            raise
        else:
            self.note(shard, None)

    def note(self, shard: int, reply: Reply | EngineUnavailable) -> None:
        """Note the reply to a publication that waited for replicas."""
        if isinstance(reply, TooFewReplicas):
            count = self._missing.get(shard, 0)
            self._missing[shard] = count + 1
            if count == 0:
                logger.warning("Publications may be lost in a failover: %s", reply)
        elif isinstance(reply, EngineUnavailable):
            return
        elif self._missing and (count := self._missing.pop(shard, 0)):
            logger.warning("Replicas have publications again; %d were not confirmed", count)


class RedisBus:
    """See the module. Each event loop gets connections of its own, threads share a pool."""

    def __init__(
        self,
        servers: Servers,
        prefix: str,
        serializer: MessageSerializer,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - a tuple
        partitions: Partitions = Partitions(),  # noqa: B008
    ) -> None:
        """
        Args:
            servers: the shards; the same in every process.
            prefix: begins the name of every Redis channel.
            serializer: encodes messages, and what is kept in Redis.
            partitions: give the hash tags of groups and keys, if there are any.
        """
        self.partitions = partitions
        self.servers = servers
        self.prefix = prefix
        self.timeouts = timeouts
        self.seal = ""
        """The key that keeps an old master from accepting publications; its engine names it."""
        self.serialize: Callable[[Message], bytes] = serializer.serialize
        self.deserialize: Callable[[bytes], Message] = functools.partial(decode, serializer)
        self._confirmations = _Confirmations()
        self._opening = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, LoopBus] = {}
        self._blocking: Sequence[BlockingClient] = ()

    def with_timeouts(self, timeouts: Timeouts) -> RedisBus:
        """Return a bus to the same Redis, with other timeouts and connections of its own."""
        bus = copy.copy(self)
        bus.timeouts = timeouts
        bus._confirmations = _Confirmations()
        bus._loops = {}
        bus._blocking = ()
        return bus

    def group_channel(self, group: str) -> str:
        """Return the Redis channel of a group."""
        return f"{self.prefix}__group__{self.partitions.tag(group)}{group}"

    def shard(self, group: str) -> int:
        """Return the index of the shard of a group."""
        return self.shard_of(self.group_channel(group))

    def shard_of(self, channel: str) -> int:
        """Return the index of the shard of a Redis channel, or of a key of the panel."""
        return self.servers.shard_of(channel)

    async def _seal(
        self, new: AbstractAsyncContextManager[Link], old: AbstractAsyncContextManager[Link]
    ) -> None:
        """Have the old master accept no more publications with history: it will drop them.

        What it accepted until now is missing at the new one. Clients learn that afterwards, when
        their node has the new one.
        """
        if not self.seal:
            return
        async with new as link:
            await _answered(link, "DEL", self.seal)  # it may be an old one that is back
            info = await _answered(link, "INFO", "replication")
        ids = _REPLICATION_IDS.search(info)
        if ids is not None:
            async with old as link:
                lifetimes = (SEAL_LIFETIME, SEAL_LIFETIME_BACK)
                await _answered(link, *SEAL.by_text((self.seal,), (*ids.groups(), *lifetimes)))

    # on an event loop

    async def call(
        self, shard: int, request: Request, wait: Wait | None = None, beside: bool = False
    ) -> Reply:
        """Make a request to a shard and return its reply.

        The arguments are the fields of `ShardRequest`.

        Raises:
            EngineUnavailable: Redis is away or refused.
            NoReply: none came in time; the request may have taken effect.
        """
        loop_bus = self.on_loop()
        if wait is None:
            connections = loop_bus.confirming if beside else loop_bus.connections
            return await connections[shard].call(request)
        with self._confirmations.counting(shard):
            return await loop_bus.confirming[shard].call(request, wait)

    async def call_many(
        self, requests: Sequence[ShardRequest], *, reads: bool = False
    ) -> list[Reply | EngineUnavailable]:
        """Make several requests in their order, in as few round trips as possible.

        Args:
            reads: they are scripts that only read.

        Returns:
            The reply to each, or why there is none.
        """
        results: list[Reply | EngineUnavailable] = []
        batch: list[Awaitable[Reply | EngineUnavailable]] = []
        size = 0
        for each in requests:
            batch.append(self._attempt(each))
            size += _size(each.request)
            if size >= MAX_BATCH_BYTES:
                results += await asyncio.gather(*batch)
                batch, size = [], 0
        results += await asyncio.gather(*batch)
        return results

    async def _attempt(self, request: ShardRequest) -> Reply | EngineUnavailable:
        try:
            return await self.call(*request)
        except EngineUnavailable as error:
            return error

    def on_loop(self) -> LoopBus:
        """Return the connections, mailboxes and groups of the running loop."""
        loop = asyncio.get_running_loop()
        bus = self._loops.get(loop)
        if bus is None:
            bus = self._loops[loop] = LoopBus(self.servers, self.timeouts, self._seal)
            _before_close(loop, functools.partial(self._forget, loop))
        return bus

    async def _forget(self, loop: asyncio.AbstractEventLoop) -> None:
        bus = self._loops.pop(loop, None)
        if bus is not None:
            await bus.flush()

    async def close(self) -> None:
        """Close the mailboxes and connections of the running loop; connections are opened again
        when needed."""
        bus = self._loops.get(asyncio.get_running_loop())
        if bus is not None:
            await bus.flush()

    def new_mailbox_name(self, kind: str = "specific.") -> str:
        """Return a name for a mailbox that no other has, in any process."""
        name = uuid.uuid4().hex
        return f"{self.prefix}{kind}{self.partitions.tag(name)}{name}"

    # in threads without an event loop

    def blocking(self, shard: int) -> BlockingClient:
        """Return the client of all threads for a shard."""
        return self._clients()[shard]

    def _clients(self) -> Sequence[BlockingClient]:
        clients = self._blocking
        if not clients:
            with self._opening:
                clients = self._blocking = self._blocking or self.servers.blocking(self.timeouts)
        return clients

    def examined(self) -> list[tuple[str, BlockingClient]]:
        """Return each server of Redis once: where it is, and a client that reaches it.

        Raises:
            EngineUnavailable: no server of a cluster says which ones there are.
        """
        return self.servers.examined(self._clients())

    async def call_blocking(
        self, shard: int, request: Request, wait: Wait | None = None, beside: bool = False
    ) -> Reply:
        """As `call`; never suspends, and makes no event loop."""
        if wait is None:
            return self.blocking(shard).call(request)
        with self._confirmations.counting(shard):
            return self.blocking(shard).call(request, wait)

    async def call_many_blocking(
        self, requests: Sequence[ShardRequest], *, reads: bool = False
    ) -> list[Reply | EngineUnavailable]:
        """As `call_many`; never suspends, and makes no event loop."""
        clients = self._clients()
        routed = [Routed(clients[shard], request, wait) for shard, request, wait, _ in requests]
        replies = run_many(routed, reads=reads)
        for (shard, _, wait, _), reply in zip(requests, replies, strict=True):
            if wait is not None:
                self._confirmations.note(shard, reply)
        return replies

    def close_blocking(self) -> None:
        """Close the connections of threads; they are opened again when needed."""
        clients, self._blocking = self._blocking, ()
        for client in clients:
            client.close()


class RedisGroups:
    """The groups that a node joins: one mailbox receives the messages of all of them."""

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


async def _answered(link: Link, *command: Argument) -> Reply:
    reply = await link.send(encode(command))
    if isinstance(reply, EngineUnavailable):
        raise reply
    return reply


def _size(request: Request) -> int:
    """Return the bytes of the message in a request."""
    arguments = request.arguments if isinstance(request, ScriptCall) else request
    return sum(len(argument) for argument in arguments if type(argument) is bytes)


def _before_close(
    loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Have an event loop do some work when it is closed, so that it leaves no connection open."""
    close = loop.close

    def closing() -> None:
        loop.close = close  # type: ignore[method-assign]
        if not loop.is_closed():
            loop.run_until_complete(work())
        loop.close()

    loop.close = closing  # type: ignore[method-assign]
