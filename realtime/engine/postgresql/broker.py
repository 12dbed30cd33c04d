"""The broker of a node: groups of publications, and delivery to its receiver."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from realtime.engine.base import Outgoing, Published
from realtime.engine.channel_list import ChannelList
from realtime.engine.postgresql.batches import Batches, settle
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.delivery import StreamDelivery
from realtime.engine.postgresql.rings import LoopRinger, Message
from realtime.engine.postgresql.streams import (
    Keeping,
    PostgreSQLStreams,
    content_of,
    is_sent_within,
)
from realtime.errors import EngineUnavailable, NoReply
from realtime.protocol.messages import ChannelName

MAX_GROUP = 500
"""Publications in one statement."""

Settled = asyncio.Future[Published | EngineUnavailable]


class PostgreSQLBroker(PostgreSQLStreams):
    """See `engine.base.Broker` for the contract.

    While one statement is under way, the publications that come meanwhile wait for the next one: so
    they share a commit, and keep their order.
    """

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
        self._loop_ringer = ringer
        self._groups: Batches[tuple[Outgoing, Settled]] = Batches(self._publish_group, MAX_GROUP)
        self._under_way: Counter[ChannelName] = Counter()
        """Channels of the publications that wait, or are in the statement under way."""

    # publishing

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        loop = asyncio.get_running_loop()
        results: list[Settled] = [loop.create_future() for _ in publications]
        waits = any(map(is_sent_within, publications))  # they are sent at the commit of a group
        for outgoing, result in zip(publications, results, strict=True):
            if waits or outgoing.is_asked or self._under_way[outgoing.channel]:
                self._under_way[outgoing.channel] += 1
                self._groups.add((outgoing, result))
            else:
                self._send(Published(), Message(outgoing.channel, content_of(outgoing)), result)
        return [await result for result in results]

    async def _publish_group(self, group: Sequence[tuple[Outgoing, Settled]]) -> None:
        try:
            kept = await self._keep([outgoing for outgoing, _ in group])
        except EngineUnavailable as error:
            for _, result in group:
                settle(result, error)
        except asyncio.CancelledError:
            for _, result in group:
                settle(result, NoReply("the engine has stopped"))
            raise
        except Exception as error:  # of what a caller gave
            for _, result in group:
                if not result.done():
                    result.set_exception(error)
        else:
            for (published, message), (_, result) in zip(kept, group, strict=True):
                if message is None:
                    settle(result, published)
                else:
                    self._send(published, message, result)
        finally:
            for outgoing, _ in group:
                self._under_way[outgoing.channel] -= 1
                if not self._under_way[outgoing.channel]:
                    del self._under_way[outgoing.channel]

    def _send(self, published: Published, message: Message, result: Settled) -> None:
        if message.offset:  # it is kept: a ring that is lost only delays it
            settle(result, published)
            self._loop_ringer.soon(message)
        else:
            self._loop_ringer.soon(message, lambda error: settle(result, error or published))

    async def close(self) -> None:
        """Deliver and publish nothing more."""
        for _, result in await self._groups.close():
            settle(result, EngineUnavailable("the engine has stopped"))
        await self.delivery.close()

    # delivery

    def shard(self, channel: ChannelName) -> int:
        return 0

    async def subscribe(self, channel: ChannelName) -> None:
        await self._channel_list.add_with(channel, self.delivery.follow(channel))

    async def unsubscribe(self, channel: ChannelName) -> None:
        self._channel_list.discard(channel)
        self.delivery.unfollow(channel)
