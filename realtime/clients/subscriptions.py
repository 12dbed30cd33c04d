"""The channels of one client: how it becomes a subscriber, and how that ends.

Becoming one, whether the client asks for it or the server wants it:

    async with Subscribing(...) as subscribing:    the server may unsubscribe from here on
        await subscribing.prepare()                held in the feed, present, history read
        result = subscribing.complete()            buffered publications merged, live from here on
        client.reply(...)                          same turn of the loop: no push comes before it
        subscribing.push_kept()                    what was kept back and has no place in the reply
    await subscribing.join()

Leaving the block without `complete`, for whatever reason, undoes all of it. A client that the
server unsubscribes meanwhile gets its reply, with no publications, and after it the push that
says so. It never becomes live. So begin the block before anything is asked whose answer may be out
of date when it comes, such as a hook.

What the server wants while the client is connected:

    subscribe ──► the channel is busy ──► wanted ──► freed ──┐
        ├──► subscribed already: told again      ◄───────────┤
        └──► Subscribing ──► told, and live      ◄───────────┘

Between a client and a channel one thing is under way at a time. While the client is connecting,
subscribing, or leaving, the server's call waits in the session, only the newest one for a channel;
an unsubscribe of the server ends the wait.

The end:

    unsubscribe (server, expiry) ──► end ──┐
    lose_position ─────────────────► end ──┼──► leave ──► presence, leave push, feed ──► left
    the client's command ──────────────────┤
    the connection closes ─────────────────┘

Invariants:
- a subscription ends once; who else ends it waits until it has ended;
- it stays in the session until then, so that the client cannot subscribe meanwhile;
- at this node it ends even if the engine fails.

docs/protocol.md, 3.8 to 3.14 and 16.8.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

import msgspec

from realtime import channel_rules, logs
from realtime.clients import bounds
from realtime.clients.maps import MAP, STATE, Pages
from realtime.clients.renewals import Renewals
from realtime.clients.session import ClientSession, PendingSubscription, Subscription
from realtime.cluster.control import ServerSubscription
from realtime.errors import (
    Disconnect,
    DisconnectChannelLimit,
    DisconnectInsufficientState,
    DisconnectServerError,
    DisconnectSlow,
    EngineUnavailable,
    Error,
    UnrecoverablePosition,
)
from realtime.node.feed import ChannelFeed
from realtime.node.node import Node
from realtime.node.outbox import ClientOutbox
from realtime.node.subscriber import Subscriber
from realtime.payload import Payload
from realtime.protocol import deltas
from realtime.protocol.messages import (
    INSUFFICIENT_STATE,
    SERVER_UNSUBSCRIBE,
    ChannelName,
    Publication,
    StreamPosition,
    SubscribeResult,
    UnsubscribeReason,
)
from realtime.streams import joining, recovery
from realtime.streams.recovery import Recovered
from realtime.streams.tag_filters import TagsFilter
from realtime.timers import Timer

logger = logging.getLogger("realtime.client")


@dataclass(slots=True, eq=False, repr=False)
class ClientSubscriptions:
    """What comes and goes between one client and its channels."""

    _client: Subscriber
    _node: Node
    _session: ClientSession
    _outbox: ClientOutbox
    _renewals: Renewals
    waiting: dict[ChannelName, Subscribing] = field(default_factory=dict)
    """The maps of which the client has a page, and must ask for the next one."""
    _ends: dict[ChannelName, asyncio.Event] = field(default_factory=dict)
    """The channels that the client is leaving; set when it has left."""

    def close(self) -> None:
        """Forget what `leave_all` could not end, and drop the references to the client."""
        for channel in list(self._session.subscriptions):
            self._left(channel)  # the engine hangs, and this process is about to end
        del self._client

    # what the server wants

    def connected(self) -> None:
        """Begin what waited for the reply to connect. Call it when the client has that reply."""
        self._session.answered = True
        for channel in list(self._session.wanted):
            self._freed(channel)

    async def subscribe(self, wanted: ServerSubscription) -> None:
        """Subscribe the client and tell it; where that fails, close it. Never raises.

        It comes back without the subscription: the site sees that, and can make it again.
        """
        session, channel = self._session, wanted.channel
        if session.closing:
            return
        if session.is_busy(channel):
            session.wanted[channel] = wanted
            return
        if wanted.expires_at is not None and wanted.expires_at <= time.time():
            return
        client = self._client
        try:
            subscription = session.subscriptions.get(channel)
            if subscription is None:
                await self._make(wanted)
            else:
                self._renew(subscription, wanted)
        except Disconnect as disconnect:
            # its traceback holds frames that hold the client
            client.close(disconnect.with_traceback(None))
        except EngineUnavailable as error:
            self._log_outage("Could not subscribe a client for the server: %s", error, channel)
            client.close(DisconnectServerError())
        except Error as error:  # the node that was asked has other namespaces
            logger.info(
                "Client %s: subscription by the server refused: %s",
                session.id,
                error,
                extra=logs.of(session),
            )

    async def _make(self, wanted: ServerSubscription) -> None:
        session, channel = self._session, wanted.channel
        if session.is_full():
            raise DisconnectChannelLimit
        subscription = Subscription(
            channel_rules.check_channel(channel, self._node.config),
            server_side=True,
            info=wanted.info,
            expiry_deadline=self._renewals.deadline(wanted.expires_at),
        )
        subscription.override(wanted.overrides)
        session.grant(subscription, None)
        async with Subscribing(self, channel, subscription, wanted.since) as making:
            making.data = wanted.data
            await making.prepare()
            if session.closing:
                return
            result = making.complete()
            self._renewals.set_timer()
            self._tell(wanted, result)
            making.push_kept()
        await making.join()

    def _renew(self, subscription: Subscription, wanted: ServerSubscription) -> None:
        """Give a subscription the info and expiry of the newest call, and tell the client again."""
        subscription.info = wanted.info
        subscription.expiry_deadline = self._renewals.deadline(wanted.expires_at)
        self._renewals.set_timer()
        positioned = subscription.positioned
        result = SubscribeResult(
            recoverable=subscription.recoverable,
            positioned=positioned,
            position=self._node.hub.feeds[wanted.channel].position if positioned else None,
            data=wanted.data,
        )
        self._tell(wanted, result)

    def _tell(self, wanted: ServerSubscription, result: SubscribeResult) -> None:
        """Push the subscription, then each recovered publication, which the push cannot carry."""
        client, publications = self._client, result.publications if result.recovered else ()
        if publications and result.position is not None:
            since = wanted.since  # joined publications have the offset of their last
            first = since.offset if since else publications[0].offset - 1
            begin = StreamPosition(first, result.position.epoch)
            result = msgspec.structs.replace(result, position=begin)
        client.push(client.codec.subscribed(wanted.channel, result))
        for publication in publications:
            client.push(client.codec.publication(wanted.channel, publication))

    def _freed(self, channel: ChannelName) -> None:
        """Begin what the server wants in a channel. Nothing is under way there any more."""
        wanted = self._session.wanted.pop(channel, None)
        if wanted is not None:
            self._node.spawn(self.subscribe(wanted))

    # the end

    async def unsubscribe(self, channel: ChannelName, why: UnsubscribeReason) -> None:
        """Unsubscribe the client on the server's behalf; see `node.subscriber.Subscriber`.

        A client that is connecting has no other subscriptions than those that are being made.
        """
        session = self._session
        session.revoke(channel)
        if not session.answered:
            return
        names = [channel] if channel else [*session.subscriptions, *self.waiting]
        made = [name for name in names if name in self.waiting or name not in session.pending]
        await asyncio.gather(*(self._end(name, why) for name in made))

    async def _end(self, channel: ChannelName, why: UnsubscribeReason) -> None:
        """End a subscription, if there is one, and tell the client why."""
        await self._leave_safely(channel)
        if not self._session.closing:
            self._client.push(self._client.codec.unsubscribe(channel, *why))

    def lose_position(self, channel: ChannelName) -> None:
        """Begin to end a subscription, or the connection, because publications are missing."""
        session = self._session
        if session.closing:
            return
        pending = session.pending.get(channel)
        subscription = pending.subscription if pending else session.subscriptions.get(channel)
        if subscription is None or not (subscription.positioned or subscription.is_map):
            return  # it misses nothing that the client counts on
        is_made = pending is None or channel in self.waiting
        if not (is_made and session.ends_alone(subscription)):
            self._client.close(DisconnectInsufficientState())
        elif not subscription.ending:
            self._node.spawn(self._end(channel, INSUFFICIENT_STATE))

    def leave_all(self) -> list[Awaitable[None]]:
        """Return what ends each subscription, even if the engine fails.

        Await them together: an engine that hangs costs its timeout once, and not for each channel.
        """
        channels = [*self._session.subscriptions, *self.waiting]
        return [self._leave_safely(channel) for channel in channels]

    async def leave(self, channel: ChannelName) -> None:
        """End a subscription, if there is one. If it is ending already, wait until it has ended.

        Raises:
            EngineUnavailable: the engine failed; the subscription has ended at this node.
        """
        if (waiting := self.waiting.get(channel)) is not None:
            async with waiting:
                return
        subscription = self._session.subscriptions.get(channel)
        if subscription is None:
            return
        if subscription.ending:
            await self.wait_until_left(channel)
            return
        subscription.ending = True
        self._ends[channel] = asyncio.Event()
        try:
            await self._node.subscriptions.remove(
                channel,
                self._client,
                subscription.options,
                leave=self._session.info_with(subscription),
                visible=subscription.visible,
                hears_leave=self._session.rules.own_leave,
            )
        finally:
            # who waits for the end goes on before what `_left` begins
            self._ends.pop(channel).set()
            self._left(channel)
        self._renewals.set_timer()

    async def wait_until_left(self, channel: ChannelName) -> None:
        """Wait until a subscription that is ending has ended; return at once if there is none."""
        if (ended := self._ends.get(channel)) is not None:
            await ended.wait()

    async def _leave_safely(self, channel: ChannelName) -> None:
        """End a subscription at this node even if the engine fails."""
        try:
            await self.leave(channel)
        except EngineUnavailable as error:
            self._log_outage("Could not end a subscription cleanly: %s", error, channel)

    def _left(self, channel: ChannelName) -> None:
        """Forget a subscription, once."""
        left = self._session.subscriptions.pop(channel, None)
        if left is not None:
            self._node.user_limits.count_channels(self._client)
            self._emit("unsubscribed", channel)
            if left.options.presence_maps and not left.options.allow_presence_for_client:
                self._end_presence_maps(channel)
        self._freed(channel)

    def _end_presence_maps(self, channel: ChannelName) -> None:
        """End the subscriptions that a subscriber may have. The client may ask for them anew."""
        session = self._session
        for name, _ in channel_rules.presence_maps(channel, self._node.config):
            pending = session.pending.get(name)
            held = pending.subscription if pending else session.subscriptions.get(name)
            if not (held is None or held.server_side or session.closing):
                self._node.spawn(self.unsubscribe(name, INSUFFICIENT_STATE))

    def _emit(self, kind: str, channel: ChannelName) -> None:
        session = self._session
        if session.visible:
            self._node.events.emit(kind, user=session.user, client=session.id, channel=channel)

    def _log_outage(self, text: str, error: EngineUnavailable, channel: ChannelName) -> None:
        if self._node.outage.begins():
            logger.error(text, error, extra=logs.of(self._session, channel=channel))


@dataclass(eq=False, repr=False)
class Subscribing:
    """One client that becomes a subscriber of one channel."""

    _owner: ClientSubscriptions
    _channel: ChannelName
    subscription: Subscription
    _since: StreamPosition | None
    """Where the client wants to continue; None if it does not ask for recovery."""
    must_recover: bool = False
    """Whether an error is the answer where that position cannot be recovered."""
    data: Payload | None = None
    """Goes to the client with the result."""
    tags_filter: TagsFilter | None = None
    """The client gets only what passes this; set it before `prepare`."""
    expires_at: float | None = None
    """When the subscription expires, Unix seconds."""
    pages: Pages | None = None
    """Of a map whose entries the client reads."""
    _state: tuple[Publication, ...] = ()
    """The last page of the map."""
    delta: bool = False
    """Whether the client takes deltas; never together with a filter."""
    _recovered: Recovered | None = None
    _held: bool = False
    """Whether the client is in the feed, or on its way there, and not live."""
    _kept: Sequence[Publication] = ()
    """Publications for the client that are not in the result."""
    _last: Publication | None = None
    """The newest publication that the client has, with the result."""

    def __post_init__(self) -> None:
        # the owner forgets its client when the connection has ended, which may be before this block
        self._client = self._owner._client
        self._session, self._node = self._owner._session, self._owner._node
        self._pending = PendingSubscription(self.subscription)
        self._timer: Timer | None = None
        """Closes a client that takes too long to ask for the next page of a map, or for all."""
        self._waits = False

    @property
    def _newest_only(self) -> bool:
        """Whether the client recovers the newest publication only."""
        return self.subscription.options.force_recovery_mode == "cache"

    async def __aenter__(self) -> Subscribing:
        if self._timer is not None:  # a client that waited
            self._waits = False
            self._timer.set(None)
            del self._owner.waiting[self._channel]
            return self
        self._session.pending[self._channel] = self._pending
        self._node.user_limits.count_channels(self._client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._waits and not self._session.closing:
            self._owner.waiting[self._channel] = self
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self._held:
                await self._undo()
        finally:  # the client may not subscribe anew before that
            if self._session.pending.get(self._channel) is self._pending:
                del self._session.pending[self._channel]
                self._node.user_limits.count_channels(self._client)
        self._owner._freed(self._channel)

    async def prepare(self) -> None:
        """Make the client a held subscriber, record its presence, read what it missed.

        Raises:
            EngineUnavailable: the engine failed.
        """
        self._held = True
        channel, subscription, session = self._channel, self.subscription, self._session
        await self._node.subscriptions.add(
            channel,
            self._client,
            subscription.options,
            session.info_with(subscription),
            visible=subscription.visible,
            # also where the options know no joins: the token of another subscription may allow them
            hears_joins=subscription.hears_joins,
        )
        if self._since is None and self._recovers_unasked():
            self._since, self.must_recover = StreamPosition(0, ""), False
        if subscription.recoverable and self._since is not None:
            self._recovered = await self._node.subscriptions.catch_up(
                channel,
                self._since,
                empty_epoch_matches=session.rules.empty_epoch_matches,
                newest_only=self._newest_only,
                tags_filter=self.tags_filter,
            )

    async def read_page(self, limit: int) -> SubscribeResult | None:
        """Read the next page for a held client, where it reads a map.

        Returns:
            The page; None if it is the last one, which `complete` returns with all that came since
            the first one.

        Raises:
            UnrecoverablePosition: the client must begin again.
            EngineUnavailable: the engine failed.
        """
        if self.pages is None:
            return None
        state = recovery.passing(await self.pages.read(limit), self.tags_filter)
        first = self.pages.position
        if not self.pages.cursor:
            self._state = state
            await self._reached(first)
        if not self.pages.cursor or self._pending.unsubscribed:
            return None
        most = self._node.config.client_recovery_max_size
        held = self._node.hub.feeds[self._channel].held(self._client)
        if not self._fits(state) or (most and recovery.size_of(held) > most):
            raise UnrecoverablePosition
        return SubscribeResult(
            position=first, type=MAP, phase=STATE, cursor=self.pages.cursor, state=state
        )

    async def read_map(self) -> tuple[Publication, ...] | None:
        """Read a whole map; None if the client recovers. Raises as `Pages.read_all`."""
        if self._recovered is not None and self._recovered.recovered:
            return None
        assert self._node.maps is not None
        self.pages = Pages(self._node.maps, self._channel, has_stream=self.subscription.positioned)
        entries = await self.pages.read_all(self._node.config.client_recovery_max_size)
        await self._reached(self.pages.position)
        return entries

    async def _reached(self, first: StreamPosition | None) -> None:
        if first is not None:
            await self._node.subscriptions.reach(self._channel, first)
            self._recovered = Recovered((), first, False)

    def wait(self) -> None:
        """Keep the client held after this block, which it enters again for the next page."""
        assert self.pages is not None
        if self._timer is None:
            self._timer = self._node.timers.timer(partial(self._client.close, DisconnectSlow()))
        self._timer.set(self.pages.deadline(self._node.timers.now()))
        self._waits = True

    def _recovers_unasked(self) -> bool:
        """Whether the client gets the newest publication although it does not ask for recovery."""
        return (
            self._newest_only
            and self.subscription.options.auto_cache_recover
            and self._session.rules.asks
        )

    def complete(self) -> SubscribeResult:
        """Make the client a live subscriber, unless the server has unsubscribed it meanwhile.

        Reply in the same turn of the loop.

        Returns:
            What the reply says, but for the expiry.

        Raises:
            DisconnectInsufficientState: the buffered publications do not continue history.
            UnrecoverablePosition: the client asked for this error instead of a new beginning.
        """
        channel, feed = self._channel, self._node.hub.feeds[self._channel]
        result = self._result(feed)
        if result.was_recovering:
            how = "recovered" if result.recovered else "not recovered"
            self._node.counters.recoveries.add(how)
        if self.must_recover and self._recovered is not None and not result.recovered:
            raise UnrecoverablePosition
        if self._pending.unsubscribed:
            return result
        held = feed.held(self._client)
        # those with an offset are in the result, or older than its position
        positioned = self.subscription.positioned
        kept = [each for each in held if not (positioned and each.offset)]
        self._kept = recovery.passing(kept, self.tags_filter)
        base = self._kept[-1] if self._kept else self._last
        feed.release(self._client, self.tags_filter, delta=self.delta, base=base)
        self._held = False
        del self._session.pending[channel]
        self._session.subscriptions[channel] = self.subscription
        self._owner._emit("subscribed", channel)
        return result

    def _result(self, feed: ChannelFeed) -> SubscribeResult:
        subscription, top = self.subscription, feed.position
        result = SubscribeResult(
            data=self.data,
            recoverable=subscription.recoverable,
            positioned=subscription.positioned,
            position=top if subscription.positioned else None,
            was_recovering=self._since is not None,
            type=MAP if subscription.is_map else 0,
            delta=self.delta,
        )
        if self._pending.unsubscribed or (self._recovered is None and self.pages is None):
            return result
        missed, recovered = self._missed(feed)
        publications = tuple(map(self._encoded, missed))
        if not self._fits((*self._state, *publications)):
            if self.pages is not None:
                raise UnrecoverablePosition
            # were it sent, the client could be slow at every return, because of the same backlog
            return result
        if recovered and missed:
            self._last = missed[-1]
        return msgspec.structs.replace(
            result, publications=publications, recovered=recovered, state=self._state
        )

    def _missed(self, feed: ChannelFeed) -> tuple[tuple[Publication, ...], bool]:
        """Return what the client missed, and whether that is all since its position."""
        if self._recovered is None:
            return (), False
        merged = recovery.merge(self._recovered, feed.held(self._client))
        if merged is None or merged.position != feed.position:
            raise DisconnectInsufficientState
        # behind `merge`, which looks for gaps
        passing = recovery.passing(merged.publications, self.tags_filter)
        merged = merged._replace(publications=passing)
        if self._newest_only:
            merged = recovery.newest_only(merged)
        elif self.subscription.options.join_on_read:
            merged = merged._replace(publications=joining.join(merged.publications))
        return merged.publications, merged.recovered

    def _fits(self, publications: Sequence[Publication]) -> bool:
        config, outbox = self._node.config, self._owner._outbox
        return bounds.fit(self._session, outbox, config, self._channel, publications)

    def _encoded(self, publication: Publication) -> Publication:
        return deltas.since(None, publication, self._client.codec) if self.delta else publication

    def push_kept(self) -> None:
        """Push the publications that are not in the result, in the turn of the reply."""
        client = self._client
        for publication in self._kept:
            client.push(client.codec.publication(self._channel, self._encoded(publication)))

    async def join(self) -> None:
        """Publish the join. If the server has unsubscribed the client, tell it so instead."""
        session = self._session
        if session.closing:
            return
        if self._pending.unsubscribed:
            # at once: the server may subscribe it anew
            self._client.push(self._client.codec.unsubscribe(self._channel, *SERVER_UNSUBSCRIBE))
        elif self.subscription.visible and session.is_subscribed(self._channel, self.subscription):
            await self._node.subscriptions.join(
                self._channel, session.info_with(self.subscription), self.subscription.options
            )

    async def _undo(self) -> None:
        """Leave the feed. A failure is logged, so that it does not hide why this is undone."""
        try:
            options, visible = self.subscription.options, self.subscription.visible
            await self._node.subscriptions.remove(
                self._channel, self._client, options, leave=None, visible=visible
            )
        except EngineUnavailable as error:
            text = "Could not undo a subscription cleanly: %s"
            self._owner._log_outage(text, error, self._channel)
