"""Client: one connection. Owns a session and one timer; sends replies and pushes.

    transport ─frame─► dispatch ─► commands ─► reply ─► outbox ─► transport
    hub ─────────────► push ──────────────────────────►┘

Closing may begin anywhere (a timer, the server API, a slow outbox) and then runs beside the
commands, once; a command that is under way notices afterwards and undoes what it did.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from itertools import islice
from typing import Any

from realtime.clients.session import Session, State, Subscription
from realtime.cluster.survey import ClientReport
from realtime.errors import (
    Disconnect,
    DisconnectExpired,
    DisconnectSlow,
    EngineUnavailable,
    Error,
    InternalError,
)
from realtime.node.hooks import NO_HANDSHAKE, Caller, Handshake, Refresh
from realtime.node.node import Node
from realtime.node.outbox import Outbox, Transport
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Command,
    Result,
    UserID,
)

logger = logging.getLogger("realtime.client")


class Client:
    """One connection."""

    __slots__ = (
        "_closing",
        "_timer",
        "codec",
        "handshake",
        "id",
        "node",
        "opened_at",
        "outbox",
        "push",
        "session",
        "transport",
    )

    def __init__(
        self, node: Node, transport: Transport, codec: Codec, handshake: Handshake = NO_HANDSHAKE
    ) -> None:
        self.node = node
        self.transport = transport
        self.codec = codec
        self.handshake = handshake
        self.id: ClientID = str(uuid.uuid4())
        self.opened_at = node.timers.now()
        self.session = Session(node.config, self.opened_at)
        self._closing = False
        self.outbox = Outbox(
            transport,
            node.flusher,
            binary=codec.binary,
            limit_bytes=node.config.client_queue_max_size,
            overflow=self._slow,
        )
        self.push = self.outbox.append
        """Queue an encoded push."""
        self._timer = node.timers.timer(self._due)
        self.set_timer()
        node.opened(self)

    # sending

    def reply(self, command: Command, result: Result) -> None:
        """Answer a command."""
        if not self._closing:
            self.outbox.append(self.codec.result(command, result))

    def reply_error(self, command: Command, error: Error) -> None:
        """Answer a command that failed; one that wants no answer gets none."""
        if not self._closing and command.id:
            self.outbox.append(self.codec.error(command, error))

    # what others see and do

    @property
    def user(self) -> UserID:
        """User ID; "" before connect and for anonymous users."""
        return self.session.user

    def caller(self) -> Caller:
        """Who asks, for hooks."""
        return Caller(self.id, self.session.user, self.handshake)

    @property
    def auth_session(self) -> str:
        """The login session the connection belongs to, if there is one."""
        return self.session.auth_session

    def emit(self, kind: str, **details: Any) -> None:
        """Have receivers of signals hear of something that happened to this client."""
        if self.session.visible:
            self.node.events.emit(kind, user=self.user, client=self.id, **details)

    def report(self, max_channels: int) -> ClientReport:
        """What operators want to know of the connection."""
        session = self.session
        info = session.conn_info
        return ClientReport(
            client=self.id,
            transport=self.transport.name,
            seconds=self.node.timers.now() - self.opened_at,
            num_channels=len(session.subscriptions),
            channels=list(islice(session.subscriptions, max_channels)),
            info=None if info is None else info.json.decode(),
        )

    def info_in(self, channel: ChannelName) -> ClientInfo:
        """Client info as others in the channel see it."""
        return self.info_with(self.session.subscriptions.get(channel))

    def info_with(self, subscription: Subscription | None) -> ClientInfo:
        """Client info with the channel info of a subscription, if there is one."""
        return ClientInfo(
            self.session.user,
            self.id,
            self.session.conn_info,
            None if subscription is None else subscription.info,
        )

    def log_refused(self, what: str, why: Exception) -> None:
        """Log that something the client sent was not accepted. `why` must hold no secret."""
        logger.info("Client %s: %s refused: %s", self.id, what, why)

    async def unsubscribe(self, channel: ChannelName) -> None:
        """Unsubscribe on the server's behalf and push "unsub"; "" means from every channel.

        The push is sent even when the client is not subscribed to the channel.
        """
        session = self.session
        names = [channel] if channel else [*session.subscriptions, *session.pending]
        for name in names:
            if (pending := session.pending.get(name)) is not None:
                pending.unsubscribed = True  # as soon as it is made
                continue
            await self._leave_anyway(name)
            if not self._closing:
                self.push(self.codec.unsub(name))

    async def leave(self, channel: ChannelName) -> None:
        """End a subscription; nothing happens when there is none, or when it is ending."""
        subscription = self.session.subscriptions.get(channel)
        if subscription is None or subscription.ending:
            return
        # It stays in the session until it has ended, so that it cannot be made anew meanwhile.
        subscription.ending = True
        try:
            await self.node.subscriptions.remove(
                channel,
                self,
                subscription.options,
                leave=self.info_with(subscription),
                visible=subscription.visible,
            )
        finally:
            self._left(channel)
        self.set_timer()

    def _left(self, channel: ChannelName) -> None:
        """Forget a subscription, once."""
        if self.session.subscriptions.pop(channel, None) is not None:
            self.emit("unsubscribed", channel=channel)

    # time

    def set_timer(self) -> None:
        """Look at the session's deadline again; call after anything that may move it."""
        self._timer.set(self.session.deadline())

    def expiry_deadline(self, expires_at: float | None) -> float | None:
        """Unix seconds as the session counts them, monotonic seconds."""
        if expires_at is None:
            return None
        return self.node.timers.now() + expires_at - time.time()

    def _due(self) -> None:
        now = self.node.timers.now()
        try:
            self.session.due(now)
        except Disconnect as disconnect:
            self.close(disconnect)
            return
        if self.session.is_refresh_due(now):
            self.session.expiry_deadline = None
            self.node.spawn(self.refresh())
        self.set_timer()

    def extend(self, expiry_deadline: float | None, info: Payload | None) -> None:
        """The connection may go on; without info or expiry the old ones stay in force."""
        self.session.refreshed(info, expiry_deadline)
        self.set_timer()

    async def refresh(self) -> None:
        """Ask the site whether the connection may go on."""
        await renew(self)

    # closing

    def is_closing(self) -> bool:
        """Whether closing has begun: nothing reaches the client any more."""
        return self._closing

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close, once; None when the peer is gone already. Returns at once."""
        if self._closing:
            return
        self._closing = True
        self._timer.cancel()
        if disconnect is not None:
            logger.info("Client %s is disconnected: %s", self.id, disconnect)
        self.node.spawn(self._close(disconnect))

    def _slow(self) -> None:
        self.close(DisconnectSlow())

    async def _close(self, disconnect: Disconnect | None) -> None:
        """Leave every channel, let what is queued go out, close the transport."""
        leaving = asyncio.create_task(self._leave_all())
        try:
            # where the engine answers at once, others know before the client does; where it
            # hangs, the client does not wait for it
            await asyncio.sleep(0)
            if disconnect is not None:
                self.outbox.flush()
                await self.transport.close(disconnect)
            # while the engine is told, what is published still comes, and is for nobody
            self.outbox.close()
            await asyncio.wait([leaving])
        finally:
            leaving.cancel()
            for channel in list(self.session.subscriptions):
                self._left(channel)  # the engine hangs, and this process is about to end
            if self.session.state is State.CONNECTED:
                self.emit("disconnected", code=0 if disconnect is None else disconnect.code)
            self.session.close()
            self.node.hub.remove(self)
            self.node.closed(self)
            self.outbox.close()

    async def _leave_all(self) -> None:
        for channel in list(self.session.subscriptions):
            await self._leave_anyway(channel)

    async def _leave_anyway(self, channel: ChannelName) -> None:
        """End a subscription here, also when the engine could not be told."""
        try:
            await self.leave(channel)
        except Exception as error:  # whatever it is: the others have to be ended, too
            # an engine that is away fails every one: a line each is enough
            logger.error(
                "A subscription could not be ended cleanly: %s",
                error,
                exc_info=not isinstance(error, EngineUnavailable),
            )


RENEWAL_RETRY = 60.0
"""Seconds until the site is asked again whether a connection may go on, when it cannot say."""


async def renew(client: Client) -> None:
    """Ask the site whether the connection may go on; close it if not. Never raises."""
    try:
        renewal = await _ask(client)
    except Disconnect as disconnect:
        # its traceback holds frames that hold the client
        client.close(disconnect.with_traceback(None))
        return
    except Exception as error:  # whatever it is, the connection must not be left without an expiry
        logger.warning(
            "The site cannot say whether client %s may stay; asking later",
            client.id,
            exc_info=not isinstance(error, InternalError),  # which was logged where it happened
        )
        client.extend(client.node.timers.now() + RENEWAL_RETRY, None)
        return
    if renewal is None or renewal.expires_at <= time.time():
        client.close(DisconnectExpired())
        return
    client.extend(client.expiry_deadline(renewal.expires_at), renewal.info)


async def _ask(client: Client) -> Refresh | None:
    try:
        return await client.node.hooks.refresh(client.caller(), client.session.auth_session)
    except InternalError:
        raise
    except Error:
        return None
