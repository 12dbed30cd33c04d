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
from typing import Any, TypeVar

from realtime.engine.base import Published
from realtime.engine.epochs import new_epoch
from realtime.engine.redis.group_message import (
    GroupMessage,
    Message,
    Serializer,
    decode,
)
from realtime.engine.redis.loop_bus import LoopBus
from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.scripts import SEAL, Appended
from realtime.engine.redis.servers import BlockingClient, Servers, ShardRequest
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import StreamPosition
from realtime.redis.commands import Argument, Command, Reply, Script, ScriptCall, Wait
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

Append = Command | ScriptCall[Appended]
"""The round trip that keeps and sends a message."""

Result = Published | EngineUnavailable
"""Of one of several messages."""

R = TypeVar("R")


class _Confirmations:
    """Logs once per outage. Threads count without a lock: the number is for the log."""

    def __init__(self) -> None:
        self._missing: dict[int, int] = {}
        """Shard → publications that its replicas did not confirm, since the last that they did."""

    @contextmanager
    def counting(self, shard: int) -> Iterator[None]:
        try:
            yield
        except TooFewReplicas as error:
            self.missed(shard, error)
            raise
        else:
            self.confirmed(shard)

    def missed(self, shard: int, error: TooFewReplicas) -> None:
        """Count a publication that replicas did not confirm."""
        count = self._missing.get(shard, 0)
        self._missing[shard] = count + 1
        if count == 0:
            logger.warning("Publications may be lost in a failover: %s", error)

    def confirmed(self, shard: int) -> None:
        if self._missing and (count := self._missing.pop(shard, 0)):
            logger.warning("Replicas have publications again; %d were not confirmed", count)


class RedisBus:
    """See the module. Each event loop gets connections of its own, threads share a pool."""

    def __init__(
        self,
        servers: Servers,
        prefix: str,
        serializer: Serializer,
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

    def _request(self, message: GroupMessage) -> tuple[int, Append]:
        """Return the shard of a message, and the round trip that keeps and sends it."""
        group, content, stream, send, _, once = message
        channel = self.group_channel(group)
        shard = self.shard_of(channel)
        data = self.serialize(content)
        if stream is None:
            if once is None:
                return shard, (self.servers.publish, channel, data)
            lone = (data, channel if send else "", once.lifetime)
            return shard, ScriptCall(self.servers.send_once, (once.key,), lone)
        arguments: tuple[Argument, ...] = (
            data,
            stream.size,
            stream.lifetime,
            # a meta that expired before the publications would end their epoch
            stream.meta_lifetime and max(stream.meta_lifetime, 2 * stream.lifetime),
            new_epoch(),
            int(stream.epoch_per_run),
            channel if send else "",
            stream.uid,
        )
        keys: tuple[str, ...] = stream.keys
        if once is not None:
            keys, arguments = (*keys, once.key), (*arguments, once.lifetime)
        if stream.version is not None or stream.expect is not None:
            no_key = (0,) if once is None else ()
            arguments = (*arguments, *no_key, *(stream.version or ("", "")), *(stream.expect or ()))
        if self.servers.asks_sentinels(shard):
            keys = (*keys, self.seal)
        return shard, ScriptCall(self.servers.append, keys, arguments)

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

    async def execute(self, shard: int, *command: Argument) -> Reply:
        """Send a command to a shard and return its reply.

        Raises:
            EngineUnavailable: Redis is away or refused.
            NoReply: none came in time; the command may have taken effect.
        """
        return await self.on_loop().connections[shard].execute(*command)

    async def run(
        self,
        shard: int,
        script: Script[R],
        keys: Sequence[Argument],
        arguments: Sequence[Argument],
    ) -> R:
        """Run a script on a shard and return its reply. Errors as with `execute`."""
        return await self.on_loop().connections[shard].run(script, keys, arguments)

    async def read_many(self, calls: Sequence[tuple[int, ScriptCall[R]]]) -> list[R]:
        """Run scripts that only read on their shards, in as few round trips as possible.

        Raises:
            EngineUnavailable: one of them was not answered.
        """
        connections = self.on_loop().connections
        return await asyncio.gather(*(connections[shard].run(*call) for shard, call in calls))

    async def publish(self, message: GroupMessage) -> Published:
        """Keep and send a message.

        Raises:
            EngineUnavailable: it may have been sent although this raises, if the answer was late.
        """
        shard, request = self._request(message)
        return await self._send(shard, request, message.wait)

    async def _send(self, shard: int, request: Append, wait: Wait | None) -> Published:
        loop_bus = self.on_loop()
        connection = loop_bus.connections[shard] if wait is None else loop_bus.confirming[shard]
        if not isinstance(request, ScriptCall):
            await connection.execute(*request)
            return SENT
        if wait is None or request.script is self.servers.send_once:  # which keeps nothing
            return _published(await connection.run(*request))
        with self._confirmations.counting(shard):
            return _published(await connection.run_confirmed(*request, wait))

    async def publish_many(self, messages: Sequence[GroupMessage]) -> list[Result]:
        """Keep and send several messages in their order, in as few round trips as possible."""
        results: list[Result] = []
        batch: list[Awaitable[Result]] = []
        size = 0
        for message in messages:
            shard, request = self._request(message)
            batch.append(self._attempt(shard, request, message.wait))
            size += _size(request)
            if size >= MAX_BATCH_BYTES:
                results += await asyncio.gather(*batch)
                batch, size = [], 0
        results += await asyncio.gather(*batch)
        return results

    async def _attempt(self, shard: int, request: Append, wait: Wait | None) -> Result:
        try:
            return await self._send(shard, request, wait)
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

    def publish_blocking(self, message: GroupMessage) -> Published:
        """Keep and send a message. As `publish`; makes no event loop."""
        shard, request = self._request(message)
        client = self.blocking(shard)
        if not isinstance(request, ScriptCall):
            client.execute(*request)
            return SENT
        if message.wait is None or request.script is self.servers.send_once:  # which keeps nothing
            return _published(client.run(*request))
        with self._confirmations.counting(shard):
            return _published(client.run_confirmed(*request, message.wait))

    def publish_many_blocking(self, messages: Sequence[GroupMessage]) -> list[Result]:
        """Keep and send several messages in their order. As `publish_many`."""
        requests: list[ShardRequest] = []
        for message in messages:
            shard, request = self._request(message)
            requests.append(ShardRequest(shard, request, message.wait if message.stream else None))
        results: list[Result] = []
        replies = self.servers.run_many(self._clients(), requests)
        for message, (shard, _, wait), reply in zip(messages, requests, replies, strict=True):
            if message.stream is not None:
                results.append(self._result(shard, reply, wait))
            elif isinstance(reply, EngineUnavailable):
                results.append(SENT if type(reply) is TooFewReplicas else reply)
            else:
                results.append(SENT if message.once is None else _published(reply))
        return results

    def read_many_blocking(self, calls: Sequence[tuple[int, ScriptCall[R]]]) -> list[R]:
        """Run scripts that only read on their shards. As `read_many`."""
        results: list[R] = []
        for reply in self.servers.read_many(self._clients(), calls):
            if isinstance(reply, EngineUnavailable):
                raise reply
            results.append(reply)
        return results

    def _result(self, shard: int, reply: Reply, wait: Wait | None) -> Result:
        """Return what became of a message that was to be kept."""
        if isinstance(reply, TooFewReplicas):
            self._confirmations.missed(shard, reply)
        if isinstance(reply, EngineUnavailable):
            return reply
        if wait is not None:
            self._confirmations.confirmed(shard)
        return _published(reply)

    def close_blocking(self) -> None:
        """Close the connections of threads; they are opened again when needed."""
        clients, self._blocking = self._blocking, ()
        for client in clients:
            client.close()


SENT = Published()


async def _answered(link: Link, *command: Argument) -> Reply:
    reply = await link.send(encode(command))
    if isinstance(reply, EngineUnavailable):
        raise reply
    return reply


def _published(reply: Appended) -> Published:
    offset, epoch, dropped = reply
    position = StreamPosition(int(offset), epoch.decode()) if epoch else None
    return Published(position, dropped != 1)


def _size(request: Append) -> int:
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
