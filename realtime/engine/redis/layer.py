"""The channel layer of the service: Redis pub/sub, and publishing in one step.

    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "realtime.layer.RedisChannelLayer",
            "CONFIG": {"hosts": ["redis://localhost:6379"], "prefix": "mysite"},
        }
    }

It is `channels_redis`' pub/sub layer, with connections of its own (see `realtime.redis`) and
one operation more: `publish` numbers a message, keeps it in a stream, trims the stream and
sends the message to a group, in one script and one round trip. Whoever is in the group
receives it as any other message, with its `offset` and `epoch`. Everything consumers do with
a layer works as before.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer, RedisPubSubLoopLayer
from channels_redis.utils import _consistent_hash, _wrap_close, decode_hosts

from realtime.engine.base import new_epoch
from realtime.engine.redis.scripts import APPEND
from realtime.redis.blocking import BlockingRedis
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub import Subscriptions
from realtime.redis.script import Script

NUMBERED = b"\xc1"
"""First byte of a message that has a position: no serializer begins with it. What follows is
`offset:epoch:` and the message."""

MANY_BYTES = 1024 * 1024
"""Bytes of messages that are sent side by side; far less than what may wait for answers."""

Message = dict[str, Any]
Handler = Callable[[Message], None]
OnShard = Callable[[int], None]


class Stream(NamedTuple):
    """A stream in which a group's messages are numbered and kept."""

    keys: tuple[str, str, str]
    """Stream, meta, epoch of new streams: see `lua/append.lua`."""
    size: int
    """Messages to keep."""
    lifetime: int
    """Seconds to keep them after the last one."""
    meta_lifetime: int = 0
    """Seconds to remember the position of an unused stream; 0: for ever."""
    epoch_per_run: bool = False
    """Begin new epochs when Redis was restarted."""


class Position(NamedTuple):
    """The place of a message in its stream."""

    offset: int
    epoch: str


class Sending(NamedTuple):
    """A message on its way to a group; with `stream`, it is numbered and kept there."""

    group: str
    message: Message
    stream: Stream | None = None
    send: bool = True
    """False: only number and keep it."""


class Step(NamedTuple):
    """One round trip to the Redis that is responsible for a group."""

    shard: int
    script: Script | None
    keys: Sequence[str]
    arguments: Sequence[str | bytes | int]


class RedisChannelLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # it has no types
    """See the module. Belongs to no event loop: each loop gets its own connections."""

    def __init__(
        self,
        hosts: Iterable[Any] | None = None,
        prefix: str = "asgi",
        *,
        connect_timeout: float = 1.0,
        timeout: float = 5.0,
        **options: Any,
    ) -> None:
        """
        Args:
            hosts: the shards, as `channels_redis` takes them: URLs, (host, port) pairs or
                dicts of connection arguments, with `sentinels` and `master_name` too.
            prefix: begins the name of every Redis channel.
            connect_timeout: seconds to open a connection.
            timeout: seconds to wait for an answer.
            options: `symmetric_encryption_keys` and `serializer_format`.
        """
        super().__init__(hosts=hosts, prefix=prefix, **options)
        self.prefix = prefix
        self.timeouts = Timeouts(connect_timeout, timeout)
        self.hosts = [Host(entry) for entry in decode_hosts(hosts)]
        self._blocking: dict[int, BlockingRedis] = {}

    # what travels

    def deserialize(self, message: bytes) -> Message:
        """A message as consumers receive it; with its position where it has one."""
        if message[:1] != NUMBERED:
            content: Message = super().deserialize(message)
            return content
        offset, epoch, rest = message[1:].split(b":", 2)
        content = super().deserialize(rest)
        content["offset"] = int(offset)
        content["epoch"] = epoch.decode()
        return content

    def group_channel(self, group: str) -> str:
        """The Redis channel of a group."""
        return f"{self.prefix}__group__{group}"

    def shard(self, group: str) -> int:
        """The index of the host that is responsible for a group, and for what belongs to it."""
        index: int = _consistent_hash(self.group_channel(group), len(self.hosts))
        return index

    def _step(self, sending: Sending) -> Step:
        group, message, stream, send = sending
        channel = self.group_channel(group)
        data = self.serialize(message)
        if stream is None:
            return Step(self.shard(group), None, (), (b"PUBLISH", channel, data))
        arguments = (
            data,
            stream.size,
            stream.lifetime,
            stream.meta_lifetime,
            new_epoch(),
            int(stream.epoch_per_run),
            channel if send else "",
        )
        return Step(self.shard(group), APPEND, stream.keys, arguments)

    # on an event loop

    async def publish(self, sending: Sending) -> Position | None:
        """Send to a group in one round trip; the position when there is a stream.

        Raises:
            EngineUnavailable: it may have been sent all the same, if the answer was late.
        """
        return await self._publish(sending, self._step(sending))

    async def _publish(self, sending: Sending, step: Step) -> Position | None:
        return _position(sending, await self.take(step))

    async def publish_many(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        """As `publish` for each, in as few round trips as possible."""
        results: list[Position | BaseException | None] = []
        part: list[Awaitable[Position | None]] = []
        size = 0
        for sending in sendings:
            step = self._step(sending)
            part.append(self._publish(sending, step))
            size += sum(len(argument) for argument in step.arguments if type(argument) is bytes)
            if size >= MANY_BYTES:  # a connection takes only so much at once
                results += await asyncio.gather(*part, return_exceptions=True)
                part, size = [], 0
        results += await asyncio.gather(*part, return_exceptions=True)
        return results

    async def take(self, step: Step) -> Any:
        """Make one round trip.

        Raises:
            EngineUnavailable
        """
        commands = self._get_layer().commands(step.shard)
        if step.script is None:
            return await commands.execute(*step.arguments)
        return await commands.run(step.script, step.keys, step.arguments)

    async def open_mailbox(self, handler: Handler, on_lost: OnShard, on_restored: OnShard) -> str:
        """A channel for `group_add` whose messages are handed to `handler` as they arrive.

        All that has arrived is handed over in one turn of the loop. `on_lost` and
        `on_restored`: messages of this shard's groups may be missed from now on, and are not
        from now on.
        """
        layer = self._get_layer()
        name: str = await layer.open_mailbox(handler)
        layer.watchers[name] = (on_lost, on_restored)
        return name

    async def close_mailbox(self, name: str) -> None:
        """Receive nothing more in a mailbox, and leave its groups."""
        await self._get_layer().close_mailbox(name)

    async def close(self) -> None:
        """Close the connections of this loop; they are opened again when needed."""
        layer = self._layers.get(asyncio.get_running_loop())
        if layer is not None:
            await layer.flush()

    def _get_layer(self) -> Any:
        loop = asyncio.get_running_loop()
        layer = self._layers.get(loop)
        if layer is None:
            layer = self._layers[loop] = _LoopLayer(self, **self._kwargs)
            _wrap_close(self, loop)
        return layer

    # without an event loop

    def publish_blocking(self, sending: Sending) -> Position | None:
        """Twin of `publish` for threads without an event loop; makes none."""
        return _position(sending, self.take_blocking(self._step(sending)))

    def publish_many_blocking(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        """Twin of `publish_many`."""
        steps = [self._step(sending) for sending in sendings]
        results: list[Position | BaseException | None] = [None] * len(steps)
        for shard in sorted({step.shard for step in steps}):
            indexes = [index for index, step in enumerate(steps) if step.shard == shard]
            try:
                replies = self._pool(shard).run_many([steps[index][1:] for index in indexes])
            except Exception as error:
                replies = [error] * len(indexes)
            for index, reply in zip(indexes, replies, strict=True):
                failed = isinstance(reply, BaseException)
                results[index] = reply if failed else _position(sendings[index], reply)
        return results

    def take_blocking(self, step: Step) -> Any:
        """Twin of `take`."""
        pool = self._pool(step.shard)
        if step.script is None:
            return pool.execute(*step.arguments)
        return pool.run(step.script, step.keys, step.arguments)

    def _pool(self, shard: int) -> BlockingRedis:
        pool = self._blocking.get(shard)
        if pool is None:
            pool = self._blocking.setdefault(shard, BlockingRedis(self.hosts[shard], self.timeouts))
        return pool

    def close_blocking(self) -> None:
        """Close the connections of the blocking twins; they are opened again when needed."""
        while self._blocking:
            self._blocking.popitem()[1].close()


def configured(alias: str) -> Any:
    """The channel layer of this name in CHANNEL_LAYERS.

    Raises:
        KeyError: there is none.
    """
    return channel_layers[alias]


def _position(sending: Sending, reply: Any) -> Position | None:
    return None if sending.stream is None else Position(int(reply[0]), reply[1].decode())


class _LoopLayer(RedisPubSubLoopLayer):  # type: ignore[misc]  # it has no types
    """The layer on one event loop."""

    def __init__(self, layer: RedisChannelLayer, **options: Any) -> None:
        super().__init__(**options, channel_layer=layer)
        self._shards = [_Shard(self, index, host) for index, host in enumerate(layer.hosts)]
        self.watchers: dict[str, tuple[OnShard, OnShard]] = {}
        """Mailbox → who wants to know that messages may be missed, and are not any more."""

    def commands(self, shard: int) -> Connection:
        commands: Connection = self._shards[shard].commands
        return commands

    async def open_mailbox(self, handler: Handler) -> str:
        name = f"{self.prefix}specific.{uuid.uuid4().hex}"
        self.channels[name] = _Mailbox(self.channel_layer, handler)
        try:
            await self._get_shard(name).subscribe(name)
        except BaseException:
            del self.channels[name]
            await self._get_shard(name).unsubscribe(name)
            raise
        return name

    async def close_mailbox(self, name: str) -> None:
        self.watchers.pop(name, None)
        if self.channels.pop(name, None) is None:
            return
        await self._get_shard(name).unsubscribe(name)
        for group_channel, members in list(self.groups.items()):
            members.discard(name)
            if not members:
                del self.groups[group_channel]
                await self._get_shard(group_channel).unsubscribe(group_channel)

    def deliver(self, name: str, data: bytes) -> None:
        """Put what arrived on a Redis channel where it belongs."""
        mailbox = self.channels.get(name)
        if mailbox is not None:
            mailbox.put_nowait(data)
            return
        for channel in self.groups.get(name, ()):
            mailbox = self.channels.get(channel)
            if mailbox is not None:
                mailbox.put_nowait(data)

    def lost(self, shard: int) -> None:
        for on_lost, _ in self.watchers.values():
            on_lost(shard)

    def restored(self, shard: int) -> None:
        for _, on_restored in self.watchers.values():
            on_restored(shard)

    async def group_add(self, group: str, channel: str) -> None:
        """As the base; a group that could not be joined is not kept."""
        try:
            await super().group_add(group, channel)
        except BaseException:
            await self.group_discard(group, channel)
            raise

    async def flush(self) -> None:
        self.watchers.clear()
        await super().flush()


class _Mailbox:
    """Stands where the base has a queue: what is put into it is handled at once."""

    __slots__ = ("put_nowait",)

    def __init__(self, layer: RedisChannelLayer, handler: Handler) -> None:
        deserialize = layer.deserialize

        def put_nowait(data: bytes) -> None:
            handler(deserialize(data))

        self.put_nowait = put_nowait


class _Shard:
    """One Redis, for one event loop: what the base calls a single shard connection."""

    def __init__(self, layer: _LoopLayer, index: int, host: Host) -> None:
        timeouts = layer.channel_layer.timeouts
        self._connection = functools.partial(Connection, host, timeouts)
        self.commands = self._connection()
        self._subscriptions = functools.partial(
            Subscriptions,
            host,
            timeouts,
            on_message=layer.deliver,
            on_lost=functools.partial(layer.lost, index),
            on_restored=functools.partial(layer.restored, index),
        )
        self._pubsub = self._subscriptions()

    async def publish(self, channel: str, message: bytes) -> None:
        await self.commands.execute(b"PUBLISH", channel, message)

    async def subscribe(self, channel: str) -> None:
        await self._pubsub.subscribe(channel)

    async def unsubscribe(self, channel: str) -> None:
        await self._pubsub.unsubscribe(channel)

    async def flush(self) -> None:
        pubsub, self._pubsub = self._pubsub, self._subscriptions()
        commands, self.commands = self.commands, self._connection()
        await pubsub.close()
        await commands.close()
