"""Node: a process that serves clients. Joins hub, engine and cluster; one per event loop.

Publications from the engine go to the feed of their channel; in recoverable channels by way of
the feed's `StreamFollower`, which keeps order and completeness once for all subscribers. Control
messages of other nodes are applied to the clients of this one. `start` and `stop` are those of the
process.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import msgspec

from realtime import logs
from realtime.auth.verifier import Verifier
from realtime.channel_rules import namespace_of
from realtime.cluster.control import ControlMessage, is_ordered
from realtime.cluster.direct import DirectMessages
from realtime.cluster.member import Member
from realtime.cluster.peers import Peers
from realtime.cluster.survey import Answers, SurveyAnswer, SurveyQuestion
from realtime.config.options import Config
from realtime.engine.base import Affects, Broker, Engine
from realtime.engine.lists import NodeLists
from realtime.engine.memory import MemoryEngine
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.errors import DisconnectShutdown, EngineUnavailable, NoReply
from realtime.node.admission import Admission
from realtime.node.answers import HubAnswers
from realtime.node.background import Background, failure_of
from realtime.node.blocks import Blocks
from realtime.node.command_rates import CommandRates
from realtime.node.control import ControlHandler
from realtime.node.drain import CLOSE_INTERVAL, Connection, Drain
from realtime.node.flood_debts import FloodDebts
from realtime.node.hooks import Events, Hooks, NoEvents, NoHooks
from realtime.node.hub import make_hub
from realtime.node.identifying import Identifying
from realtime.node.interruptions import Interruptions
from realtime.node.loop_lag import LoopLag
from realtime.node.maintenance import Maintenance
from realtime.node.observer import NoObserver, Observer
from realtime.node.occupancy import Occupancy
from realtime.node.outbox import Flusher
from realtime.node.pings import Pings
from realtime.node.single_connection import SingleConnection
from realtime.node.subscriptions import Subscriptions
from realtime.node.user_limits import UserLimits
from realtime.protocol.messages import ChannelName, Publication, StreamPosition, UserID
from realtime.protocol.negotiation import Codecs
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

SHUTDOWN_TIMEOUT = 4.0
"""Seconds from the end of the drain to the end of `stop` at most, even if something hangs."""
SIGNALS_APART = 1.0
"""Seconds after the first signal in which another one is taken for the same: Ctrl-C, or the end of
a group of processes, reaches a process directly and by way of its supervisor."""
ENGINE_STOP_TIMEOUT = 1.0
"""Seconds kept for the engine's stop if closing the clients takes too long, or `stop` came late."""


class Node(Member):
    """See the module. Belongs to the event loop on which it was made."""

    broker: Broker
    lists: NodeLists

    def __init__(
        self,
        config: Config,
        engine: Engine | None = None,
        hooks: Hooks | None = None,
        events: Events | None = None,
        observer_keys: Sequence[bytes] = (),
        *,
        version: str = "",
        lists_users: bool = False,
        observe: Callable[[Node], Observer] = NoObserver,
    ) -> None:
        """
        Args:
            engine: None for a memory engine of its own.
            hooks: what the site decides; None: the options decide.
            events: signals to the site; None: there are none.
            observer_keys: verify tokens of observers; without keys there are no observers.
            version: of this package, as clients and other nodes see it.
            lists_users: whether it is known, over all nodes, which users are online.
            observe: returns what sees the node from outside.

        Raises:
            InvalidKey: the options have a token key that cannot be used.
        """
        self.loop = asyncio.get_running_loop()
        self.version = version
        logs.name_node(config.name)
        self.name = config.name or logs.default_node_name()
        self.timers = Timers(self.loop)
        self.started_at = self.timers.now()
        self._background = Background(self.loop)
        self.spawn = self._background.spawn
        """Run a coroutine in the background."""
        self.idle = self._background.idle
        """Wait until no background task is left."""
        self._engine: Engine = engine or MemoryEngine(
            self.timers, meta_lifetime=config.memory_history_meta_ttl
        )
        super().__init__(config, self._engine)
        self.hooks: Hooks = hooks or NoHooks()
        self.events: Events = events or NoEvents()
        self.pipelines_publishes = self.broker.pipelines_publishes
        self.hub = make_hub(
            lambda channel: self.counters.deliveries(namespace_of(channel, config)),
            self._engine.lists if lists_users else None,
        )
        self.on_join, self.on_leave = self.hub.on_join, self.hub.on_leave
        self.flusher = Flusher(self.loop)
        self.pings = Pings(self.timers, config.ping_interval, config.pong_timeout)
        self.verifier = Verifier(config, observer_keys)
        self.codecs = Codecs(config.v3_use_offset)
        rates = config.rates_of_clients
        self.command_rates = CommandRates(rates) if rates else None
        self.flood_debts = FloodDebts(self.loop.time)
        self.user_limits = UserLimits(
            self.uid, config, self.hub, self.limits, self.timers, self.spawn, self.outage
        )
        self.has_rates = not (self.command_rates is None and self.user_limits.rates is None)
        self.loop_lag = LoopLag(self.timers, config.overload_lag)
        self._stopped_by = math.inf
        self._connections: dict[Connection, None] = {}
        self._drain = Drain(self.loop, self._connections, config.drain_seconds, self._drained)
        self.admission = Admission(config, self.timers, self.loop_lag, self._connections)
        self.observer: Observer = observe(self)
        self.direct = DirectMessages(self.broker, self.uid, self.spawn)
        self.single_connection = SingleConnection(config, self.hub, self._send_control)
        self.identifying = Identifying()
        self.blocks = Blocks(
            self.hub, self.limits, self.timers, self.spawn, self.outage, self.observer
        )
        self._control = ControlHandler(
            self.uid,
            self.hub,
            self.hooks,
            self.spawn,
            self.single_connection,
            self.identifying,
            self.blocks,
        )
        own = HubAnswers(self.hub, self.uid, self.name)
        self._answers = Answers(own.questions | self.observer.questions)
        self._peers: Peers | None = None
        if self.cluster is not None:
            self._peers = Peers(
                self.uid,
                self.broker,
                self.cluster,
                self.timers,
                self.spawn,
                describe=self.status,
                on_control=self._control.on_message,
                answers=self._answers,
                on_wake_up=lambda: self.on_wake_up(),
                outage=self.outage,
            )
        self._occupancy = Occupancy(
            self.uid, self._engine, self.events, self.timers, self.spawn, self.outage
        )
        self.on_first, self.on_last = self._occupancy.on_first, self._occupancy.on_last
        self._maintenance = Maintenance(config, self.presence, self.timers, self.spawn, self.outage)
        self.subscriptions = Subscriptions(
            config,
            self.broker,
            self.presence,
            self.hub,
            self._maintenance,
            self._occupancy.attendance,
            self.counters,
            self.outage,
        )
        self.interruptions = Interruptions(
            self.hub,
            self._peers,
            self.blocks,
            self.user_limits,
            self._maintenance,
            self.counters,
            self.outage,
            self.observer,
            self.spawn,
        )

    # life

    async def start(self) -> None:
        """Begin to receive what other nodes publish.

        Raises:
            EngineUnavailable: Redis did not answer, or refused. The node has released everything;
                the next attempt needs a new one.
        """
        async with AsyncExitStack() as undo:
            undo.callback(self.verifier.close)
            undo.callback(self.timers.close)
            undo.push_async_callback(self.hooks.close)
            await self._engine.start(self)
            undo.push_async_callback(self._engine.stop)
            await self.blocks.load()
            if self._peers is not None:
                await self._peers.start()
            self.blocks.start()
            self.user_limits.start()
            self._occupancy.start()
            self.loop_lag.start()
            self.observer.start()
            undo.pop_all()

    @property
    def is_draining(self) -> bool:
        """Whether new clients should go to another node: it is not ready, and may stop soon."""
        return self._drain.is_draining

    def begin_stop(self) -> None:
        """Begin to close every client, which reconnects to another node. Returns at once."""
        self._drain.begin()

    def on_signal(self) -> None:
        """Begin to stop; at a second signal, close at once the clients that are left."""
        if self._drain.elapsed < SIGNALS_APART:
            self._drain.begin()
        else:
            self._drain.hurry()

    def _drained(self) -> None:
        self._stopped_by = self.loop.time() + SHUTDOWN_TIMEOUT

    async def drained(self) -> None:
        """Wait until the node has closed every client, after `begin_stop`."""
        await self._drain.wait()

    async def stop(self) -> None:
        """Close every client within `drain_seconds`, and release everything in SHUTDOWN_TIMEOUT."""
        self.begin_stop()
        await self.drained()
        self.stopping = True
        deadline = max(self._stopped_by, self.loop.time() + ENGINE_STOP_TIMEOUT)
        self._occupancy.begin_stop()
        if self._peers is not None:
            self._peers.begin_stop()
        tasks = self._background.tasks
        while self._connections or tasks:
            timeout = deadline - ENGINE_STOP_TIMEOUT - self.loop.time()
            if timeout <= 0:
                break
            # no tasks, but clients: they are not done with closing
            waiting = tasks or {self.loop.create_task(asyncio.sleep(CLOSE_INTERVAL))}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for feed in self.hub.feeds.values():
            feed.close()
        async with AsyncExitStack() as last:  # these end, whatever the others raise
            last.callback(self.verifier.close)
            last.callback(self.timers.close)
            last.callback(self.observer.stop)
            closing = self.loop.create_task(self.hooks.close())  # no client asks them any more
            last.push_async_callback(failure_of, closing, deadline)
            await self._leave(deadline)

    async def _leave(self, deadline: float) -> None:
        # a Redis that hangs must leave the engine the time to close its connections
        by = deadline - ENGINE_STOP_TIMEOUT / 2
        self._occupancy.stop()
        if self._peers is not None and (error := await failure_of(self._peers.stop(), by)):
            logger.warning("The node could not withdraw: %s", error)
        draining = self.loop.create_task(self.events.close())  # channels were vacated until here
        if error := await failure_of(self._engine.stop(), deadline):
            logger.warning("The engine did not stop: %s", error)
        await failure_of(draining, deadline)  # it logs its own failure

    def opened(self, connection: Connection) -> None:
        """Add a connection, for `stop` to close."""
        self._connections[connection] = None
        if self.is_draining:
            connection.close(DisconnectShutdown())

    def closed(self, connection: Connection) -> None:
        """Remove a connection that was closed."""
        self.single_connection.forget(connection.id)
        self._connections.pop(connection, None)

    # among the other nodes

    def describe(self) -> NodeInfo:
        """Describe the node to clients and other nodes."""
        sizes = len(self.hub.clients), len(self.hub.users), len(self.hub.feeds)
        uptime = int(self.timers.now() - self.started_at)
        return NodeInfo(self.uid, self.name, self.version, *sizes, uptime)

    def status(self) -> NodeStatus:
        """Describe the node with its counters."""
        return NodeStatus(
            **msgspec.structs.asdict(self.describe()),
            messages_published=self.counters.published,
            messages_delivered=self.counters.delivered,
            num_subs=self.subscriptions.count,
            loop_lag=round(self.loop_lag.sustained, 4),
        )

    @property
    def redis_seconds(self) -> float | None:
        """How long Redis took for the last heartbeat; None without Redis."""
        return None if self._peers is None else self._peers.heartbeat_seconds

    async def statuses(self) -> list[NodeStatus]:
        others = await super().statuses()
        return [self.status(), *(node for node in others if node.uid != self.uid)]

    async def _answer(self, question: SurveyQuestion) -> SurveyAnswer | None:
        return await self._answers.to(question)

    def _now(self) -> float:
        return self.timers.now()

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def nodes(self) -> list[NodeInfo]:
        """Return the nodes that are alive, this one first with its figures of this moment."""
        others = await super().nodes()
        return [self.describe(), *(node for node in others if node.uid != self.uid)]

    async def channels(self) -> list[ChannelName]:
        return list(self.hub.feeds) if self.cluster is None else await super().channels()

    async def block_user(self, user: UserID, until: float) -> None:
        if self.limits is None:
            self.blocks.check_room(user)
        await super().block_user(user, until)

    async def blocked(self) -> Mapping[UserID, float]:
        return self.blocks.current() if self.limits is None else await super().blocked()

    async def _send_control(self, message: ControlMessage) -> None:
        """Apply a control message here, and send it to the other nodes.

        Raises:
            NoReply: it has taken effect at this node, and perhaps at others.
        """
        applied = self.cluster is None or not is_ordered(message)
        if applied:
            await self._control.apply(message)
        if self.cluster is None:
            return
        try:
            await super()._send_control(message)
        except EngineUnavailable as error:
            if applied:
                raise NoReply(f"done at this node: {error}") from None
            raise

    # from the engine: see `engine.base.Receiver`

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is None:
            if channel == self.direct.inbox:
                self.direct.on_message(publication.data)
            elif self._peers is not None:
                self._peers.on_publication(channel, publication, position)
            return
        if publication.traceparent and self.spans is not None:
            untraced = msgspec.structs.replace(publication, traceparent="")
            with self.spans.deliver(namespace_of(channel, self.config), publication.traceparent):
                self.on_publication(channel, untraced, position)
            return
        if (published := self.observer.published) is not None:
            published(channel, publication, position)
        if position is None or feed.follower is None:
            feed.publish(publication)
        else:
            feed.receive(publication, position, self.timers.now())

    def on_interrupted(self, affects: Affects) -> None:
        self.interruptions.begin(affects)

    def on_resumed(self, affects: Affects) -> None:
        self.interruptions.end(affects)
