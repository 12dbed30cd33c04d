"""Client: one connection. Sends replies and pushes, and closes.

    transport ─frame─► dispatch ─► commands ─► reply ─► outbox ─► transport
    hub ─────────────► push ──────────────────────────►┘

Anything may begin to close a client: its timer, the server API, a full outbox, the peer. It closes
once, in a task of its own. A command that is still running notices afterwards and undoes its work.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from itertools import islice
from typing import Any

from realtime import logs
from realtime.auth.keys import KeysUnavailable
from realtime.clients.renewals import Renewals
from realtime.clients.rules import rules_of
from realtime.clients.session import LOST_MOST, ClientSession, SessionState
from realtime.clients.subscriptions import ClientSubscriptions
from realtime.cluster.control import ServerSubscription
from realtime.cluster.survey import ClientReport
from realtime.errors import (
    Disconnect,
    DisconnectNoPong,
    EngineUnavailable,
    Error,
    LimitExceeded,
)
from realtime.node.hooks import NO_HANDSHAKE, Handshake
from realtime.node.limits.command_rates import Spent
from realtime.node.node import Node
from realtime.node.outbox import ClientOutbox, Transport
from realtime.node.pings import Slot
from realtime.node.subscriber import Tap
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    ChannelName,
    ClientID,
    ClientInfo,
    Command,
    Result,
    UnsubscribeReason,
    UserID,
)
from realtime.protocol.requests import channel_of

logger = logging.getLogger("realtime.client")

LARGE_REPLY = 64 * 1024
"""Bytes of a reply that takes a while to make, and that may be too large for any outbox."""

MAX_AGENT = 250
"""Characters of the name of a browser that operators see."""
SHOWN_OF_DIGEST = 8
"""Characters by which operators tell login sessions apart."""


def _drop(message: bytes) -> None:
    """Take a push of a client that is closing."""


@dataclass(slots=True, eq=False, repr=False)
class Client:
    """One connection."""

    node: Node
    transport: Transport
    codec: Codec
    """`speak` may replace it by one of the same format."""
    opening: InitVar[Handshake] = NO_HANDSHAKE
    _: KW_ONLY
    wants_pings: bool = True
    """False if the client does without the pings of its generation."""
    id: ClientID = field(default_factory=lambda: str(uuid.uuid4()))
    has_large_reply: bool = False
    """Whether a reply took long to make: others get a turn before the next command."""
    spent: Spent | None = None
    """What it took of its rates; None until its first command, and where no rate is counted."""
    library: str = ""
    """Name and version of the client library, as the client names them."""
    tap: Tap | None = None
    """Takes copies of the frames, while an operator follows the user."""
    _slot: Slot | None = None
    """While the server pings the client."""
    opened_at: float = field(init=False)
    session: ClientSession = field(init=False)
    outbox: ClientOutbox = field(init=False)
    push: Callable[[bytes], None] = field(init=False)
    """Queue an encoded push; drops it once closing has begun."""
    notify: Callable[[bytes], None] = field(init=False)
    """Queue an encoded push."""
    renewals: Renewals = field(init=False)
    subscriptions: ClientSubscriptions = field(init=False)

    def __post_init__(self, opening: Handshake) -> None:
        node, codec = self.node, self.codec
        self.opened_at = node.timers.now()
        self.session = ClientSession(node.config, self.opened_at, rules_of(codec), self.id, opening)
        self.outbox = ClientOutbox(
            self.transport,
            node.flusher,
            binary=codec.binary,
            separator=codec.separator,
            limit_bytes=node.config.client_queue_max_size,
            overflow=self.close,
        )
        self.push = self.notify = self.outbox.append
        self.renewals = Renewals(self, node, self.session)
        self.subscriptions = ClientSubscriptions(
            self, node, self.session, self.outbox, self.renewals
        )
        node.counters.opened += 1
        node.opened(self)

    def speak(self, codec: Codec) -> None:
        """Use another codec of the same format, before anything was sent."""
        self.codec = codec
        self.session.rules = rules_of(codec)
        self.outbox.separator = codec.separator

    # sending

    def reply(self, command: Command, result: Result) -> None:
        """Queue the reply of a command that succeeded.

        A reply that no outbox can hold becomes an error: no client could read it, however fast.
        """
        if self.session.closing:
            return
        message = self.codec.result(command, result)
        if len(message) > LARGE_REPLY:
            self.has_large_reply = True
            if not self.outbox.fits(message):
                logger.warning(
                    "A reply of %d bytes exceeds client_queue_max_size",
                    len(message),
                    extra=logs.of(self),
                )
                self.reply_error(command, LimitExceeded())
                return
        self.outbox.append(message)

    def reply_error(self, command: Command, error: Error) -> None:
        """Queue the reply of a command that failed, unless the command has no reply."""
        method = str(command.method or "unknown")
        self.node.counters.command_errors.add(method, str(error.code))
        user = self.session.user
        if user:
            channel = channel_of(command, self.codec)
            self.node.observer.refused(user, method, channel, error.code, error.message)
        if not self.session.closing and command.id:
            self.outbox.append(self.codec.error(command, error))

    # pings

    @property
    def is_pinged(self) -> bool:
        """Whether the server pings the client once it has connected."""
        return self.node.pings.is_on and self.codec.server_pings and self.wants_pings

    def start_pings(self) -> None:
        """Ping the client from now on."""
        if not self.session.closing:
            self._slot = self.node.pings.add(self)

    def ping(self) -> None:
        """Send a ping, unless the client owes a pong."""
        if not self.session.owes_pong:
            self.session.owes_pong = self.node.pings.expects_pongs and self.session.rules.answers
            self.push(self.codec.ping())

    def check_pong(self) -> None:
        """Close the connection if the client owes a pong, and has not sent it."""
        session, node = self.session, self.node
        # a pong that waits behind a slow command of the client is not overdue
        if not session.owes_pong or session.handling:
            return
        lost = session.lost_pongs
        was_cut_off = node.interruptions.were_within(node.config.ping_interval)
        if lost is None or lost >= LOST_MOST or not was_cut_off:
            self.close(DisconnectNoPong())
        else:  # another node may have failed to pass it on
            session.lost_pongs = lost + 1
            session.owes_pong = False

    # for node, hooks and signals

    @property
    def user(self) -> UserID:
        """User ID; "" before connect and for anonymous users."""
        return self.session.user

    @property
    def auth_session(self) -> str:
        """The auth session the connection belongs to; "" for none."""
        return self.session.auth_session

    @property
    def handshake(self) -> Handshake:
        """The request that opened the connection."""
        return self.session.handshake

    @property
    def num_channels(self) -> int:
        """The number of its subscriptions, with those that are being made."""
        return len(self.session.subscriptions) + len(self.session.pending)

    def emit(self, kind: str, **details: Any) -> None:
        """Emit a signal about this client, unless it is an observer."""
        if self.session.visible:
            self.node.events.emit(kind, user=self.user, client=self.id, **details)

    def report(self, max_channels: int) -> ClientReport:
        """Describe the connection for operators, with `max_channels` of its channels at most."""
        session, now = self.session, self.node.timers.now()
        return ClientReport(
            client=self.id,
            transport=self.transport.name,
            seconds=now - self.opened_at,
            num_channels=len(session.subscriptions),
            channels=list(islice(session.subscriptions, max_channels)),
            info=None if session.conn_info is None else session.conn_info.json.decode(),
            address=self.handshake.address,
            agent=self.handshake.headers.get("user-agent", "")[:MAX_AGENT],
            library=self.library,
            protocol=f"{self.codec.generation} {self.codec.format}",
            auth_session=session.auth_session[:SHOWN_OF_DIGEST],
            quiet=None if self.spent is None else self.node.loop.time() - self.spent.heard_at,
        )

    def mirror(self, tap: Tap | None) -> None:
        """Give a copy of each frame to a tap from now on; None ends it."""
        self.tap = tap
        self.outbox.copy(None if tap is None else tap.sent)

    def info_in(self, channel: ChannelName) -> ClientInfo:
        """Return the client info that others in the channel see."""
        return self.session.info_with(self.session.subscriptions.get(channel))

    def log_refused(self, what: str, why: Exception) -> None:
        """Log that the service refused something the client sent. `why` must hold no secret."""
        logger.info("Client %s: %s refused: %s", self.id, what, why, extra=logs.of(self))

    def log_failed(self, what: str, error: Exception) -> None:
        """Log why a client could not be served; not for each one while the engine is away.

        Args:
            what: the service did for it.
            error: of the engine, a hook, or a defect of this service.
        """
        about = logs.of(self)
        if isinstance(error, KeysUnavailable):  # why is logged, and any token can ask for a key
            logger.info("Client %s: %s failed: %s", self.id, what, error, extra=about)
        elif not isinstance(error, EngineUnavailable):
            logger.error("%s failed: %s", what.capitalize(), error, exc_info=error, extra=about)
        elif self.node.outage.begins():
            text = "%s failed, as others may for now: %s"
            logger.error(text, what.capitalize(), error, extra=about)

    # see `node.subscriber.Subscriber`

    async def subscribe(self, wanted: ServerSubscription) -> None:
        await self.subscriptions.subscribe(wanted)

    async def unsubscribe(
        self, channel: ChannelName, why: UnsubscribeReason = SERVER_UNSUBSCRIBE
    ) -> None:
        await self.subscriptions.unsubscribe(channel, why)

    def has_position(self, channel: ChannelName) -> bool:
        return self.session.has_position(channel)

    def lose_position(self, channel: ChannelName) -> None:
        self.subscriptions.lose_position(channel)

    def ask_site(self, channel: ChannelName) -> None:
        self.renewals.ask_all(channel)

    def refresh_until(self, expires_at: float | None, info: Payload | None) -> None:
        self.renewals.refresh_until(expires_at, info)

    async def refresh(self) -> None:
        await self.renewals.refresh()

    # closing

    def is_closing(self) -> bool:
        """Return whether closing has begun: nothing reaches the client any more."""
        return self.session.closing

    def close(self, disconnect: Disconnect | None, *, code: int = 0) -> None:
        """Begin to close the connection, once; returns at once.

        Args:
            disconnect: the code and reason that the client gets; None if the peer is gone already.
            code: what the end is counted as without a disconnect: the code of the error that
                refused the client; 0 if the client went.
        """
        if self.session.closing:
            return
        self.session.closing = True
        self.push = _drop  # feeds still have the client until it has left them
        self.node.user_limits.closing(self)
        self.node.flood_debts.closing(self)
        self.renewals.close()
        if self._slot is not None:
            self.node.pings.remove(self, self._slot)
            self._slot = None
        reason = ""
        if disconnect is not None:
            code, reason = self.codec.closing(disconnect)
            logger.info(
                "Disconnecting client %s of user %r at %s: %d: %s",
                self.id,
                self.session.user,
                self.handshake.address or "an unknown address",
                code,
                disconnect.reason if reason == disconnect.advice else reason,
                extra=logs.of(self, code=code, duration=self.node.timers.now() - self.opened_at),
            )
        if self.tap is not None:
            self.tap.closed(code, reason)
        if self.session.user:
            self.node.observer.closed(self.session.user, code, getattr(disconnect, "reason", ""))
        self.node.counters.disconnects.add(str(code))
        self.node.spawn(self._close(disconnect))

    async def _close(self, disconnect: Disconnect | None) -> None:
        """Leave every channel, flush the outbox, close the transport."""
        away = [asyncio.ensure_future(leaving) for leaving in self.subscriptions.leave_all()]
        try:
            # where the engine answers at once, others know before the client does; where it
            # hangs, the client does not wait for it
            await asyncio.sleep(0)
            if disconnect is not None:
                if self.transport.ends_with_push and (push := self.codec.disconnect(disconnect)):
                    self.outbox.append_last(push)
                self.outbox.flush()
                await self.transport.close(*self.codec.closing(disconnect))
            # publications still come while the client leaves, and no one is there to read them
            self.outbox.close()
            if away:
                await asyncio.wait(away)
        finally:
            for leaving in away:
                leaving.cancel()
            self.subscriptions.close()
            if self.session.state is SessionState.CONNECTED:
                self.emit("disconnected", code=0 if disconnect is None else disconnect.code)
            self.session.close()
            self.node.hub.remove(self)
            self.node.closed(self)
            self.outbox.close()
