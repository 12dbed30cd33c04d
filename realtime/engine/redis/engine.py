"""The Redis engine: any number of processes on any number of hosts.

It is the store of `redis_store` with delivery to a node besides.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any

from realtime.channel_rules import CONTROL, INTERNAL
from realtime.engine.base import NODES_REMEMBERED, Concerns, NodeInfo, Receiver, SurveyID
from realtime.engine.redis import records
from realtime.engine.redis.carriers import Receiving
from realtime.engine.redis.channel_list import Listing
from realtime.engine.redis.layer import Message
from realtime.engine.redis.scripts import CLAIM, LIST_CHANNELS, REMOVE_PRESENCE
from realtime.engine.redis.store import JOIN, LEAVE, PUBLICATION, RedisStore
from realtime.protocol.messages import ChannelName, StreamPosition

LISTING_PATIENCE = 0.5
"""Seconds a subscribe waits until its channel is listed. The list is on one shard; when that is
away, channels of the others must not suffer."""


class RedisEngine(RedisStore):
    """See `engine.base.Engine` for what the methods promise."""

    shared = True

    def __init__(self, carrier: Receiving, prefix: str, **options: Any) -> None:
        """`options`: as `RedisStore` takes them."""
        super().__init__(carrier, prefix, **options)
        self._receiving = carrier
        self._receiver: Receiver | None = None
        self._listing: Listing | None = None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        try:
            await self._receiving.open(
                self._on_message,
                lambda shard: receiver.on_interrupted(self._concerns(shard)),
                lambda shard: receiver.on_resumed(self._concerns(shard)),
            )
        except BaseException:
            await self._receiving.close()
            raise

    async def stop(self) -> None:
        self._receiver = None
        if self._listing is not None:
            await self._listing.close()
        await self._receiving.close()

    async def subscribe(self, channel: ChannelName) -> None:
        listed = None
        if self._listing is not None and not channel.startswith(INTERNAL):
            listed = self._listing.add(channel)
        try:
            await self._receiving.join(self.keys.group(channel))
            if listed is not None:
                await asyncio.wait([listed], timeout=LISTING_PATIENCE)
        except BaseException:
            if self._listing is not None:
                self._listing.discard(channel)
            raise

    async def unsubscribe(self, channel: ChannelName) -> None:
        if self._listing is not None:
            self._listing.discard(channel)
        await self._receiving.leave(self.keys.group(channel))

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        arguments = (owner, int(lifetime * 1000))
        reply: bytes = await self._run(name, CLAIM, (self.keys.owner(name),), arguments)
        return reply.decode()

    async def owner(self, name: str) -> str | None:
        reply: bytes | None = await self._command(name, b"GET", self.keys.owner(name))
        return None if reply is None else reply.decode()

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        entry = (node.uid, records.of_node(node))
        await self._add_entries(CONTROL, self.keys.nodes, [entry], lifetime)
        await self._add_entries(CONTROL, self.keys.seen, [entry], NODES_REMEMBERED)
        if self._listing is None:
            key = self.keys.channels(node.uid)
            self._listing = Listing(
                key,
                lambda *command: self._command(CONTROL, *command),
                functools.partial(self._list_channels, node.uid),
            )
        await self._listing.renew(lifetime)

    async def _list_channels(
        self,
        uid: str,
        added: Sequence[ChannelName],
        removed: Sequence[ChannelName],
        told: bool,
    ) -> None:
        """Change which channels this node lists; say which are occupied now, and vacated."""
        key = self.keys.channels(uid)
        if not told:
            for command, names in ((b"SADD", added), (b"SREM", removed)):
                if names:
                    await self._command(CONTROL, command, key, *names)
            return
        occupied, vacated = await self._run(
            CONTROL,
            LIST_CHANNELS,
            (key, self.keys.nodes[1]),
            (uid, self.keys.channels(), len(added), *added, *removed),
        )
        receiver = self._receiver
        if receiver is None:
            return
        for name in occupied:
            receiver.on_occupied(name.decode())
        for name in vacated:
            receiver.on_vacated(name.decode())

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        entry = self._pack([answer.decode()])
        await self._command(CONTROL, b"RPUSHX", self.keys.answers(survey), entry)

    async def withdraw(self, node: NodeInfo) -> None:
        if self._listing is not None:
            await self._listing.finish()
        for keys in (self.keys.nodes, self.keys.seen):
            await self._run(CONTROL, REMOVE_PRESENCE, keys, (node.uid,))
        await self._command(CONTROL, b"DEL", self.keys.channels(node.uid))

    def _concerns(self, shard: int) -> Concerns:
        if not self._receiving.sharded or len(self._layer.hosts) == 1:
            return lambda channel: True
        return lambda channel: self._layer.shard(self.keys.group(channel)) == shard

    def _on_message(self, message: Message) -> None:
        receiver = self._receiver
        if receiver is None:
            return
        kind, channel, record = message["type"], message["channel"], message["record"]
        if kind == PUBLICATION:
            offset = message.get("offset", 0)
            position = StreamPosition(offset, message["epoch"]) if offset else None
            publication = records.to_publication(record, offset)
            receiver.on_publication(channel, publication, position)
        elif kind == JOIN:
            receiver.on_join(channel, records.to_client(record))
        elif kind == LEAVE:
            receiver.on_leave(channel, records.to_client(record))
