"""Subscriptions: how clients of this process come into channels, and how they leave them.

    add ──► held, present ── reach ──► as far as history ── release ──► live
     └───────────────────────────────── remove ───────────────────────────┘

The first subscriber of a channel has the engine hand over what is published there, the last
one ends that. In a recoverable channel publications reach the feed in the order of their offsets
(see `following`), and its position is that of all live subscribers. Gaps are filled from history;
only when history cannot answer are the subscribers disconnected as "insufficient state", and
recover what they can when they come back.
"""

from __future__ import annotations

import asyncio
import logging

from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Engine
from realtime.errors import DisconnectInsufficientState, EngineUnavailable
from realtime.node.hub import Feed, Hub, Subscriber
from realtime.node.maintenance import Upkeep
from realtime.protocol.messages import ChannelName, ClientInfo, Publication, StreamPosition
from realtime.streams.follower import Following

logger = logging.getLogger("realtime.node")

REACH_TIMEOUT = 10.0
"""Seconds a subscriber waits for the feed to catch up with the history it was given."""


class Subscriptions:
    """The subscriptions of a node's clients. Belongs to its event loop."""

    def __init__(self, config: Config, engine: Engine, hub: Hub, upkeep: Upkeep) -> None:
        """`upkeep`: sees to the feeds."""
        self._config = config
        self._engine = engine
        self._hub = hub
        self._upkeep = upkeep

    # coming

    async def add(
        self, channel: ChannelName, client: Subscriber, options: ChannelOptions, info: ClientInfo
    ) -> None:
        """Make a client a subscriber, held until `release`, and record its presence.

        Observers are not present.
        """
        first = self._hub.add_subscription(channel, client, options)
        feed = self._hub.feeds[channel]
        if first:
            await self._open(feed)
        while (ready := feed.ready) is not None:
            if feed.failed:
                await self._open(feed)
            else:
                await asyncio.shield(ready)
        if options.presence and not client.observing:
            await self._engine.add_presence(
                channel, [info], self._config.client_presence_expire_interval
            )

    async def _open(self, feed: Feed) -> None:
        """Have the engine hand over what is published in a channel; who comes meanwhile waits too.

        When that fails, those who wait are refused; who comes next tries again, because the
        feed lives on as long as one of the refused is still leaving. When the client that opens
        it is dropped meanwhile, one of those who wait goes on.
        """
        feed.ready = asyncio.get_running_loop().create_future()
        if feed.options.history_recover:
            feed.following = Following(
                self._engine, feed.channel, feed.publish, lambda: _insufficient_state(feed)
            )
        try:
            await self._engine.subscribe(feed.channel)
            if feed.following is not None:
                await feed.following.start()
        except BaseException as error:
            if feed.following is not None:
                feed.following.stop()
            if isinstance(error, Exception):
                feed.ready.set_exception(EngineUnavailable("the engine could not subscribe"))
                feed.ready.exception()  # nobody may be waiting
            else:
                feed.ready.set_result(None)
            raise
        feed.ready.set_result(None)
        feed.ready = None
        self._upkeep.watch(feed)

    def held(self, channel: ChannelName, client: Subscriber) -> list[Publication]:
        """The publications kept back for a held subscriber, in order of arrival."""
        return self._hub.feeds[channel].held(client)

    async def reach(self, channel: ChannelName, position: StreamPosition) -> None:
        """Have a recoverable channel's feed catch up with a position read from its stream.

        Raises:
            EngineUnavailable: that took too long.
        """
        following = self._hub.feeds[channel].following
        if following is not None:
            try:
                async with asyncio.timeout(REACH_TIMEOUT):
                    await following.reach(position)
            except TimeoutError:
                raise EngineUnavailable(
                    f"the stream could not be followed within {REACH_TIMEOUT:g} s"
                ) from None

    def position(self, channel: ChannelName) -> StreamPosition | None:
        """Up to where all live subscribers of a recoverable channel have been served."""
        following = self._hub.feeds[channel].following
        return None if following is None else following.position

    def release(self, channel: ChannelName, client: Subscriber) -> None:
        """Serve a held subscriber from now on.

        In a recoverable channel it has everything up to `position`, what was kept back for
        it included. Call it in the same turn of the loop in which these were read.
        """
        self._hub.feeds[channel].release(client)

    async def join(self, channel: ChannelName, info: ClientInfo, options: ChannelOptions) -> None:
        """Say in the channel that a client subscribed. The subscription holds if this fails."""
        if not options.join_leave:
            return
        try:
            await self._engine.publish_join(channel, info)
        except Exception as error:  # whatever it is: the client has its reply
            # an engine that is away fails every join: a line each is enough
            logger.error(
                "A join could not be published: %s",
                error,
                exc_info=not isinstance(error, EngineUnavailable),
            )

    # leaving

    async def remove(
        self,
        channel: ChannelName,
        client: Subscriber,
        options: ChannelOptions,
        *,
        leave: ClientInfo | None,
    ) -> None:
        """Undo `add`; `leave` is said to the channel, if it has join_leave.

        The leaver is still a subscriber when its leave is published.
        """
        if channel in self._hub.feeds:
            self._hub.feeds[channel].leaving.add(client)
        try:
            if options.presence and not client.observing:
                await self._engine.remove_presence(channel, client.id)
            if leave is not None and options.join_leave and not client.observing:
                await self._engine.publish_leave(channel, leave)
        finally:
            feed = self._hub.remove_subscription(channel, client)
            if feed is not None:
                feed.close()
                await self._engine.unsubscribe(channel)


def _insufficient_state(feed: Feed) -> None:
    """The stream of a channel does not continue: its subscribers come back and recover."""
    for client in feed.cut_off():
        client.close(DisconnectInsufficientState())
