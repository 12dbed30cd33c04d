"""Session: the state of one client, without I/O and without a clock.

States:

    NEW ──connected()──► CONNECTED ──close()──► CLOSED
     └───────────────────close()───────────────────┘

Events: a command (`check`), a subscription about to be made (`check_subscribe`), time (`due`).
Each may raise the disconnect or the error that is the answer.

Invariants:
- before `connected()` only a connect command is legal, and after it no other one;
- a new session that does not connect in time is stale;
- an expired connection, or subscription, has a window in which the client refreshes it; where the
  site refreshes the connection, there is no window;
- a pong is legal while the client owes one, or while one that was given up as lost has not come:
  LOST_MOST of them at most, as a silent client does not live for ever;
- a channel is in `pending` or in `subscriptions`, never in both;
- what the server wants to subscribe the client to is in `wanted` while the channel is busy.

Times are seconds on the monotonic clock. `deadline()` says when `due()` must be called next, so a
client needs one timer, and none while nothing expires.

What differs between generations is in `rules`.

docs/protocol.md, 2.6, 3.4 and 3.12.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from enum import Enum, auto

from realtime import channel_rules
from realtime.clients.rules import FIRST, Rules
from realtime.cluster.control import ServerSubscription
from realtime.config.channel_options import Overrides
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    AlreadySubscribed,
    DisconnectBadRequest,
    DisconnectExpired,
    DisconnectStale,
    DisconnectSubscriptionExpired,
    LimitExceeded,
)
from realtime.node.hooks import NO_HANDSHAKE, Caller, Handshake, Identity
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Command,
    Method,
    SubscribeRequest,
    UserID,
)

LOST_MOST = 20
"""Pongs of a client that another node may have failed to pass on."""


class SessionState(Enum):
    """The states of a session. See the module's docstring."""

    NEW = auto()
    CONNECTED = auto()
    CLOSED = auto()


# looked up for every command; as attributes of their classes they cost 0.15 µs each (Python 3.11)
_NEW = SessionState.NEW
_CONNECT = Method.CONNECT


@dataclass(slots=True, eq=False)
class SiteAnswer:
    """What the site said about a subscription: that the client may stay until it is asked again."""

    until: float | None = None
    """Monotonic seconds; None: the site is not asked by itself, or is being asked."""
    questions: int = 0
    """How often it was asked again: an answer to an earlier question than the last is void."""
    failed: bool = False
    """Whether it could not answer the last question."""


@dataclass(slots=True, eq=False)
class Subscription:
    """One client in one channel."""

    options: ChannelOptions
    server_side: bool = False
    visible: bool = True
    """False for an observer's: neither counted nor present."""
    info: Payload | None = None
    """The channel info; None for none."""
    expiry_deadline: float | None = None
    """Monotonic seconds; None: the subscription does not expire."""
    site_answer: SiteAnswer | None = None
    """None: the site was not asked."""
    ending: bool = False
    """Whether the client is leaving the channel now."""
    revoked: bool = False
    """Whether the server is about to end it."""
    hears_joins: bool = True
    """Whether the client gets joins and leaves, in a channel that has them."""
    positioned: bool = False
    """Whether the client learns that it missed a publication."""
    recoverable: bool = False
    is_map: bool = False
    """Whether the client reads entries of a map, and not only its changes."""

    def __post_init__(self) -> None:
        self.use(self.options)

    def use(self, options: ChannelOptions) -> None:
        """Take these options: those of the channel, or what a token makes of them."""
        self.options = options
        self.positioned = self.recoverable = options.history_recover and options.keeps_history

    def follow_map(self) -> None:
        """Become the subscription to a map, with positions where the map has them."""
        self.is_map = True
        self.positioned = self.recoverable = self.options.map != "ephemeral"

    def override(self, overrides: Overrides | None) -> None:
        """Take options that a token has for the subscription in place of those of its channel.

        But for `presence`: whether a channel has it is one question for all of its subscribers.
        """
        if overrides is not None:
            self.use(overrides._replace(presence=None).apply(self.options))


@dataclass(slots=True, eq=False)
class PendingSubscription:
    """A subscription that is being made."""

    subscription: Subscription
    unsubscribed: bool = False
    """Whether the server has unsubscribed the client from the channel meanwhile."""


@dataclass(slots=True, eq=False)
class ClientSession:
    """The state of one client. See the module's docstring."""

    _config: Config
    now: InitVar[float]
    rules: Rules = FIRST
    id: ClientID = ""
    handshake: Handshake = NO_HANDSHAKE
    closing: bool = False
    """Whether closing has begun: nothing reaches the client any more."""
    state: SessionState = SessionState.NEW
    user: UserID = ""
    conn_info: Payload | None = None
    meta: Payload | None = None
    """What hooks and proxies learn of the connection, and no client."""
    expiry_deadline: float | None = None
    """Monotonic seconds; None: the connection does not expire."""
    server_side_refresh: bool = False
    """Whether the site refreshes the connection when it expires; otherwise the client does."""
    auth_session: str = ""
    """The auth session the connection belongs to; "" for none."""
    visible: bool = True
    """False for an observer, who receives its server-side channels and does nothing else."""
    owes_pong: bool = False
    """Whether the client has a ping to answer."""
    lost_pongs: int | None = None
    """Pongs that were taken for lost, and did not come; None: no other node relays them."""
    handling: bool = False
    """Whether a frame of the client is being handled. Others, and pongs, wait behind it."""
    channels: tuple[ChannelName, ...] = ()
    """The server-side channels that came with the user, from a token or a hook."""
    subscriptions: dict[ChannelName, Subscription] = field(default_factory=dict)
    pending: dict[ChannelName, PendingSubscription] = field(default_factory=dict)
    wanted: dict[ChannelName, ServerSubscription] = field(default_factory=dict)
    """What the server subscribes the client to as soon as the channel is not busy."""
    answered: bool = False
    """Whether the client has the reply to connect, before which it gets no push."""
    _stale_at: float | None = None

    def __post_init__(self, now: float) -> None:
        delay = self._config.client_stale_close_delay
        self._stale_at = now + delay if delay > 0 else None

    def caller(self) -> Caller:
        """Describe the client for hooks."""
        return Caller(self.id, self.user, self.handshake, self.meta)

    def info_with(self, subscription: Subscription | None) -> ClientInfo:
        """Return the client info, with the channel info of a subscription if there is one."""
        info = None if subscription is None else subscription.info
        return ClientInfo(self.user, self.id, self.conn_info, info)

    # commands

    def check(self, command: Command) -> None:
        """Check that a command is legal in this state.

        Raises:
            DisconnectBadRequest: connect is the first command, and only the first.
        """
        connecting = command.method is _CONNECT
        if connecting is (self.state is not _NEW):
            raise DisconnectBadRequest

    def connected(self, identity: Identity, expiry_deadline: float | None) -> None:
        """Enter CONNECTED: the connect command succeeded."""
        self.state = SessionState.CONNECTED
        self._stale_at = None
        self.user = identity.user
        self.conn_info = identity.info
        self.meta = identity.meta
        self.expiry_deadline = expiry_deadline
        self.server_side_refresh = identity.server_side_refresh
        self.auth_session = identity.auth_session
        self.visible = identity.visible
        self.channels = identity.channels

    def refreshed(self, info: Payload | None, expiry_deadline: float | None) -> None:
        """Extend the connection. Without info or deadline the old ones stay in force."""
        if info is not None:
            self.conn_info = info
        if expiry_deadline is not None:
            self.expiry_deadline = expiry_deadline

    def has_channels(self, channels: tuple[ChannelName, ...]) -> bool:
        """Return whether a connection with these server-side channels would be this one."""
        new = set(channels)
        return new.issuperset(self.channels) and new.issubset(self.subscriptions)

    def take_pong(self) -> None:
        """Take the answer to a ping of the server.

        Raises:
            DisconnectBadRequest: the client owes none.
        """
        if self.owes_pong:
            self.owes_pong = False
        elif self.lost_pongs:
            self.lost_pongs -= 1
        else:
            raise DisconnectBadRequest

    def check_subscribe(self, channel: ChannelName) -> None:
        """Check that the client may subscribe to one more channel.

        Raises:
            LimitExceeded: it has `client_channel_limit` subscriptions.
            AlreadySubscribed: it is subscribed to this channel, or the server is subscribing it.
                The rules say what comes first.
        """
        subscribed = channel in self.subscriptions or channel in self.pending
        if subscribed and self.rules.duplicate_first:
            raise AlreadySubscribed
        if self.is_full():
            raise LimitExceeded
        if subscribed:
            raise AlreadySubscribed

    def grant(self, subscription: Subscription, request: SubscribeRequest | None) -> None:
        """Give a subscription what the channel forces, and what the client asks for and may have.

        Args:
            subscription: the subscription.
            request: what the client asks for; None for a server-side subscription.
        """
        options, user, insecure = subscription.options, self.user, self._config.client_insecure
        if not self.rules.asks:
            # such a client cannot ask for joins; an observer is to see what there is
            forced = channel_rules.receives_joins(options, user, asked=False)
            subscription.hears_joins = forced or not subscription.visible
            return
        request = request or SubscribeRequest()
        subscription.recoverable = channel_rules.is_recoverable(
            options, user, request.recoverable, insecure
        )
        subscription.positioned = subscription.recoverable or channel_rules.is_positioned(
            options, user, request.positioned, insecure
        )
        subscription.hears_joins = channel_rules.receives_joins(
            options, user, request.join_leave, insecure
        )

    def is_full(self) -> bool:
        """Return whether the client has `client_channel_limit` subscriptions."""
        limit = self._config.client_channel_limit
        return 0 < limit <= len(self.subscriptions) + len(self.pending)

    def is_busy(self, channel: ChannelName) -> bool:
        """Return whether the server must wait with a subscription to a channel."""
        subscription = self.subscriptions.get(channel)
        ending = subscription is not None and (subscription.ending or subscription.revoked)
        return ending or channel in self.pending or not self.answered

    def has_position(self, channel: ChannelName) -> bool:
        """Return whether the client must not miss a publication in a channel.

        The subscription may still be in the making.
        """
        if (pending := self.pending.get(channel)) is not None:
            return pending.subscription.positioned
        subscription = self.subscriptions.get(channel)
        return subscription is not None and subscription.positioned

    def ends_alone(self, subscription: Subscription) -> bool:
        """Return whether a subscription that cannot go on ends without the connection."""
        return self.rules.unsubscribes and not subscription.server_side

    def revoke(self, channel: ChannelName) -> None:
        """Note that the server unsubscribes the client, also from what is being made.

        Args:
            channel: the name of the channel; "" means all.
        """
        for name, pending in self.pending.items():
            if channel in ("", name):
                pending.unsubscribed = True
        for name in list(self.wanted):
            if channel in ("", name):
                del self.wanted[name]
        for name in self.subscriptions if not channel else (channel,):
            if (subscription := self.subscriptions.get(name)) is not None:
                subscription.revoked = True

    def is_subscribed(self, channel: ChannelName, subscription: Subscription) -> bool:
        """Return whether a subscription to a channel is in force, and not ending."""
        return self.subscriptions.get(channel) is subscription and not subscription.ending

    def close(self) -> None:
        """Enter CLOSED."""
        self.state = SessionState.CLOSED
        self.subscriptions.clear()
        self.wanted.clear()

    # time

    def deadline(self) -> float | None:
        """Return when `due` must be called next; None if nothing expires."""
        if self.state is SessionState.NEW:
            return self._stale_at
        if self.state is SessionState.CLOSED:
            return None
        config = self._config
        earliest: float | None = None
        if self.expiry_deadline is not None:
            # no window where the client has nothing to do
            delay = 0 if self.server_side_refresh else config.client_expired_close_delay
            earliest = self.expiry_deadline + delay
        for subscription in self.subscriptions.values():
            if subscription.expiry_deadline is not None:
                end = subscription.expiry_deadline + config.client_expired_sub_close_delay
                earliest = end if earliest is None else min(earliest, end)
            answer = subscription.site_answer
            if answer is not None and answer.until is not None:
                earliest = answer.until if earliest is None else min(earliest, answer.until)
        return earliest

    def is_refresh_due(self, now: float) -> bool:
        """Return whether the site must refresh the connection now."""
        deadline = self.expiry_deadline
        return self.server_side_refresh and deadline is not None and now >= deadline

    def due(self, now: float) -> None:
        """Check what has a deadline, but for what `expired` returns.

        Raises:
            DisconnectStale: the client did not connect in time.
            DisconnectExpired: it did not refresh its connection in time.
            DisconnectSubscriptionExpired: it did not refresh a subscription in time, and that ends
                the connection.
        """
        if self.state is SessionState.NEW:
            if self._stale_at is not None and now >= self._stale_at:
                raise DisconnectStale
            return
        if (
            self.expiry_deadline is not None
            and not self.server_side_refresh
            and now >= self.expiry_deadline + self._config.client_expired_close_delay
        ):
            raise DisconnectExpired
        for subscription in self.subscriptions.values():
            if self._has_expired(subscription, now) and not self.ends_alone(subscription):
                raise DisconnectSubscriptionExpired

    def expired(self, now: float) -> list[ChannelName]:
        """Return the channels whose subscription was not refreshed in time, and ends alone.

        Each is returned once.
        """
        channels = [
            channel
            for channel, subscription in self.subscriptions.items()
            if self._has_expired(subscription, now)
            and self.ends_alone(subscription)
            and not subscription.ending
        ]
        for channel in channels:
            self.subscriptions[channel].expiry_deadline = None
        return channels

    def _has_expired(self, subscription: Subscription, now: float) -> bool:
        deadline = subscription.expiry_deadline
        return (
            deadline is not None and now >= deadline + self._config.client_expired_sub_close_delay
        )
