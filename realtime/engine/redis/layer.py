"""The channel layer of the service: Redis pub/sub, for the engine and for consumers of the site.

    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "realtime.layer.RedisChannelLayer",
            "CONFIG": {"hosts": ["redis://localhost:6379"], "prefix": "mysite"},
        }
    }

It keeps to the contract of Channels ("Channel Layer Specification") with the extensions `groups`
and `flush`, and understands the pub/sub layer of `channels_redis`: both can send to each other,
with the same names, serializers and shards. The engine uses its `bus`.

What pub/sub means for the contract:

- A channel exists while a process reads it, or made it. What is sent to others is lost.
- The receiving process enforces capacity: it drops messages, and logs that. `send` raises
  ChannelFull only when the channel is of the same process.
- A process that dies leaves no channel and no group, so nothing has to expire. By default there is
  no limit; `capacity`, `expiry` and `group_expiry` set one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer
from channels_redis.serializers import registry
from channels_redis.utils import decode_hosts

from realtime.engine.records import Message
from realtime.engine.redis.loop_bus import LoopBus
from realtime.engine.redis.messages import MessageSerializer
from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import ShardServers
from realtime.redis.hosts import Host, Timeouts

logger = logging.getLogger("realtime.engine")

MAX_NAME_LENGTH = 100
"""Characters; names are shorter."""

_GROUP_NAME = re.compile(r"[a-zA-Z\d\-_.]+", re.ASCII)
_CHANNEL_NAME = re.compile(r"[a-zA-Z\d\-_.]+(![a-zA-Z\d\-_.]*)?", re.ASCII)


class RedisChannelLayer(BaseChannelLayer):  # type: ignore[misc] # Channels has no types
    """See the module. Belongs to no event loop: each loop gets its own connections."""

    extensions: ClassVar = ["groups", "flush"]
    ChannelFull = ChannelFull
    MessageTooLarge = MessageTooLarge

    def __init__(
        self,
        hosts: Iterable[Any] | None = None,
        prefix: str = "asgi",
        *,
        connect_timeout: float = 1.0,
        timeout: float = 5.0,
        serializer_format: str = "msgpack",
        symmetric_encryption_keys: Iterable[str | bytes] | None = None,
        capacity: int | None = None,
        channel_capacity: Mapping[str | re.Pattern[str], int] | None = None,
        expiry: float | None = None,
        group_expiry: float | None = None,
        partitions: int = 0,
        **ignored: Any,
    ) -> None:
        """
        Args:
            hosts: the shards, as `channels_redis` takes them: URLs, (host, port) pairs or
                dicts of connection arguments, with `sentinels` and `master_name` too.
            prefix: begins the name of every Redis channel.
            connect_timeout: seconds to open a connection.
            timeout: seconds to wait for a reply.
            serializer_format: how messages are encoded: see `channels_redis.serializers`.
            symmetric_encryption_keys: the first one encrypts messages, all of them decrypt.
            capacity: messages that may wait in a channel; None: any number.
            channel_capacity: other capacities for channels whose names match a pattern, as in
                `fnmatch`, or a compiled regular expression; the first match counts.
            expiry: seconds a message may wait in a channel; None: any time.
            group_expiry: seconds a channel is in a group after it last joined; None: any time.
            partitions: divides groups by hash tags in their names, as `redis_partitions` does;
                0: not at all, as in `channels_redis`.
            ignored: options of the layers of `channels_redis` that have no meaning here.
        """
        super().__init__(expiry, capacity, self.compile_capacities(channel_capacity or {}))
        serializer = registry.get_serializer(
            serializer_format, symmetric_encryption_keys=symmetric_encryption_keys
        )
        self.bus = RedisBus(
            ShardServers(hosts_of(hosts)),
            prefix,
            serializer,
            Timeouts(connect_timeout, timeout),
            Partitions(partitions),
        )
        self.prefix = prefix
        self.serialize = self.bus.serialize
        self.deserialize = self.bus.deserialize
        self.group_expiry = group_expiry

    # channels

    async def send(self, channel: str, message: Message) -> None:
        """Send a message to a channel, in whatever process it is.

        Raises:
            ChannelFull: it is a channel of this process and at its capacity.
            TypeError: the name is not valid, or the message is not a dict.
            EngineUnavailable: Redis is away, too slow, or refused.
        """
        self.require_valid_channel_name(channel)
        _require_dict(message)
        queue = self._queue(channel)
        if queue is not None and queue.full:
            raise ChannelFull(channel)
        data = self.bus.serialize(message)
        await self.bus.call(self.bus.shard_of(channel), (b"PUBLISH", channel, data))

    async def new_channel(self, prefix: str = "specific.") -> str:
        """Return a new channel of this process, on which messages wait from now on.

        Raises:
            EngineUnavailable: Redis did not confirm it.
        """
        name = self.bus.new_mailbox_name(prefix)
        await self._open(name)
        return name

    async def receive(self, channel: str) -> Message:
        """Wait for the next message on a channel and return it.

        If several callers wait, each message goes to one of them. When the last of them is
        cancelled, the channel is given up: Channels has no other sign that a consumer ended. It
        leaves its groups a minute later, unless it is read again.

        Raises:
            TypeError: the name is not valid.
            EngineUnavailable: Redis did not confirm that this process reads the channel.
        """
        self.require_valid_channel_name(channel)
        queue = self._queue(channel) or await self._open(channel)
        try:
            data = await queue.get()
        except BaseException:
            if not queue.readers and self._queue(channel) is queue:
                self._loop_bus.close_mailbox(channel)
            raise
        return self.bus.deserialize(data)

    async def _open(self, channel: str) -> _Queue:
        queue = _Queue(channel, self.get_capacity(channel), self.expiry)
        await self._loop_bus.open_mailbox(channel, queue)
        return queue

    def _queue(self, channel: str) -> _Queue | None:
        queue = self._loop_bus.mailboxes.get(channel)
        return queue if isinstance(queue, _Queue) else None

    @property
    def _loop_bus(self) -> LoopBus:
        return self.bus.on_loop()

    # groups

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel of this process to a group.

        Raises:
            RuntimeError: the channel is not of this process.
            TypeError: a name is not valid.
            EngineUnavailable: Redis did not confirm it; the channel is not in the group.
        """
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        if self._queue(channel) is None:
            raise RuntimeError(
                "group_add() takes channels of this process only, such as a consumer's own:"
                f" channel_layer.group_add({group!r}, self.channel_name)"
            )
        await self._loop_bus.join(self.bus.group_channel(group), channel, self.group_expiry)

    async def group_discard(self, group: str, channel: str) -> None:
        """Remove a channel from a group. Nothing happens when it is not in it.

        Raises:
            TypeError: a name is not valid.
        """
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        self._loop_bus.leave(self.bus.group_channel(group), channel)

    async def group_send(self, group: str, message: Message) -> None:
        """Send a message to all channels of a group. Those at their capacity drop it.

        Raises:
            TypeError: the name is not valid, or the message is not a dict.
            EngineUnavailable: Redis is away, too slow, or refused.
        """
        self.require_valid_group_name(group)
        _require_dict(message)
        channel, data = self.bus.group_channel(group), self.bus.serialize(message)
        await self.bus.call(self.bus.shard_of(channel), (self.bus.servers.publish, channel, data))

    # the whole layer

    async def flush(self) -> None:
        """Forget the channels and groups of this event loop, and close its connections.

        The layer can be used afterwards as if it was new.
        """
        await self.bus.close()

    close = flush

    # names

    def require_valid_channel_name(self, name: object) -> bool:
        """Return True.

        Raises:
            TypeError: Channels does not allow the name.
        """
        return _require_name("channel", name, _CHANNEL_NAME, self.prefix)

    def require_valid_group_name(self, name: object) -> bool:
        """Return True.

        Raises:
            TypeError: Channels does not allow the name.
        """
        return _require_name("group", name, _GROUP_NAME)


class _Queue:
    """The messages that wait in a channel, still encoded."""

    def __init__(self, channel: str, capacity: int | None, expiry: float | None) -> None:
        self._channel = channel
        self._capacity = capacity
        self._expiry = expiry
        self._loop = asyncio.get_running_loop()
        self._messages: deque[tuple[float, bytes]] = deque()
        """When it arrived, by the clock of the loop; and the message."""
        self._arrived = asyncio.Event()
        self._dropping = False
        self.readers = 0
        """Callers that wait for a message."""

    @property
    def full(self) -> bool:
        if self._capacity is None:
            return False
        self._drop_expired()
        return len(self._messages) >= self._capacity

    def __call__(self, data: bytes) -> None:
        """Add a message, or drop it when the channel is full."""
        if not self.full:
            self._messages.append((self._loop.time(), data))
            self._arrived.set()
        elif not self._dropping:  # one line until it is read again
            self._dropping = True
            logger.warning("A channel of the layer is full, dropping messages: %s", self._channel)

    async def get(self) -> bytes:
        """Wait for the next message and remove it."""
        self.readers += 1
        try:
            while True:
                self._drop_expired()
                if self._messages:
                    self._dropping = False
                    return self._messages.popleft()[1]
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self.readers -= 1

    def _drop_expired(self) -> None:
        if self._expiry is None:
            return
        since = self._loop.time() - self._expiry
        while self._messages and self._messages[0][0] < since:
            self._messages.popleft()


def hosts_of(entries: Iterable[Any] | None) -> list[Host]:
    """Return the shards of a layer; the entries are those that `RedisChannelLayer` takes."""
    return [Host(entry) for entry in decode_hosts(entries)]


def new_serializer() -> MessageSerializer:
    """Return what encodes messages where no options of a layer say otherwise."""
    made: MessageSerializer = registry.get_serializer("msgpack", symmetric_encryption_keys=None)
    return made


def _require_dict(message: object) -> None:
    if not isinstance(message, dict):
        raise TypeError("a message of a channel layer is a dict")


def _require_name(kind: str, name: object, pattern: re.Pattern[str], prefix: str = "") -> bool:
    """Check a name. One that this layer made begins with its prefix, whatever that contains."""
    if isinstance(name, str):
        for text in (name, name.removeprefix(prefix)):
            if len(text) < MAX_NAME_LENGTH and pattern.fullmatch(text):
                return True
    raise TypeError(
        f"not a valid {kind} name: {name!r} (fewer than {MAX_NAME_LENGTH} ASCII letters, digits,"
        " hyphens, underscores and periods)"
    )
