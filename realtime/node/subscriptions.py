"""Subscriptions: how clients of this process come into channels, and how they leave them.

    add ──► held, present ── catch_up ──► as far as history ── release ──► live
     └────────────────────────────── remove ─────────────────────────────────┘

The first subscriber of a channel subscribes this process in the engine, the last one
unsubscribes it. For subscribers that must not miss a publication, those with a position, the node
follows the stream of the channel. From the first of them on, publications reach them in the order
of their offsets (see `streams.follower`), and the follower's position is that of all of them. Gaps
are filled from history; only when history cannot fill them do they lose their position
("insufficient state"), and recover what they can when they come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field

from msgspec.structs import replace

from realtime.cluster.context import Context
from realtime.config.channel_options import PER_USER
from realtime.config.options import ChannelOptions
from realtime.engine.base import Broker, Joined, Left, Presence
from realtime.errors import EngineUnavailable
from realtime.metrics import Counters
from realtime.node.feed import ChannelFeed, FeedState
from realtime.node.hub import Hub
from realtime.node.maintenance import Maintenance
from realtime.node.maps import Changes
from realtime.node.subscriber import Subscriber
from realtime.node.user_joins import UserJoins, is_one
from realtime.protocol.messages import ChannelName, ClientInfo, StreamPosition
from realtime.streams import recovery
from realtime.streams.follower import StreamFollower
from realtime.streams.recovery import Recovered
from realtime.streams.retries import Retries
from realtime.streams.tag_filters import TagsFilter

logger = logging.getLogger("realtime.node")

CATCH_UP_TIMEOUT = 10.0
"""Seconds in which the feed must reach the history that was read for a subscriber."""


@dataclass(eq=False, repr=False)
class Subscriptions:
    """The subscriptions of a node's clients. Belongs to its event loop."""

    _context: Context
    _broker: Broker
    _presence: Presence
    _hub: Hub
    _maintenance: Maintenance
    _user_joins: UserJoins
    _changes: Changes
    _counters: Counters
    count: int = 0
    """Subscriptions, those of observers left out: each `add` that `remove` has not undone."""
    _retries: dict[int, Retries] = field(default_factory=lambda: defaultdict(Retries))
    """Shard → what its streams share: another shard that is away does not hold them up."""

    # coming

    async def add(
        self,
        channel: ChannelName,
        client: Subscriber,
        options: ChannelOptions,
        info: ClientInfo,
        *,
        visible: bool = True,
        hears_joins: bool = True,
    ) -> None:
        """Make a client a subscriber, held in its feed, and record its presence.

        Args:
            channel: the name of the channel.
            client: who subscribes.
            options: the options of the channel.
            info: what presence shows of the client.
            visible: False for an observer: it is neither counted nor present.
            hears_joins: False for a client that gets neither joins nor leaves.

        Raises:
            EngineUnavailable: the engine could not subscribe, or could not record the presence.
        """
        self.count += visible
        feed = self._hub.add_subscription(
            channel, client, options, visible=visible, hears_joins=hears_joins
        )
        positioned = client.has_position(channel)
        while feed.state is not FeedState.CLOSED:
            if feed.state is FeedState.OPENING:
                await feed.wait()
            elif feed.state is FeedState.IDLE:
                await self._attempt(feed, self._open(feed, positioned))
            elif positioned and feed.follower is None:
                await self._attempt(feed, self._follow(feed))
            else:
                break
        if options.presence and visible:
            await self._presence.add(
                channel, [info], self._context.config.client_presence_expire_interval
            )

    async def _attempt(self, feed: ChannelFeed, work: Awaitable[None]) -> None:
        """Open a feed, or follow its stream, for this caller and all that wait.

        Raises:
            EngineUnavailable: the engine failed. The next caller tries again, for the feed lives on
                as long as one of those that failed is still leaving.
        """
        try:
            await work
        except asyncio.CancelledError:
            feed.abandoned()
            raise
        except BaseException:  # also a defect: those who wait for this attempt must not wait on
            feed.failed()
            raise
        self._maintenance.opened(feed)

    async def _open(self, feed: ChannelFeed, positioned: bool) -> None:
        """Subscribe this node in the engine; follow the stream if the subscriber has a position."""
        follower = self._follower(feed) if positioned else None
        feed.open(follower)
        await self._broker.subscribe(feed.channel)
        if follower is not None:
            await follower.start()

    async def _follow(self, feed: ChannelFeed) -> None:
        """Follow the stream of a feed that is open."""
        follower = self._follower(feed)
        feed.follow(follower)
        await follower.start()

    def _follower(self, feed: ChannelFeed) -> StreamFollower:
        return StreamFollower(
            self._broker,
            feed.channel,
            feed.publish_followed,
            lambda: self._lose_positions(feed),
            self._retries[self._broker.shard(feed.channel)],
        )

    def _lose_positions(self, feed: ChannelFeed) -> None:
        """Tell the subscribers that the stream was lost: they come back and recover."""
        self._counters.lost_streams += 1
        for client in feed.cut_off():
            client.lose_position(feed.channel)

    @property
    def gaps(self) -> int:
        """How often a stream was read because publications were missing, or perhaps were."""
        return sum(retries.reads for retries in self._retries.values())

    async def catch_up(
        self,
        channel: ChannelName,
        since: StreamPosition,
        *,
        empty_epoch_matches: bool = False,
        newest_only: bool = False,
        tags_filter: TagsFilter | None = None,
    ) -> Recovered:
        """Read what a held subscriber missed, and wait until its feed has reached that, too.

        Args:
            channel: the name of a channel whose stream is followed.
            since: the last position that the subscriber has seen.
            empty_epoch_matches: see `recovery.recover`.
            newest_only: whether only the newest publication counts.
            tags_filter: with `newest_only`, the newest that passes this.

        Raises:
            EngineUnavailable: history could not be read, or the feed did not reach it in time.
        """
        if newest_only:
            limit = 1 if tags_filter is None else None
            history = await self._broker.history(channel, None, limit, reverse=True)
            await self.reach(channel, history.position)
            return recovery.recover_newest(history, since, tags_filter)
        history = await self._broker.history(channel, since.offset + 1)
        await self.reach(channel, history.position)
        return recovery.recover(history, since, empty_epoch_matches=empty_epoch_matches)

    async def reach(self, channel: ChannelName, position: StreamPosition) -> None:
        """Wait until the feed of a held subscriber has reached a position of its stream.

        Raises:
            EngineUnavailable: it did not in time.
        """
        follower = self._hub.feeds[channel].follower
        if follower is not None:
            try:
                async with asyncio.timeout(CATCH_UP_TIMEOUT):
                    await follower.reach(position)
            except TimeoutError:
                raise EngineUnavailable(
                    f"the stream could not be followed within {CATCH_UP_TIMEOUT:g} s"
                ) from None

    async def join(self, channel: ChannelName, info: ClientInfo, options: ChannelOptions) -> None:
        """Publish a join, if the channel has join_leave. A failure is logged."""
        if not options.join_leave:
            return
        if options.join_leave == PER_USER and is_one(info):
            self._user_joins.enter(channel, info)
            return
        with self._context.logged(  # the client has its reply
            logger.error, "Could not publish a join, as others for now: %s"
        ):
            await self._broker.notify(channel, Joined(info))

    # leaving

    async def remove(
        self,
        channel: ChannelName,
        client: Subscriber,
        options: ChannelOptions,
        *,
        leave: ClientInfo | None,
        visible: bool = True,
        hears_leave: bool = True,
    ) -> None:
        """Undo `add`.

        Args:
            channel: the name of the channel.
            client: who leaves.
            options: the options of the channel.
            leave: published as a leave, if the channel has join_leave.
            visible: as it was for `add`.
            hears_leave: whether the client may get its own leave.

        Raises:
            EngineUnavailable: presence was not removed, the leave was not published, or this
                process was not unsubscribed. The client is removed in any case.
        """
        recorded = True
        if channel in self._hub.feeds:
            feed = self._hub.feeds[channel]
            feed.leave(client, hears_leave=hears_leave)
            # `add` failed before it recorded the presence: nothing to wait for
            recorded = feed.has_opened
        if not (options.join_leave and visible):
            leave = None
        per_user = leave is not None and options.join_leave == PER_USER and is_one(leave)
        try:
            if recorded and options.presence and visible:
                await self._presence.remove(channel, client.id)
            if leave is not None and not per_user:
                await self._broker.notify(channel, Left(leave))
            if recorded and options.map_remove_on_unsubscribe and visible:
                await self._remove_entry(channel, client, options)
        finally:
            if leave is not None and per_user:
                self._user_joins.exit(channel, leave, options.leave_delay)
            self.count -= visible
            left = self._hub.remove_subscription(channel, client)
            if left is not None:
                left.close()
                await self._broker.unsubscribe(channel)

    async def _remove_entry(
        self, channel: ChannelName, client: Subscriber, options: ChannelOptions
    ) -> None:
        """Remove the entry of a client from a map. The client gets that before it has left."""
        is_positioned = client.has_position(channel)
        if channel in self._hub.feeds and not is_positioned:
            self._hub.feeds[channel].remove(client)  # so that the removal comes once
        removal = self._changes.change(channel, client.id, options)
        published = await self._broker.publish(removal)
        if not published.kept or client.is_closing():
            return
        position = published.position
        if not is_positioned:
            offset = 0 if position is None else position.offset
            publication = replace(removal.publication, offset=offset)
            client.push(client.codec.publication(channel, publication))
        elif position is not None:
            await self.reach(channel, position)
