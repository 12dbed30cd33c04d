"""Becoming a subscriber: what client-side and server-side subscriptions share.

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

docs/protocol.md, 3.8 to 3.11.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

import msgspec

from realtime import channel_rules, logs
from realtime.clients.session import Pending, Session, Subscription
from realtime.config.channel_options import ChannelOptions, Overrides
from realtime.errors import (
    DisconnectInsufficientState,
    EngineUnavailable,
    UnrecoverablePosition,
)
from realtime.node.node import Node
from realtime.node.outbox import Outbox
from realtime.node.subscriber import Subscriber
from realtime.payload import Payload
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    UINT32_MAX,
    ChannelName,
    ClientInfo,
    Publication,
    StreamPosition,
    SubscribeRequest,
    SubscribeResult,
)
from realtime.streams import recovery
from realtime.streams.recovery import Recovered
from realtime.streams.tag_filters import TagsFilter

logger = logging.getLogger("realtime.client")


class Client(Subscriber, Protocol):
    """What is needed of a client."""

    node: Node
    session: Session
    outbox: Outbox

    def info_with(self, subscription: Subscription | None) -> ClientInfo: ...

    def emit(self, kind: str, **details: Any) -> None: ...


class Subscribing:
    """One client that becomes a subscriber of one channel."""

    def __init__(
        self,
        client: Client,
        channel: ChannelName,
        subscription: Subscription,
        since: StreamPosition | None,
        *,
        must_recover: bool = False,
    ) -> None:
        """
        Args:
            client: who subscribes.
            channel: the name of the channel.
            subscription: what the session will remember.
            since: where the client wants to continue; None if it does not ask for recovery.
            must_recover: whether an error is the answer where that position cannot be recovered.
        """
        self._client = client
        self._subscriptions = client.node.subscriptions
        self._channel = channel
        self._subscription = subscription
        self._since = since
        self.data: Payload | None = None
        """Goes to the client with the result."""
        self.tags_filter: TagsFilter | None = None
        """The client gets only what passes this; set it before `prepare`."""
        self._must_recover = must_recover
        self._recovered: Recovered | None = None
        self._pending = Pending(subscription)
        self._held = False
        """Whether the client is in the feed, or on its way there, and not live."""
        self._kept: Sequence[Publication] = ()
        """Publications for the client that are not in the result."""

    @property
    def _newest_only(self) -> bool:
        """Whether the client recovers the newest publication only."""
        return self._subscription.options.force_recovery_mode == "cache"

    async def __aenter__(self) -> Subscribing:
        self._client.session.pending[self._channel] = self._pending
        self._client.node.user_limits.count_channels(self._client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._client.session.pending.get(self._channel) is self._pending:
            del self._client.session.pending[self._channel]
            self._client.node.user_limits.count_channels(self._client)
        if self._held:
            await self._undo()
        freed(self._client, self._channel)

    async def prepare(self) -> None:
        """Make the client a held subscriber, record its presence, read what it missed.

        Raises:
            EngineUnavailable: the engine failed.
        """
        self._held = True
        client, channel, subscription = self._client, self._channel, self._subscription
        options = subscription.options
        await self._subscriptions.add(
            channel,
            client,
            options,
            client.info_with(subscription),
            visible=subscription.visible,
            # also where the options know no joins: the token of another subscription may allow them
            hears_joins=subscription.hears_joins,
        )
        if self._since is None and self._recovers_unasked():
            self._since, self._must_recover = StreamPosition(0, ""), False
        if subscription.recoverable and self._since is not None:
            self._recovered = await self._subscriptions.catch_up(
                channel,
                self._since,
                empty_epoch_matches=client.session.rules.empty_epoch_matches,
                newest_only=self._newest_only,
                tags_filter=self.tags_filter,
            )

    def _recovers_unasked(self) -> bool:
        """Whether the client gets the newest publication although it does not ask for recovery."""
        return (
            self._newest_only
            and self._subscription.options.auto_cache_recover
            and self._client.session.rules.asks
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
        channel = self._channel
        result = self._result(self._subscriptions.position(channel))
        if result.was_recovering:
            how = "recovered" if result.recovered else "not recovered"
            self._client.node.counters.recoveries.add(how)
        if self._must_recover and self._recovered is not None and not result.recovered:
            raise UnrecoverablePosition
        if self._pending.unsubscribed:
            return result
        held = self._subscriptions.held(channel, self._client)
        # those with an offset are in the result, or older than its position
        positioned = self._subscription.positioned
        kept = [each for each in held if not (positioned and each.offset)]
        self._kept = recovery.passing(kept, self.tags_filter)
        self._subscriptions.release(channel, self._client, self.tags_filter)
        self._held = False
        session = self._client.session
        del session.pending[channel]
        session.subscriptions[channel] = self._subscription
        self._client.emit("subscribed", channel=channel)
        return result

    def _result(self, top: StreamPosition | None) -> SubscribeResult:
        """Build the result.

        Args:
            top: the position of all live subscribers, to which the client is about to belong.
        """
        subscription, since = self._subscription, self._since
        if not subscription.positioned:
            return SubscribeResult(was_recovering=since is not None, data=self.data)
        result = SubscribeResult(
            data=self.data,
            recoverable=subscription.recoverable,
            positioned=True,
            position=top,
            was_recovering=since is not None,
        )
        if self._recovered is None or since is None or self._pending.unsubscribed:
            return result
        held = self._subscriptions.held(self._channel, self._client)
        merged = recovery.merge(self._recovered, held)
        if merged is None or merged.position != top:
            raise DisconnectInsufficientState
        # behind `merge`, which looks for gaps
        merged = merged._replace(
            publications=recovery.passing(merged.publications, self.tags_filter)
        )
        if self._newest_only:
            merged = recovery.newest_only(merged)
        if not self._fits(merged.publications):
            # were it sent, the client could be slow at every return, because of the same backlog
            return result
        return msgspec.structs.replace(
            result, publications=merged.publications, recovered=merged.recovered
        )

    def _fits(self, publications: Sequence[Publication]) -> bool:
        """Return whether recovery may send so much, and reserve the room for it if so."""
        if not publications:
            return True
        client, config = self._client, self._client.node.config
        most = config.client_recovery_max_publication_limit
        if most and len(publications) > most:
            why = "more publications than client_recovery_max_publication_limit"
        elif not client.outbox.reserve(
            recovery.size_of(publications), config.client_recovery_max_size
        ):
            why = "more bytes than client_recovery_max_size"
        else:
            return True
        about = logs.of(client, channel=self._channel)
        logger.info("Client %s does not recover %r: %s", client.id, self._channel, why, extra=about)
        return False

    def push_kept(self) -> None:
        """Push the publications that came meanwhile and are not in the result.

        Call it behind the reply, in the same turn of the loop: newer ones come after them.
        """
        client = self._client
        for publication in self._kept:
            client.push(client.codec.publication(self._channel, publication))

    async def join(self) -> None:
        """Publish the join. If the server has unsubscribed the client, tell it so instead."""
        client = self._client
        if client.is_closing():
            return
        if self._pending.unsubscribed:
            # at once: the server may subscribe it anew
            client.push(client.codec.unsubscribe(self._channel, *SERVER_UNSUBSCRIBE))
        elif self._subscription.visible and client.session.is_subscribed(
            self._channel, self._subscription
        ):
            await self._subscriptions.join(
                self._channel, client.info_with(self._subscription), self._subscription.options
            )

    async def _undo(self) -> None:
        """Leave the feed. A failure is logged, so that it does not hide why this is undone."""
        try:
            await self._subscriptions.remove(
                self._channel,
                self._client,
                self._subscription.options,
                leave=None,
                visible=self._subscription.visible,
            )
        except EngineUnavailable as error:
            if self._client.node.outage.begins():
                logger.error(
                    "Could not undo a subscription cleanly: %s",
                    error,
                    extra=logs.of(self._client, channel=self._channel),
                )


def freed(client: Client, channel: ChannelName) -> None:
    """Begin to subscribe a client as the server wants, if it waits for the channel.

    Call it when nothing is under way between the two any more.
    """
    wanted = client.session.wanted.pop(channel, None)
    if wanted is not None:
        client.node.spawn(client.subscribe(wanted))


def overridden(options: ChannelOptions, overrides: Overrides | None) -> ChannelOptions:
    """Return the options of a subscription, whose token may override those of its channel.

    But for `presence`: whether a channel has it is one question for all of its subscribers.
    """
    return options if overrides is None else overrides._replace(presence=None).apply(options)


def grant(client: Client, subscription: Subscription, request: SubscribeRequest | None) -> None:
    """Give a subscription what the channel forces, and what the client asks for and may have.

    Args:
        client: who subscribes.
        subscription: the subscription.
        request: what the client asks for; None for a server-side subscription.
    """
    options, user = subscription.options, client.user
    if not client.session.rules.asks:
        # such a client cannot ask for joins; an observer is to see what there is
        forced = channel_rules.receives_joins(options, user, asked=False)
        subscription.hears_joins = forced or not subscription.visible
        return
    request = request or SubscribeRequest()
    subscription.recoverable = channel_rules.is_recoverable(options, user, request.recoverable)
    subscription.positioned = subscription.recoverable or channel_rules.is_positioned(
        options, user, request.positioned
    )
    subscription.hears_joins = channel_rules.receives_joins(options, user, request.join_leave)


def ttl_of(expires_at: float | None) -> int:
    """Return the time to a moment as replies carry it.

    Args:
        expires_at: Unix seconds; None for never.

    Returns:
        Whole seconds, 32 bits at most; 0 for never, and for a moment that has passed.
    """
    return 0 if expires_at is None else whole_ttl(expires_at - time.time())


def whole_ttl(seconds: float) -> int:
    """Return a time as replies carry it: whole seconds, 32 bits at most; 0 for a negative one."""
    return max(0, min(int(seconds), UINT32_MAX))
