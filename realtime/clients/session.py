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
- where clients answer pings, a pong is legal only while the client owes one;
- a channel is in `pending` or in `subscriptions`, never in both;
- what the server wants to subscribe the client to is in `wanted` while the channel is busy.

Times are seconds on the monotonic clock. `deadline()` says when `due()` must be called next, so a
client needs one timer, and none while nothing expires.

What differs between generations is in `rules`.

docs/protocol.md, 2.6, 3.4 and 3.12.
"""

from __future__ import annotations

from enum import Enum, auto

from realtime.clients.rules import FIRST, Rules
from realtime.cluster.control import ServerSubscription
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    AlreadySubscribed,
    DisconnectBadRequest,
    DisconnectExpired,
    DisconnectStale,
    DisconnectSubscriptionExpired,
    LimitExceeded,
)
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, Command, Method, UserID


class State(Enum):
    """The states of a session. See the module's docstring."""

    NEW = auto()
    CONNECTED = auto()
    CLOSED = auto()


# looked up for every command; as attributes of their classes they cost 0.15 µs each (Python 3.11)
_NEW = State.NEW
_CONNECT = Method.CONNECT


class SiteAnswer:
    """What the site said about a subscription: that the client may stay until it is asked again."""

    __slots__ = ("failed", "questions", "until")

    def __init__(self, until: float | None) -> None:
        self.until = until
        """Monotonic seconds; None: the site is not asked by itself, or is being asked."""
        self.questions = 0
        """How often it was asked again: an answer to an earlier question than the last is void."""
        self.failed = False
        """Whether it could not answer the last question."""


class Subscription:
    """One client in one channel."""

    __slots__ = (
        "ending",
        "expiry_deadline",
        "hears_joins",
        "info",
        "options",
        "positioned",
        "recoverable",
        "revoked",
        "server_side",
        "site_answer",
        "visible",
    )

    def __init__(
        self,
        options: ChannelOptions,
        *,
        server_side: bool = False,
        visible: bool = True,
        info: Payload | None = None,
        expiry_deadline: float | None = None,
    ) -> None:
        self.use(options)
        self.server_side = server_side
        self.visible = visible
        """False for an observer's: neither counted nor present."""
        self.info = info
        """The channel info; None for none."""
        self.expiry_deadline = expiry_deadline
        """Monotonic seconds; None: the subscription does not expire."""
        self.site_answer: SiteAnswer | None = None
        """None: the site was not asked."""
        self.ending = False
        """Whether the client is leaving the channel now."""
        self.revoked = False
        """Whether the server is about to end it."""
        self.hears_joins = True
        """Whether the client gets joins and leaves, in a channel that has them."""

    def use(self, options: ChannelOptions) -> None:
        """Take these options: those of the channel, or what a token makes of them."""
        self.options = options
        self.positioned = self.recoverable = options.history_recover and options.keeps_history
        """Whether the client learns that it missed a publication, and whether it may recover."""


class Pending:
    """A subscription that is being made."""

    __slots__ = ("subscription", "unsubscribed")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.unsubscribed = False
        """Whether the server has unsubscribed the client from the channel meanwhile."""


class Session:
    """The state of one client. See the module's docstring."""

    __slots__ = (
        "_config",
        "_stale_at",
        "answered",
        "auth_session",
        "channels",
        "conn_info",
        "expiry_deadline",
        "handling",
        "meta",
        "owes_pong",
        "pending",
        "rules",
        "server_side_refresh",
        "state",
        "subscriptions",
        "user",
        "visible",
        "wanted",
    )

    def __init__(self, config: Config, now: float, rules: Rules = FIRST) -> None:
        self._config = config
        self.rules = rules
        delay = config.client_stale_close_delay
        self._stale_at = now + delay if delay > 0 else None
        self.state = State.NEW
        self.user: UserID = ""
        self.conn_info: Payload | None = None
        self.meta: Payload | None = None
        """What hooks and proxies learn of the connection, and no client."""
        self.expiry_deadline: float | None = None
        """Monotonic seconds; None: the connection does not expire."""
        self.server_side_refresh = False
        """Whether the site refreshes the connection when it expires; otherwise the client does."""
        self.auth_session = ""
        """The auth session the connection belongs to; "" for none."""
        self.visible = True
        """False for an observer, who receives its server-side channels and does nothing else."""
        self.owes_pong = False
        """Whether the client has a ping to answer."""
        self.handling = False
        """Whether a frame of the client is being handled. Others, and pongs, wait behind it."""
        self.channels: tuple[ChannelName, ...] = ()
        """The server-side channels that came with the user, from a token or a hook."""
        self.subscriptions: dict[ChannelName, Subscription] = {}
        self.pending: dict[ChannelName, Pending] = {}
        self.wanted: dict[ChannelName, ServerSubscription] = {}
        """What the server subscribes the client to as soon as the channel is not busy."""
        self.answered = False
        """Whether the client has the reply to connect, before which it gets no push."""

    # commands

    def check(self, command: Command) -> None:
        """Check that a command is legal in this state.

        Raises:
            DisconnectBadRequest: connect is the first command, and only the first.
        """
        connecting = command.method is _CONNECT
        if connecting is (self.state is not _NEW):
            raise DisconnectBadRequest

    def connected(
        self,
        user: UserID,
        info: Payload | None,
        expiry_deadline: float | None,
        *,
        server_side_refresh: bool = False,
        auth_session: str = "",
        visible: bool = True,
        channels: tuple[ChannelName, ...] = (),
    ) -> None:
        """Enter CONNECTED: the connect command succeeded.

        Args:
            user: user ID; "" for an anonymous client.
            info: connection info, if there is any.
            expiry_deadline: monotonic seconds; None: the connection does not expire.
            server_side_refresh: whether the site refreshes the connection; otherwise the client.
            auth_session: the auth session that the connection belongs to; "" for none.
            visible: False for an observer.
            channels: the server-side channels that came with the user.
        """
        self.channels = channels
        self.server_side_refresh = server_side_refresh
        self.auth_session = auth_session
        self.visible = visible
        self.state = State.CONNECTED
        self._stale_at = None
        self.user = user
        self.conn_info = info
        self.expiry_deadline = expiry_deadline

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

    def ponged(self) -> None:
        """Take a pong.

        Raises:
            DisconnectBadRequest: the client does not owe one.
        """
        if not self.owes_pong:
            raise DisconnectBadRequest
        self.owes_pong = False

    @property
    def is_silent(self) -> bool:
        """Whether the client owes a pong, and none can be waiting behind a slow command."""
        return self.owes_pong and not self.handling

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
        self.state = State.CLOSED
        self.subscriptions.clear()
        self.wanted.clear()

    # time

    def deadline(self) -> float | None:
        """Return when `due` must be called next; None if nothing expires."""
        if self.state is State.NEW:
            return self._stale_at
        if self.state is State.CLOSED:
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
        if self.state is State.NEW:
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
