"""Node: this process among others. Joins hub and engine; one per event loop.

What the engine receives it hands to the feed of the channel; in recoverable channels by way of
the feed's `StreamFollower`, so order and completeness are kept once per channel and not once per
client. What the other nodes say it obeys. Its life is that of the process: `start`, `stop`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

import msgspec

from realtime.auth.verifier import Verifier
from realtime.channel_rules import CONTROL
from realtime.cluster.control import Control, DisconnectUser, EndLogins, Unsubscribe
from realtime.cluster.direct import Post
from realtime.cluster.member import Member
from realtime.cluster.peers import Peers
from realtime.cluster.survey import Answer, Question
from realtime.config.options import Config
from realtime.engine.base import Affects, Broker, Engine, NodeInfo, NodeStatus
from realtime.engine.memory import MemoryEngine
from realtime.errors import (
    DISCONNECTS,
    Disconnect,
    DisconnectForced,
    DisconnectShutdown,
    EngineUnavailable,
)
from realtime.node import maintenance
from realtime.node.feed import Subscriber
from realtime.node.hooks import Events, Hooks, NoEvents, NoHooks
from realtime.node.hub import Hub
from realtime.node.maintenance import Maintenance
from realtime.node.outbox import Flusher
from realtime.node.subscriptions import Subscriptions
from realtime.node.survey_answers import SurveyAnswers
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)
from realtime.protocol.negotiation import Codecs
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

SHUTDOWN_TIMEOUT = 6.0
"""Seconds from `begin_stop` to the end of `stop` at most, whatever hangs."""
FAREWELL_TIMEOUT = 1.0
"""Seconds that are left for the engine, when clients took too long or `stop` came late."""

CLOSE_AT_ONCE = 20
CLOSE_INTERVAL = 0.05
CLOSE_SPREAD = 2.0
"""A node that stops closes so many clients at once, and the others within so many seconds, in
slices: those that come back to another node come back one after another."""


class Connection(Protocol):
    """What a node has to close before it ends."""

    id: ClientID
    """"" where it is of a client of another node."""

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close it; returns at once."""
        ...


class Node(Member):
    """This process among others. Belongs to the event loop it was made on."""

    broker: Broker

    def __init__(
        self,
        config: Config,
        engine: Engine | None = None,
        hooks: Hooks | None = None,
        events: Events | None = None,
        observer_keys: Sequence[bytes] = (),
        *,
        version: str = "",
    ) -> None:
        """`engine` defaults to the memory engine, and without `hooks` the options decide.

        `observer_keys`: verify tokens of observers; without any there are no observers.
        `version`: of this package, as clients and other nodes see it.

        Raises:
            InvalidKey: a token key in the options is not one.
        """
        self.loop = asyncio.get_running_loop()
        self.version = version
        self.timers = Timers(self.loop)
        self._engine: Engine = engine or MemoryEngine(
            self.timers, meta_lifetime=config.memory_history_meta_ttl
        )
        super().__init__(config, self._engine)
        self.hooks: Hooks = hooks or NoHooks()
        self.events: Events = events or NoEvents()
        self.pipelines_publishes = self.cluster is not None
        self.hub = Hub(self.tally)
        self.flusher = Flusher(self.loop)
        self.verifier = Verifier(config, observer_keys)
        self.codecs = Codecs(config.v3_use_offset)
        self._started_at = self.timers.now()
        self._stopped_by = math.inf
        self._tasks: set[asyncio.Task[Any]] = set()
        self._connections: dict[Connection, None] = {}
        self.post = Post(self.broker, self.uid, self.spawn)
        self._survey_answers = SurveyAnswers(self.hub, uid=self.uid, name=self.describe().name)
        self._peers: Peers | None = None
        if self.cluster is not None:
            self._peers = Peers(
                self.uid,
                self.broker,
                self.cluster,
                self.timers,
                self.spawn,
                describe=self.status,
                on_control=self._on_command,
                answer=self._answer,
            )
        self._maintenance = Maintenance(config, self.presence, self.timers, self.spawn)
        self.subscriptions = Subscriptions(
            config, self.broker, self.presence, self.hub, self._maintenance
        )
        self._newest: set[ClientID] = set()
        """Clients that are about to close the other connections of their users."""

    # life

    async def start(self) -> None:
        """Begin to receive what other nodes publish.

        Raises:
            EngineUnavailable: Redis did not answer, or refused.
        """
        await self._engine.start(self)
        if self._peers is None:
            return
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self._engine.stop)
            await self._peers.start()
            undo.pop_all()

    def begin_stop(self) -> None:
        """Begin to tell every client to come back elsewhere. Returns at once."""
        if self.stopping:
            return
        self.stopping = True
        self._stopped_by = self.loop.time() + SHUTDOWN_TIMEOUT
        clients = list(self._connections)
        slices = int(CLOSE_SPREAD / CLOSE_INTERVAL)
        self._close_next(clients, max(CLOSE_AT_ONCE, -(-len(clients) // slices)))

    def _close_next(self, clients: list[Connection], number: int) -> None:
        for client in clients[:number]:
            client.close(DisconnectShutdown())
        if rest := clients[number:]:
            self.loop.call_later(CLOSE_INTERVAL, self._close_next, rest, number)

    async def stop(self) -> None:
        """Tell every client to come back elsewhere, and release everything. Bounded in time."""
        self.begin_stop()
        deadline = max(self._stopped_by, self.loop.time() + FAREWELL_TIMEOUT)
        if self._peers is not None:
            self._peers.begin_stop()
        while self._connections or self._tasks:
            patience = deadline - FAREWELL_TIMEOUT - self.loop.time()
            if patience <= 0:
                break
            # without tasks, clients are still to be closed
            waiting = self._tasks or {self.loop.create_task(asyncio.sleep(CLOSE_INTERVAL))}
            await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        for feed in self.hub.feeds.values():
            feed.close()
        async with AsyncExitStack() as last:  # these end, whatever the others raise
            last.callback(self.verifier.close)
            last.callback(self.timers.close)
            last.push_async_callback(self.hooks.close)
            await self._leave(deadline)

    async def _leave(self, deadline: float) -> None:
        """Withdraw from the cluster and stop the engine."""
        if self._peers is not None and (error := await _failure(self._peers.stop(), deadline)):
            logger.warning("The node could not withdraw: %r", error)
        hearing = self.loop.create_task(self.events.close())  # channels were vacated until here
        if error := await _failure(self._engine.stop(), deadline):
            logger.warning("The engine did not stop: %r", error)
        await _failure(hearing, deadline)  # which it logs itself

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the caller; an exception is logged, `stop` waits for it."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Work beside a client failed", exc_info=error)

    def opened(self, connection: Connection) -> None:
        """A connection was opened. `stop` will close it."""
        self._connections[connection] = None
        if self.stopping:
            connection.close(DisconnectShutdown())

    def closed(self, connection: Connection) -> None:
        """A connection is closed."""
        self._newest.discard(connection.id)
        self._connections.pop(connection, None)

    # among the other nodes

    def describe(self) -> NodeInfo:
        """What this node says of itself."""
        return NodeInfo(
            uid=self.uid,
            name=self.config.name or f"{socket.gethostname()}_{os.getpid()}",
            version=self.version,
            num_clients=len(self.hub.clients),
            num_users=len(self.hub.users),
            num_channels=len(self.hub.feeds),
            uptime=int(self.timers.now() - self._started_at),
        )

    def status(self) -> NodeStatus:
        """What it says besides, for operators."""
        return NodeStatus(
            **msgspec.structs.asdict(self.describe()),
            messages_published=self.tally.published,
            messages_delivered=self.tally.delivered,
        )

    async def statuses(self) -> list[NodeStatus]:
        others = await super().statuses()
        return [self.status(), *(node for node in others if node.uid != self.uid)]

    def _answer(self, question: Question) -> Answer:
        return self._survey_answers.answer(question)

    def _now(self) -> float:
        return self.timers.now()

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def nodes(self) -> list[NodeInfo]:
        """Every node that is alive, this one first, as it is just now."""
        others = await super().nodes()
        return [self.describe(), *(node for node in others if node.uid != self.uid)]

    async def channels(self) -> list[ChannelName]:
        return list(self.hub.feeds) if self.cluster is None else await super().channels()

    async def _command(self, command: Control) -> None:
        """Do it here at once, and have the other nodes do it."""
        if self.cluster is None or not _is_ordered(command):
            await self._obey(command)
        if self.cluster is not None:
            await super()._command(command)

    async def _obey(self, command: Control) -> None:
        """Do here what every node is to do."""
        match command:
            case Unsubscribe(user, channel):
                connections = self.hub.connections(user)
                await asyncio.gather(*(client.unsubscribe(channel) for client in connections))
            case DisconnectUser():
                self._disconnect(command)
            case EndLogins(user=user, login=login, code=code):
                self.hooks.login_ended(user, login)
                disconnect = _DISCONNECTS.get(code, DisconnectForced)
                for client in self.hub.connections(user):
                    if login and client.auth_session == login:
                        client.close(disconnect())
                    elif client.auth_session and not login:
                        self.spawn(client.refresh())

    def _disconnect(self, command: DisconnectUser) -> None:
        disconnect = _DISCONNECTS.get(command.code, DisconnectForced)
        self._newest.discard(command.keep)
        for client in self.hub.connections(command.user):
            if client.id == command.keep or (command.keep and client.id in self._newest):
                continue
            client.close(disconnect())

    def spare(self, client: Subscriber) -> None:
        """Let no other connection of the user close this one, until it closes the others.

        Of two connections made at the same time on two nodes, each would close the other.
        All nodes see both commands in the same order, so the later one decides.
        """
        self._newest.add(client.id)

    def _on_command(self, command: Control) -> None:
        """What a node commanded, this one included, in the order that is the same everywhere."""
        if isinstance(command, DisconnectUser):
            if command.origin != self.uid or _is_ordered(command):
                self._disconnect(command)  # at once, for the order matters
        elif command.origin != self.uid:
            self.spawn(self._obey(command))

    # what the engine hands over: this process only

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is None:
            if channel == self.post.mailbox:
                self.post.arrived(publication.data)
            elif self._peers is not None:
                self._peers.on_publication(channel, publication, position)
            return
        if position is None or feed.follower is None:
            feed.publish(publication)
        else:
            feed.receive(publication, position, self.timers.now())

    def on_join(self, channel: ChannelName, info: ClientInfo) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is not None:
            feed.broadcast(lambda codec: codec.join(channel, info))

    def on_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is not None:
            feed.broadcast(lambda codec: codec.leave(channel, info))

    def on_occupied(self, channel: ChannelName) -> None:
        self.events.emit("channel_occupied", channel=channel)

    def on_vacated(self, channel: ChannelName) -> None:
        self.events.emit("channel_vacated", channel=channel)

    def on_interrupted(self, affects: Affects) -> None:
        logger.warning("The engine is interrupted: what is published now may come late")
        for channel, follower in self._followers():
            if affects(channel):
                follower.interrupt()

    def on_resumed(self, affects: Affects) -> None:
        logger.warning("The engine is back")
        if self._peers is not None:
            self.spawn(self._peers.heartbeat())
        followers = [each for each in self._followers() if affects(each[0])]
        self.spawn(maintenance.catch_up([(*each, each[1].interruptions) for each in followers]))
        feeds = [feed for feed in self.hub.feeds.values() if affects(feed.channel)]
        self.spawn(self._maintenance.renew(feeds))

    def _followers(self) -> Iterator[tuple[ChannelName, StreamFollower]]:
        if self._peers is not None:
            yield CONTROL, self._peers.control
        for channel, feed in self.hub.feeds.items():
            if feed.follower is not None:
                yield channel, feed.follower


async def _failure(ending: Awaitable[None], deadline: float) -> OSError | None:
    """Wait for the end of a part until the deadline. Return what went wrong, or None."""
    try:
        async with asyncio.timeout_at(deadline):
            await ending
    except (EngineUnavailable, TimeoutError) as error:
        return error
    return None


def _is_ordered(command: Control) -> bool:
    """Whether every node obeys it in its place among the others, the one it comes from too."""
    return isinstance(command, DisconnectUser) and command.keep != ""


_DISCONNECTS = {disconnect.code: disconnect for disconnect in DISCONNECTS}
