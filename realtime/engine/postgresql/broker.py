"""The broker of a node: groups of publications, and delivery to its receiver."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from realtime.engine.base import Outgoing, Published
from realtime.engine.channel_list import ChannelList
from realtime.engine.postgresql.batches import Batches
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.delivery import StreamDelivery
from realtime.engine.postgresql.rings import LoopRinger, Message
from realtime.engine.postgresql.streams import (
    Keeping,
    PostgreSQLStreams,
    content_of,
    is_sent_within,
)
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName

MAX_GROUP = 500
"""Publications in one statement."""

_Sending = tuple[Published, asyncio.Future[None] | None]
"""What became of a publication, and what waits until it is sent, if it is not kept."""


class PostgreSQLBroker(PostgreSQLStreams):
    """See `engine.base.Broker` for the contract.

    While one statement is under way, the publications that come meanwhile wait for the next one: so
    they share a commit, and keep their order.
    """

    _ringer: LoopRinger

    def __init__(
        self,
        database: Database,
        ringer: LoopRinger,
        keeping: Keeping,
        channel_list: ChannelList,
    ) -> None:
        """`channel_list`: is kept equal to the subscribed channels."""
        super().__init__(database, ringer, keeping)
        self.delivery = StreamDelivery(database)
        self._channel_list = channel_list
        self._groups: Batches[Outgoing, _Sending] = Batches(self._publish_group, MAX_GROUP)
        self._under_way: Counter[ChannelName] = Counter()
        """Channels of the publications that wait, or are in the statement under way."""

    # publishing

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        waits = any(map(is_sent_within, publications))  # they are sent at the commit of a group
        begun = [self._begin(outgoing, waits) for outgoing in publications]
        return [await _outcome(each) for each in begun]

    def _begin(self, outgoing: Outgoing, waits: bool) -> asyncio.Future[_Sending] | _Sending:
        if not (waits or outgoing.is_asked or self._under_way[outgoing.channel]):
            return self._send(Published(), Message(outgoing.channel, content_of(outgoing)))
        self._under_way[outgoing.channel] += 1
        return self._groups.add(outgoing)

    async def _publish_group(self, group: Sequence[Outgoing]) -> list[_Sending]:
        try:
            return [self._send(*each) for each in await self._keep(group)]
        finally:
            for outgoing in group:
                self._under_way[outgoing.channel] -= 1
                if not self._under_way[outgoing.channel]:
                    del self._under_way[outgoing.channel]

    def _send(self, published: Published, message: Message | None) -> _Sending:
        sent = None if message is None else self._ringer.soon(message)
        # where it is kept, a ring that is lost only delays it
        return published, None if message is None or message.offset else sent

    async def close(self) -> None:
        """Deliver and publish nothing more."""
        await self._groups.close()
        await self.delivery.close()

    # delivery

    def shard(self, channel: ChannelName) -> int:
        return 0

    async def subscribe(self, channel: ChannelName) -> None:
        await self._channel_list.add_with(channel, self.delivery.follow(channel))

    async def unsubscribe(self, channel: ChannelName) -> None:
        self._channel_list.discard(channel)
        self.delivery.unfollow(channel)


async def _outcome(
    begun: asyncio.Future[_Sending] | _Sending,
) -> Published | EngineUnavailable:
    try:
        published, sent = begun if isinstance(begun, tuple) else await begun
        if sent is not None:
            await sent
    except EngineUnavailable as error:
        return error
    return published
