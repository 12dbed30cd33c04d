"""The Redis broker: streams and publishing in Redis, delivery by the channel layer.

Each method is one round trip, from any process. A channel's group in the layer belongs to the
same shard as its stream, so that one script can number, keep, trim and send a publication.

Beyond the spec: the promises are those of Centrifugo 2.8, the keys are our own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple
from weakref import WeakValueDictionary

from realtime.engine import records
from realtime.engine.base import History, Joined, Left, Notice, Outgoing, Published, Receiver
from realtime.engine.channel_list import ChannelList
from realtime.engine.epochs import HELD_LIFETIME, OwnLifetime, bounded, new_epoch, no_lifetime
from realtime.engine.records import Message
from realtime.engine.redis.maps import to_entry, with_change
from realtime.engine.redis.redis_bus import RedisGroups, Send, ShardRequest
from realtime.engine.redis.scripts import READ, RENEW_EPOCH, Entry, ReadReply
from realtime.engine.redis.shards import MAX_COUNT, Shards, decoding
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import (
    UINT64_MAX,
    ChannelName,
    Publication,
    StreamPosition,
)
from realtime.redis.commands import Argument, Reply, ScriptCall, Wait

logger = logging.getLogger("realtime.engine")

PUBLICATION = "realtime.publication"
JOIN = "realtime.join"
LEAVE = "realtime.leave"
"""Types of messages. Nodes of other versions read them."""


LOG_INTERVAL = 60.0
"""Seconds between log lines about publications that cannot be decoded: clients cause the reads."""


class MetaSettings(NamedTuple):
    """What applies to all streams."""

    lifetime: int = 0
    """Seconds for which the position of an unused channel is kept, if not its publications are kept
    longer; 0: forever."""
    epoch_per_run: bool = False
    """Begin new epochs when Redis was restarted."""
    wait: Wait | None = None
    """For replicas, before a publication counts as made."""
    glanced_lifetime: int = HELD_LIFETIME
    """Seconds that Redis keeps the epoch of a channel without publications after any other read:
    clients cause those, of any name. Longer than nodes take from a position check to the next."""
    own_lifetime: OwnLifetime = no_lifetime
    least_lifetime: int = 0
    """Seconds for which any position is kept at least. A node checks the position of a channel with
    subscribers no more often."""

    def kept(self, own: int) -> int:
        """Return the seconds for which a position is kept; 0: forever. `own`: as `own_lifetime`."""
        return bounded(own or self.lifetime, self.least_lifetime)


DEFAULT_META = MetaSettings()


class RedisStreams:
    """See `engine.base.Streams` for the contract."""

    def __init__(self, shards: Shards, meta: MetaSettings, send: Send | None = None) -> None:
        """`send`: sends in a second step, where not Redis does it."""
        self._shards = shards
        self._keys = shards.keys
        self._redis = shards.redis
        self._meta = meta
        self._send = send
        self._silent_until = 0.0
        """Monotonic seconds until which no undecodable publication is logged."""

    # publishing

    async def publish(self, outgoing: Outgoing) -> Published:
        content = _content(outgoing)
        if self._send is None:
            reply = await self._shards.call(*self._request(outgoing, content))
            return self._published(outgoing, reply)
        async with self._turn(outgoing.channel):
            published = Published()
            if outgoing.is_asked:
                reply = await self._shards.call(*self._request(outgoing, content, sends=False))
                published = self._published(outgoing, reply)
            if published.kept:
                await self._send(self._keys.group(outgoing.channel), content, published.position)
            return published

    def _turn(self, channel: ChannelName) -> AbstractAsyncContextManager[object]:
        """Return what keeps the order of publications that are sent in a second step."""
        return nullcontext()

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        if self._send is not None:  # publications of one channel keep their order
            return [await self._attempt(outgoing) for outgoing in publications]
        requests = [self._request(each, _content(each)) for each in publications]
        return [
            reply if isinstance(reply, EngineUnavailable) else self._published(outgoing, reply)
            for outgoing, reply in zip(
                publications, await self._shards.call_many(requests), strict=True
            )
        ]

    async def _attempt(self, outgoing: Outgoing) -> Published | EngineUnavailable:
        try:
            return await self.publish(outgoing)
        except EngineUnavailable as error:
            return error

    async def notify(self, channel: ChannelName, notice: Notice) -> None:
        content = {
            "type": JOIN if isinstance(notice, Joined) else LEAVE,
            "channel": channel,
            **records.of_client(notice.info),
        }
        group = self._keys.group(channel)
        if self._send is not None:
            await self._send(group, content, None)
        else:
            to = self._redis.group_channel(group)
            request = (self._redis.servers.publish, to, self._shards.pack(content))
            beside = self._meta.wait is not None
            await self._shards.call(self._redis.shard_of(to), request, beside=beside)

    def _request(self, outgoing: Outgoing, content: Message, *, sends: bool = True) -> ShardRequest:
        """Return the round trip that keeps a publication and sends it."""
        channel, once, servers = outgoing.channel, outgoing.once, self._redis.servers
        to = self._redis.group_channel(self._keys.group(channel))
        shard = self._redis.shard_of(to)
        data = self._shards.pack(content)
        if not sends:
            to = ""
        once_keys = () if once is None else (self._keys.once(channel, once.digest(channel)),)
        after = outgoing.after
        after_keys = () if after is None else (self._keys.once(channel, after.digest(channel)),)
        wait, beside = self._meta.wait, False
        if not outgoing.options.keeps_history:
            wait, beside = None, wait is not None
            if not outgoing.is_asked:
                return ShardRequest(shard, (servers.publish, to, data), None, beside)
            if once is not None and not outgoing.publication.key:
                call = ScriptCall(
                    servers.send_once, (*once_keys, *after_keys), (data, to, once.lifetime)
                )
                return ShardRequest(shard, call, None, beside)
        seals = (self._redis.seal,) if servers.asks_sentinels(shard) else ()
        keys = (*self._keys.stream(channel), *once_keys, *seals, *after_keys)
        arguments = self._arguments(outgoing, data, to)
        if not outgoing.publication.key:
            return ShardRequest(shard, ScriptCall(servers.append, keys, arguments), wait)
        keys = (*keys, *self._keys.map(channel))
        call = ScriptCall(servers.put, keys, with_change(outgoing, arguments))
        return ShardRequest(shard, call, wait, beside)

    def _arguments(self, outgoing: Outgoing, data: bytes, to: str) -> tuple[Argument, ...]:
        """Return what `lua/append.lua` names ARGV."""
        options, once, expect = outgoing.options, outgoing.once, outgoing.expect
        arguments: tuple[Argument, ...] = (
            data,
            options.history_size if options.keeps_history else 0,
            options.history_lifetime,
            self._meta_lifetime(outgoing),
            new_epoch(),
            int(self._meta.epoch_per_run),
            to,
            outgoing.publication.uid,
        )
        is_plain = once is None and outgoing.version is None and expect is None
        if is_plain and not outgoing.publication.key:
            return arguments
        top: tuple[Argument, Argument] = ("", "")
        if isinstance(expect, StreamPosition):
            top = (expect.offset, expect.epoch)
        elif expect is not None:
            top = (expect, "")
        lifetime, version = 0 if once is None else once.lifetime, outgoing.version or ("", "")
        return (*arguments, lifetime, *version, *top, "" if outgoing.after is None else 1)

    def _meta_lifetime(self, outgoing: Outgoing) -> int:
        """Return the seconds for which the meta is kept; 0: forever.

        One that expired before publications or entries would end their epoch.
        """
        options = outgoing.options
        lifetime = self._meta.kept(options.meta_ttl)
        return lifetime and max(lifetime, 2 * options.history_lifetime)

    def _published(self, outgoing: Outgoing, reply: Reply) -> Published:
        """Return what became of a publication, by the reply to its request."""
        if not outgoing.is_asked:
            return Published()
        offset, epoch, dropped, *refusal = reply
        position = StreamPosition(int(offset), epoch.decode()) if epoch else None
        if not refusal:
            return Published(position, dropped != 1)
        reason, entry = refusal
        with decoding("an entry of a map"):
            current = to_entry(self._shards, entry) if entry else None
        return Published(position, False, reason.decode(), current)

    # streams

    async def history(
        self,
        channel: ChannelName,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        first = "" if limit == 0 else _first_entry(start, reverse)
        call = self.read_call(channel, first, limit, reverse)
        reply = await self._shards.call(self._shards.shard(channel), call)
        position, entries, top_uid = _read_reply(reply)
        publications: list[Publication] = []
        previous_uid = ""
        for entry in entries:
            try:
                if not publications and not reverse:
                    previous_uid = _previous_uid(entry)
                publications.append(self._publication(entry))
            except Exception as error:  # serializers and decoders raise all kinds of them
                self._log_undecodable(channel, error)
                # it is lost, as if it was trimmed, and those before it with it
                if reverse:
                    break
                publications.clear()
        return History(tuple(publications), position, top_uid, previous_uid)

    def _publication(self, entry: Entry) -> Publication:
        """Return the publication in an entry.

        Raises:
            Exception: no node wrote this entry, or with another encryption key.
        """
        entry_id, fields = entry
        offset, _, time_ms = entry_id.partition(b"-")
        return records.to_publication(self._shards.unpack(fields[1]), int(offset), int(time_ms))

    def _log_undecodable(self, channel: ChannelName, error: Exception) -> None:
        now = time.monotonic()
        if now < self._silent_until:
            return
        self._silent_until = now + LOG_INTERVAL
        logger.error(
            "A publication in the history of %r cannot be decoded (%s), so it and those before it"
            " are lost. Do all processes have the same encryption keys?",
            channel,
            type(error).__name__,
            extra={"channel": channel},
        )

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        calls = [
            ShardRequest(self._shards.shard(name), self.read_call(name, at=at, glances=False))
            for name in channels
        ]
        replies = await self._shards.call_many(calls, reads=True)
        return [_read_reply(reply)[0] for reply in replies]

    async def remove_history(self, channel: ChannelName) -> None:
        await self._shards.command(channel, b"DEL", self._keys.stream(channel)[0])

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        _, meta, new = self._keys.stream(channel)
        # what follows a hyphen is the run of the server, which the script does not keep
        arguments = (epoch.partition("-")[0], new_epoch())
        await self._shards.run(channel, RENEW_EPOCH, (meta, new), arguments)

    def read_call(
        self,
        channel: ChannelName,
        first: str | int = "",
        limit: int | None = None,
        reverse: bool = False,
        at: int | None = None,
        *,
        glances: bool = True,
    ) -> ScriptCall[ReadReply]:
        """Return the call that reads a stream; by default its position alone."""
        arguments = (
            first,
            self._meta.kept(self._meta.own_lifetime(channel)),
            new_epoch(),
            int(self._meta.epoch_per_run),
            "" if limit is None else min(limit, MAX_COUNT),
            int(reverse),
            "" if at is None else at,
            self._meta.glanced_lifetime if glances else HELD_LIFETIME,
        )
        return ScriptCall(READ, self._keys.stream(channel), arguments)


def _content(outgoing: Outgoing) -> Message:
    content = records.of_publication(outgoing.publication)
    content["type"] = PUBLICATION
    content["channel"] = outgoing.channel
    return content


def _first_entry(start: int | None, reverse: bool) -> str | int:
    """Return where a read begins, as `read.lua` takes it."""
    if start is None:
        return "+" if reverse else "-"
    return min(max(start, 0), UINT64_MAX)  # clients choose it, and the IDs of entries end there


def _read_reply(reply: ReadReply | EngineUnavailable) -> tuple[StreamPosition, list[Entry], str]:
    """Return the top position, entries, and the UID at the top; see `lua/read.lua`."""
    if isinstance(reply, EngineUnavailable):
        raise reply
    with decoding("a position"):
        offset, epoch, entries, top_uid = reply
        return StreamPosition(int(offset), epoch.decode()), entries, top_uid.decode()


def _previous_uid(entry: Entry) -> str:
    """Return the UID of the publication before an entry, as `append.lua` wrote it there."""
    fields = entry[1]
    return fields[3].decode() if len(fields) > 2 and fields[2] == b"p" else ""


class RedisBroker(RedisStreams):
    """See `engine.base.Broker` for the contract."""

    def __init__(
        self,
        shards: Shards,
        groups: RedisGroups,
        meta: MetaSettings,
        channel_list: ChannelList,
    ) -> None:
        """
        Args:
            groups: those that the node joins.
            channel_list: is kept equal to the subscribed channels.
        """
        super().__init__(shards, meta, groups.send)
        self._turns: WeakValueDictionary[ChannelName, asyncio.Lock] = WeakValueDictionary()
        self._groups = groups
        self._channel_list = channel_list
        self.receiver: Receiver | None = None
        """Gets what comes; None before the start of the engine, and after its stop."""

    def _turn(self, channel: ChannelName) -> AbstractAsyncContextManager[object]:
        return self._turns.setdefault(channel, asyncio.Lock())

    def shard(self, channel: ChannelName) -> int:
        return self._shards.shard(channel)

    async def subscribe(self, channel: ChannelName) -> None:
        await self._channel_list.add_with(channel, self._groups.join(self._keys.group(channel)))

    async def unsubscribe(self, channel: ChannelName) -> None:
        self._channel_list.discard(channel)
        await self._groups.leave(self._keys.group(channel))

    def on_message(self, message: Message) -> None:
        """Hand a message of another node, or of this one, to the receiver.

        Raises:
            Exception: no node sends such a message.
        """
        receiver = self.receiver
        if receiver is None:
            return
        kind, channel = message["type"], message["channel"]
        if kind == PUBLICATION:
            offset = message.get("offset", 0)
            position = StreamPosition(offset, message["epoch"]) if offset else None
            publication = records.to_publication(message, offset)
            receiver.on_publication(channel, publication, position)
        elif kind == JOIN:
            receiver.on_notice(channel, Joined(records.to_client(message)))
        elif kind == LEAVE:
            receiver.on_notice(channel, Left(records.to_client(message)))
