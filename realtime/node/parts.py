"""The parts of a node: each is made here, from the context that all of them share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from realtime import logs
from realtime.auth.verifier import Verifier
from realtime.channel_rules import meta_ttl, namespace_of
from realtime.cluster.context import Context
from realtime.cluster.dead_nodes import Sweeper
from realtime.cluster.direct import DirectMessages
from realtime.cluster.member import Member
from realtime.cluster.peers import Peers
from realtime.cluster.survey import Answers
from realtime.config.options import Config
from realtime.engine.base import Broker, Engine
from realtime.engine.lists import Kind, NodeLists
from realtime.engine.memory import MemoryEngine
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.node.answers import HubAnswers
from realtime.node.background import Background
from realtime.node.control import ControlHandler
from realtime.node.drain import Closable, Drain
from realtime.node.hooks import Events, Hooks
from realtime.node.hub import Hub
from realtime.node.identifying import Identifying
from realtime.node.interruptions import Interruptions
from realtime.node.limits.admission import Admission
from realtime.node.limits.blocks import Blocks
from realtime.node.limits.command_rates import CommandRates
from realtime.node.limits.flood_debts import FloodDebts
from realtime.node.limits.single_connection import SingleConnection
from realtime.node.limits.user_limits import UserLimits
from realtime.node.loop_lag import LoopLag
from realtime.node.maintenance import Maintenance
from realtime.node.maps import Changes, Expiry, MappedPresence
from realtime.node.observer import Observer
from realtime.node.outbox import Flusher
from realtime.node.pings import Pings
from realtime.node.subscriptions import Subscriptions
from realtime.node.user_joins import UserJoins
from realtime.protocol.negotiation import Codecs
from realtime.timers import Timers


class NodeParts(Member):
    """See the module. `Node` adds what they do together. Belongs to an event loop."""

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
        observe: Callable[[NodeParts], Observer] = Observer,
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
        self.spawn, self.idle = self._background.spawn, self._background.idle
        self._engine: Engine = engine or MemoryEngine(
            self.timers,
            meta_lifetime=config.memory_history_meta_ttl,
            own_lifetime=partial(meta_ttl, config),
        )
        super().__init__(config, self._engine)
        self._now, self._pause = self.timers.now, asyncio.sleep
        self.context = Context(self.uid, config, self.loop, self.timers, self.spawn, self.outage)
        self.hooks = hooks or Hooks()
        self.events = events or Events()
        self.verifier = Verifier(config, observer_keys)
        self.codecs = Codecs(config.v3_use_offset)
        self.hub = Hub(
            lambda channel: self.counters.deliveries(namespace_of(channel, config)),
            self._engine.lists if lists_users else None,
        )
        self.on_notice = self.hub.on_notice
        self.flusher = Flusher(self.loop)
        self.pings = Pings(self.timers, config.ping_interval, config.pong_timeout)
        self.loop_lag = LoopLag(self.timers, config.overload_lag)
        self._connections: dict[Closable, None] = {}
        self._drain = Drain(self.loop, self._connections, config.drain_seconds)
        self._make_subscriptions()
        self._make_limits()
        self.observer = observe(self)
        self._make_links()

    def _make_subscriptions(self) -> None:
        self.pipelines_publishes = self.cluster is not None
        changes = Changes(self.broker, self._publication)
        self._expiry: Expiry | None = None
        options = (self.config.channel, *self.config.namespaces.values())
        if self.maps is not None and any(each.map for each in options):
            self._expiry = Expiry(self.context, self.maps, changes)
            self.presence = MappedPresence(self.presence, changes, self.config)
        self._user_joins = UserJoins(self.context, self.broker, self.lists)
        self._maintenance = Maintenance(self.context, self.presence)
        self.subscriptions = Subscriptions(
            self.context,
            self.broker,
            self.presence,
            self.hub,
            self._maintenance,
            self._user_joins,
            changes,
            self.counters,
        )

    def _make_limits(self) -> None:
        config = self.config
        self.admission = Admission(self.context, self.loop_lag, self._connections)
        rates = config.rates_of_clients
        self.command_rates = CommandRates(rates) if rates else None
        self.flood_debts = FloodDebts(self.loop.time)
        self.user_limits = UserLimits(self.context, self.hub, self.limits)
        self.has_rates = not (self.command_rates is None and self.user_limits.rates is None)
        self.single_connection = SingleConnection(config, self.hub, self.send_control)

    def _make_links(self) -> None:
        """Make what the node has to do with other nodes, and with operators."""
        self.direct = DirectMessages(self.context, self.broker)
        self.identifying = Identifying()
        self.blocks = Blocks(self.context, self.hub, self.limits, self.observer)
        self._control = ControlHandler(
            self.context,
            self.hub,
            self.hooks,
            self.single_connection,
            self.identifying,
            self.blocks,
        )
        own = HubAnswers(self.hub, self.uid, self.name)
        self._answers = Answers(own.questions | self.observer.questions)
        self._peers: Peers | None = None
        self._sweeper: Sweeper | None = None
        if self.cluster is not None:
            self._peers = Peers(
                self.context,
                self.broker,
                self.cluster,
                describe=self.status,
                on_control=self._control.on_message,
                answers=self._answers,
                on_wake_up=lambda: self.on_wake_up(),
            )
            self._sweeper = Sweeper(
                self.context,
                self.cluster,
                self.lists,
                on_last=lambda kind, name: self.on_last(kind, name, certain=False),
                drained=self.events.drained,
            )
        self.interruptions = Interruptions(
            self.context,
            self.hub,
            self._peers,
            self.blocks,
            self.user_limits,
            self._maintenance,
            self.counters,
            self.observer,
        )
        self.on_interrupted, self.on_resumed = self.interruptions.begin, self.interruptions.end

    # over all nodes: signals of channels and users, joins and leaves of users in channels

    def on_first(self, kind: Kind, name: str) -> None:
        """See `engine.base.Receiver`."""
        if kind is Kind.CHANNELS:
            self.events.emit("channel_occupied", channel=name)
        elif kind is Kind.USERS:
            self.events.emit("user_online", user=name)
        else:
            self._user_joins.on_first(name)

    def on_last(self, kind: Kind, name: str, *, certain: bool = True) -> None:
        """See `engine.base.Receiver`. `certain`: False for what was at a node that died."""
        if kind is Kind.CHANNELS:
            self.events.emit("channel_vacated", channel=name, certain=certain)
        elif kind is Kind.USERS:
            self.events.emit("user_offline", user=name, certain=certain)
        else:
            self._user_joins.on_last(name)

    @property
    def is_draining(self) -> bool:
        """Whether new clients should go to another node: it is not ready, and may stop soon."""
        return self._drain.is_draining

    @property
    def redis_seconds(self) -> float | None:
        """How long the engine took for the last heartbeat; None with the memory engine."""
        return None if self._peers is None else self._peers.heartbeat_seconds

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
