"""Node: this process among others. Joins hub and engine; one per event loop.

Order and completeness of recoverable channels are kept here, once per channel and not once
per client: publications reach a feed in offset order, and a feed's position is the
position of all its live subscribers. A publication that does not follow the one before
means that something was lost on the way; the subscribers are disconnected as
"insufficient state" and recover from history when they come back. The position is also
compared with the engine's from time to time, so that a loss at the end of a stream is
noticed without a further publication.

Each feed has one timer: it renews the presence of its local subscribers and checks the
position.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Coroutine
from itertools import count
from typing import Any

import realtime
from realtime.engine.base import Engine, NodeInfo
from realtime.engine.memory import MemoryEngine
from realtime.errors import (
    Disconnect,
    DisconnectForced,
    DisconnectInsufficientState,
    DisconnectShutdown,
)
from realtime.hub import Feed, Hub, Subscriber
from realtime.options import ChannelOptions, Config
from realtime.outbox import Flusher
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.json import JSONCodec
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Publication,
    StreamPosition,
    UserID,
)
from realtime.protocol.protobuf import ProtobufCodec
from realtime.timers import Timers
from realtime.tokens import Verifier

logger = logging.getLogger("realtime.node")

SHUTDOWN_TIMEOUT = 5.0
"""Seconds `stop` waits for clients to be closed."""

MISMATCHES_ALLOWED = 1
"""Position checks that may fail in a row: a publication may be on its way."""


class Node:
    """This process among others. Belongs to the event loop it was made on."""

    def __init__(self, config: Config, engine: Engine | None = None) -> None:
        """`engine` defaults to the memory engine.

        Raises:
            InvalidKey: a token key in the options is not one.
        """
        self.config = config
        self.loop = asyncio.get_running_loop()
        self.timers = Timers(self.loop)
        self.engine: Engine = engine or MemoryEngine(
            self.timers, meta_lifetime=config.memory_history_meta_ttl
        )
        self.hub = Hub()
        self.flusher = Flusher(self.loop)
        self.verifier = Verifier(config)
        self.codecs: dict[str, Codec] = {
            codec.name: codec
            for codec in (JSONCodec(config.v3_use_offset), ProtobufCodec(config.v3_use_offset))
        }
        self.uid = str(uuid.uuid4())
        self.stopping = False
        self._started_at = self.timers.now()
        self._publications = count(1)
        self._uid_prefix = self.uid.replace("-", "")[:20]
        self._tasks: set[asyncio.Task[Any]] = set()
        self._connections: dict[Subscriber, None] = {}

    # life

    async def start(self) -> None:
        """Begin to receive what other nodes publish."""
        await self.engine.start(self)

    def begin_stop(self) -> None:
        """Begin to tell every client to come back elsewhere. Returns at once."""
        self.stopping = True
        for client in list(self._connections):
            client.close(DisconnectShutdown())

    async def stop(self) -> None:
        """Tell every client to come back elsewhere, and release everything. Bounded in time."""
        self.begin_stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SHUTDOWN_TIMEOUT)
        for task in self._tasks:
            task.cancel()
        await self.engine.stop()
        self.timers.close()
        self.verifier.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the caller; an exception is logged, `stop` waits for it."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Work beside a client failed", exc_info=error)

    def opened(self, client: Subscriber) -> None:
        """A transport was opened. `stop` will close it."""
        self._connections[client] = None
        if self.stopping:
            client.close(DisconnectShutdown())

    def closed(self, client: Subscriber) -> None:
        """A transport is closed."""
        self._connections.pop(client, None)

    # what clients and the server API ask for: every process is reached

    async def publish(
        self,
        channel: ChannelName,
        data: Payload,
        options: ChannelOptions,
        info: ClientInfo | None = None,
    ) -> None:
        """Publish to a channel's subscribers in every process. `info`: of a publishing client."""
        uid = f"{self._uid_prefix}{next(self._publications):x}" if options.keeps_history else ""
        await self.engine.publish(channel, Publication(data, info, 0, uid), options)

    async def unsubscribe_user(self, user: UserID, channel: ChannelName) -> None:
        """Unsubscribe a user's connections from a channel; "" means from all their channels."""
        connections = self.hub.connections(user)
        await asyncio.gather(*(client.unsubscribe(channel) for client in connections))

    async def disconnect_user(
        self, user: UserID, disconnect: Disconnect | None = None, *, keep: Subscriber | None = None
    ) -> None:
        """Close a user's connections in every process, but for `keep`."""
        for client in self.hub.connections(user):
            if client is not keep:
                client.close(disconnect or DisconnectForced())

    def describe(self) -> NodeInfo:
        """What this node says of itself."""
        return NodeInfo(
            uid=self.uid,
            name=self.config.name or f"{socket.gethostname()}_{os.getpid()}",
            version=realtime.__version__,
            num_clients=len(self.hub.clients),
            num_users=len(self.hub.users),
            num_channels=len(self.hub.feeds),
            uptime=int(self.timers.now() - self._started_at),
        )

    async def nodes(self) -> list[NodeInfo]:
        """Every node that is alive, this one first."""
        return [self.describe(), *await self.engine.other_nodes()]

    # subscriptions of this process

    async def add_subscription(
        self, channel: ChannelName, client: Subscriber, options: ChannelOptions, info: ClientInfo
    ) -> None:
        """Make a client a subscriber here, held until `release`, and record its presence."""
        first = self.hub.add_subscription(channel, client, options)
        feed = self.hub.feeds[channel]
        if first:
            await self._open(feed)
        elif feed.ready is not None:
            await asyncio.shield(feed.ready)
        if options.presence:
            await self.engine.add_presence(
                channel, [info], self.config.client_presence_expire_interval
            )

    async def _open(self, feed: Feed) -> None:
        """Have the engine hand over what is published in a channel; who comes later waits too."""
        feed.ready = self.loop.create_future()
        try:
            await self.engine.subscribe(feed.channel)
        except BaseException:
            feed.ready.set_exception(RuntimeError("the engine could not subscribe"))
            feed.ready.exception()  # nobody may be waiting
            raise
        feed.ready.set_result(None)
        feed.ready = None
        self._watch(feed)

    def held(self, channel: ChannelName, client: Subscriber) -> list[Publication]:
        """The publications kept back for a held subscriber, in order of arrival."""
        return self.hub.feeds[channel].held(client)

    def release(
        self, channel: ChannelName, client: Subscriber, position: StreamPosition | None
    ) -> None:
        """Serve a held subscriber from now on.

        In a recoverable channel it has everything up to `position`, what was kept back for
        it included. Call it in the same turn of the loop in which `held` was read.
        """
        feed = self.hub.feeds[channel]
        if position is not None and feed.position is None:
            feed.position = position
            feed.checked_at = self.timers.now()
        feed.release(client)

    async def remove_subscription(
        self,
        channel: ChannelName,
        client: Subscriber,
        options: ChannelOptions,
        *,
        leave: ClientInfo | None,
    ) -> None:
        """Undo `add_subscription`; `leave` is said to the channel, if it has join_leave.

        The leaver is still a subscriber when its leave is published.
        """
        if channel in self.hub.feeds:
            self.hub.feeds[channel].leaving.add(client)
        try:
            if options.presence:
                await self.engine.remove_presence(channel, client.id)
            if leave is not None and options.join_leave:
                await self.engine.publish_leave(channel, leave)
        finally:
            feed = self.hub.remove_subscription(channel, client)
            if feed is not None:
                if feed.timer is not None:
                    feed.timer.cancel()
                await self.engine.unsubscribe(channel)

    async def join(self, channel: ChannelName, info: ClientInfo, options: ChannelOptions) -> None:
        """Say in the channel that a client subscribed. The subscription holds if this fails."""
        if not options.join_leave:
            return
        try:
            await self.engine.publish_join(channel, info)
        except Exception:
            logger.exception("A join could not be published")

    # what the engine hands over: this process only

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is None:
            return
        if position is not None and feed.position is not None:
            if position.epoch == feed.position.epoch:
                if position.offset <= feed.position.offset:
                    return
                in_order = position.offset == feed.position.offset + 1
            else:
                in_order = False
            if not in_order:
                self._insufficient_state(feed)
                return
            feed.position = position
            feed.checked_at = self.timers.now()
            feed.mismatches = 0
        feed.publish(publication)

    def on_join(self, channel: ChannelName, info: ClientInfo) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is not None:
            feed.broadcast(lambda codec: codec.join(channel, info))

    def on_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is not None:
            feed.broadcast(lambda codec: codec.leave(channel, info))

    def _insufficient_state(self, feed: Feed) -> None:
        feed.position = None
        for client in feed.cut_off():
            client.close(DisconnectInsufficientState())

    # presence and positions, a timer per feed

    def _watch(self, feed: Feed) -> None:
        options = feed.options
        if not (options.presence or options.history_recover):
            return
        feed.timer = self.timers.timer(lambda: self.spawn(self._maintain(feed)))
        feed.timer.set(self.timers.now() + self.config.client_presence_ping_interval)

    async def _maintain(self, feed: Feed) -> None:
        try:
            if feed.options.presence:
                await self._renew_presence(feed)
            if feed.options.history_recover:
                await self._check_position(feed)
        finally:
            if feed.timer is not None:
                feed.timer.set(self.timers.now() + self.config.client_presence_ping_interval)

    async def _renew_presence(self, feed: Feed) -> None:
        clients = [client for client in feed.live() if client not in feed.leaving]
        await self.engine.add_presence(
            feed.channel,
            [client.info_in(feed.channel) for client in clients],
            self.config.client_presence_expire_interval,
        )
        staying = set(feed.subscribers()) - feed.leaving
        for client in clients:
            if client not in staying:  # it left meanwhile, and must not be present again
                await self.engine.remove_presence(feed.channel, client.id)

    async def _check_position(self, feed: Feed) -> None:
        delay = self.config.client_channel_position_check_delay
        if delay <= 0 or self.timers.now() - feed.checked_at < delay:
            return
        position = await self.engine.position(feed.channel)
        if feed.position is None:
            return
        if position == feed.position:
            feed.mismatches = 0
            feed.checked_at = self.timers.now()
            return
        feed.mismatches += 1
        if feed.mismatches > MISMATCHES_ALLOWED:
            self._insufficient_state(feed)
