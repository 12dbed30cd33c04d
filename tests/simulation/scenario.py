"""Scenario: a plan becomes a service, its load and its faults; then everything heals and is judged.

build ─► load and faults (`plan.length` s) ─► heal ─► quiet (`QUIET` s) ─► judge ─► stop ─► leaks
"""

from __future__ import annotations

import gc
import logging
import random
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt

from realtime.channel_rules import options_of as channel_options
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import load
from realtime.engine.base import Store
from realtime.engine.epochs import glanced_lifetime
from realtime.engine.postgresql.database import Address
from realtime.engine.postgresql.engine import Addresses, PostgreSQLStore
from realtime.engine.postgresql.streams import Keeping
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.engine import RedisStore
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import hosts_of, new_serializer
from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import ClusterServers, Servers, ShardServers
from realtime.engine.redis.shards import Shards
from realtime.redis.commands import Wait
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.slots import slot_of
from realtime.serving import run_by_hand
from realtime.transports.sockjs import formats
from tests.simulation import checks, postgresql_kept
from tests.simulation.added_faults import ADDED_FAULTS, LOST_ON_THE_WAY
from tests.simulation.clients import (
    NEWEST,
    PLAIN,
    STREAMS,
    TRANSPORTS,
    WEBSOCKET,
    SimulatedClient,
)
from tests.simulation.faults import (
    ALL_FAULTS,
    NOT_COUNTED,
    SLOW,
    SPARES_ENGINE,
    SPARES_RELAYS,
    SPARES_SESSIONS,
    SPARES_SUBSCRIBED,
    kinds_of,
)
from tests.simulation.greenlets import current
from tests.simulation.judge import Judge
from tests.simulation.listeners import SimulatedListener
from tests.simulation.maps import MAPS, Maps
from tests.simulation.maps import NAMESPACES as MAP_NAMESPACES
from tests.simulation.members import NodeProcess
from tests.simulation.network import Network
from tests.simulation.plan import (
    CLUSTER,
    CONFIRMED,
    MEMORY,
    ONE,
    POSTGRESQL,
    SENTINEL,
    SHARDS,
    Plan,
    PlannedFault,
)
from tests.simulation.postgresql_clients import connecting
from tests.simulation.postgresql_server import PORT, PostgreSQL
from tests.simulation.redis_cluster import Cluster
from tests.simulation.redis_database import Database
from tests.simulation.redis_server import Shard
from tests.simulation.relay_faults import JOINED_FAULTS, RELAY_FAULTS
from tests.simulation.server_api import ServerAPI
from tests.simulation.site import Site, relaying
from tests.simulation.stored import MOVES
from tests.simulation.threads import ThreadProcess, blocking_calls
from tests.simulation.wishes import Wishes
from tests.simulation.world import EPOCH, Process, World

QUIET = 100.0
"""Seconds without load and faults, until everything must be true again."""
MAX_BURST, MAX_WRITTEN = 20, 200
"""Publications that come at once, at most: of the load, and of writers of durable ones."""
CLAIMED = 20.0
"""Seconds until nodes have claimed again what Redis lost: sooner than they renew each claim."""
STOPPING = 30.0
"""Seconds in which every node must have stopped."""
TIMEOUTS = Timeouts(1.0, 5.0)
POLL = 0.1
RARE_CHANNEL = "kept:rare"
"""Without subscribers: only the server API uses it."""
PARTITIONS = Partitions(16)
"""Of a cluster: few, so that a slot that moves is used."""
SECRET = "simulated-secret-of-at-least-32-bytes"


class Outside(Process):
    """Where clients are: it is never frozen, and needs no turns."""

    def call(self, callback: Callable[..., object], *args: Any) -> None:
        callback(*args)


@dataclass
class Result:
    """What came of a plan."""

    plan: Plan
    failures: list[str]
    faults: int
    deliveries: int
    published: int
    told: int
    closed_as_slow: int
    most_unsent: int
    steps: int
    """Of the world."""
    counts: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


def plan_of(seed: int, engine: str = "", *, relays: bool | None = None) -> Plan:
    """Return the plan of a seed. `relays`: whether it has relays; None: the seed decides."""
    of_relays = {name: weight for name, (_, weight) in RELAY_FAULTS.items()}
    plan = Plan.of(seed, kinds_of, SLOW, of_relays, engine, relays=relays)
    added = {} if plan.engine in (MEMORY, POSTGRESQL) else ADDED_FAULTS
    if plan.is_joined:
        added = JOINED_FAULTS
    return plan.adding({name: pause for name, (_, pause) in added.items()})


def play(
    plan: Plan, *, traces: bool = False, on_failure: Callable[[str], object] | None = None
) -> Result:
    """Play a plan, and judge it. `on_failure`: called with each failure, as it happens."""
    gc.disable()  # a collection in between would depend on what ran before
    gc.freeze()  # the collection after the run need not look at what was there before it
    try:
        return _play(plan, traces, on_failure)
    finally:
        gc.collect()
        gc.unfreeze()
        gc.enable()


def _play(plan: Plan, traces: bool, on_failure: Callable[[str], object] | None) -> Result:
    defects = _Defects()
    with _watched_logs(defects):
        service = Service(plan, defects, traces=traces)
        defects.judge, service.judge.on_failure = service.judge, on_failure
        return service.play()


class _Defects(list[str]):
    """What parts of a service did that they may not do."""

    judge: Judge

    def append(self, defect: str) -> None:
        super().append(defect)
        if self.judge.on_failure is not None:
            self.judge.on_failure(defect)


class Service:
    """The service of one run."""

    def __init__(self, plan: Plan, defects: list[str], *, traces: bool) -> None:
        self.plan = plan
        self.world = World(plan.seed, defects)
        self.network = Network(self.world)
        self.judge = Judge(self.world)
        if traces:
            self.judge.trace = []
        self.config = _config(
            plan.history_size,
            plan.position_checks,
            plan.queue_size,
            plan.is_mixed,
            plan.has_maps,
        )
        replicated = plan.engine in (SENTINEL, CONFIRMED)
        self.meta = MetaSettings(
            lifetime=plan.meta_lifetime,
            epoch_per_run=plan.epoch_per_run,
            wait=Wait(1, 500) if plan.waits else None,
        )
        number = {MEMORY: 0, SHARDS: 2, CLUSTER: 0, POSTGRESQL: 0}.get(plan.engine, 1)
        self.shards: Sequence[Shard] = [
            Shard(self.world, self.network, f"redis{n}", replicated=replicated)
            for n in range(number)
        ]
        self.partitions, self.cluster = Partitions(), None
        if plan.engine == CLUSTER:
            self.partitions = PARTITIONS
            self.cluster = Cluster(
                self.world, self.network, PARTITIONS.tags, serves_late=plan.waits
            )
            self.shards = self.cluster.shards
        self.keys = Keys("sim", self.partitions)
        self.postgresql: PostgreSQL | None = None
        if plan.engine == POSTGRESQL:
            self.postgresql = PostgreSQL(self.world, self.network, lambda: EPOCH + self.world.now)
        self.kept = [f"kept:{n}" for n in range(plan.channels)]
        self.nodes: list[NodeProcess] = []
        self.threads: list[ThreadProcess] = []
        self.clients: list[SimulatedClient] = []
        self.listeners: list[SimulatedListener] = []
        self.outside = Outside(self.world, "outside")
        self.network.add(self.outside)
        self.counts: dict[str, int] = {}
        self.wishes = Wishes(self)
        names = {fault.name for fault in plan.faults}
        # where publications overtake each other, PostgreSQL is read, and may have trimmed a burst
        burst = MAX_WRITTEN if plan.writers else MAX_BURST
        is_short = plan.engine == POSTGRESQL and plan.history_size < burst
        self.judge.is_calm = names <= SLOW and not is_short
        self.judge.is_prompt = names <= SPARES_SUBSCRIBED and not is_short
        self.judge.may_miss = LOST_ON_THE_WAY in names
        self.judge.engine_lasts = names <= SPARES_ENGINE
        self.judge.sessions_last = names <= SPARES_SESSIONS
        self.site = Site(self) if plan.writers else None
        self.server_api = ServerAPI(self)
        self.maps: Maps | None = None
        self.is_loaded = True

    def _begin(self) -> None:
        plan, world = self.plan, self.world
        self.nodes = [NodeProcess(self, f"node{n}") for n in range(plan.nodes)]
        self.threads = [ThreadProcess(self, f"thread{n}") for n in range(plan.threads)]
        self.clients = [self._client(n) for n in range(plan.clients)]
        self.listeners = [self._listener(n) for n in range(plan.listeners)]
        self.maps = Maps(self) if plan.has_maps else None
        world.after(world.random.expovariate(plan.rate), self._publish)
        if self.site is not None:
            world.at(0.5, self._write)
        for fault in plan.faults:
            world.at(fault.at, self._go_wrong, fault)
        if self.shards:
            world.at(5.0, self._save)
        world.at(checks.INTERVAL, checks.look, self)

    def _client(self, number: int) -> SimulatedClient:
        chance = self.world.random
        channels = {channel: True for channel in self.kept if chance.random() < 0.8}
        if chance.random() < 0.3 or not channels:
            channels[PLAIN] = False
        if chance.random() < 0.3:
            channels[NEWEST] = True
        transport = WEBSOCKET
        if chance.random() < self.plan.over_http:
            transport = chance.choice(TRANSPORTS[1:])
        generation = 2 if transport in STREAMS else chance.choice((1, 2))
        if PLAIN in channels and self.plan.is_mixed and generation == 2:
            channels[PLAIN] = bool(number % 2)
        return SimulatedClient(
            self,
            f"client{number}",
            generation,
            channels,
            "kept:all" if chance.random() < 0.3 else "",
            transport,
        )

    def _listener(self, number: int) -> SimulatedListener:
        chance = self.world.random
        channels = chance.sample(self.kept, chance.randint(1, len(self.kept)))
        return SimulatedListener(self, f"listener{number}", channels)

    @property
    def peers(self) -> list[SimulatedClient | SimulatedListener]:
        """All that get publications."""
        maps = [] if self.maps is None else self.maps.clients
        return [*self.clients, *self.listeners, *maps]

    # what the parts of the service ask for

    def token(self, user: str, channel: str) -> str:
        """Return a connection token, with a channel if there is one."""
        return _token(user, channel)

    def options_of(self, channel: str) -> ChannelOptions:
        """Return the options of a channel."""
        options = channel_options(channel, self.config)
        assert options is not None
        return options

    def any_node(self) -> tuple[str, str]:
        """Return the place of a node, as a load balancer chooses it."""
        return self.world.random.choice(self.nodes).place

    def new_bus(self) -> RedisBus:
        """Return a bus of a process to the Redis of the service."""
        servers: Servers
        if self.cluster is None:
            servers = ShardServers(hosts_of([shard.entry for shard in self.shards]))
        else:
            hosts = [Host(entry) for entry in self.cluster.entries]
            servers = ClusterServers(hosts, self.partitions)
        return RedisBus(servers, "sim", new_serializer(), TIMEOUTS, self.partitions)

    @property
    def addresses(self) -> Addresses:
        """Where PostgreSQL is."""
        place = {"host": "postgresql", "port": PORT}
        address = Address(place, connect_timeout=2.0, pooled=self.plan.polls)
        return Addresses(address, address, POLL if self.plan.polls else 0.0)

    @property
    def keeping(self) -> Keeping:
        """How long streams are kept in PostgreSQL."""
        meta_lifetime = 3600 if self.plan.epoch_per_run else 0  # each in half of the plans
        return Keeping(meta_lifetime, glanced_lifetime(self.config))

    def new_store(self) -> Store:
        """Return what a process without an event loop reaches the engine by."""
        if self.postgresql is not None:
            return PostgreSQLStore(self.addresses, self.keeping)
        return RedisStore(self.new_bus(), "sim", self.meta)

    def database_of(self, channel: str) -> Database:
        """Return the database of Redis that keeps a channel."""
        if self.cluster is not None:
            slot = slot_of(self.keys.stream(channel)[0])
            return self.cluster.owner(slot).master.database
        shard = Shards(self.new_bus(), "sim").shard(channel)
        return self.shards[shard].master.database

    # load

    def _publish(self) -> None:
        if not self.is_loaded:
            return
        chance = self.world.random
        channel = chance.choice([*self.kept, "kept:all", PLAIN, NEWEST])
        for _ in range(1 if chance.random() < 0.8 else chance.randint(2, MAX_BURST)):
            drawn = chance.random()
            if drawn < 0.15 and self.threads:
                chance.choice(self.threads).publish(channel, insists=chance.random() < 0.5)
            elif drawn < 0.3:
                chance.choice(self.clients).publish(channel)
            elif drawn < 0.5 and channel in self.kept:
                self._use_server_api(channel, chance)
            else:
                chance.choice(self.nodes).publish(channel)
        self.world.after(chance.expovariate(self.plan.rate), self._publish)

    def _write(self) -> None:
        if self.is_loaded and self.site is not None:
            self.site.write()
            pause = self.world.random.expovariate(self.plan.rate / 4)
            self.world.after(pause, self._write)

    def _use_server_api(self, channel: str, chance: random.Random) -> None:
        own = random.Random(chance.getrandbits(32))
        if self.shards and own.random() < 0.1:
            channel = RARE_CHANNEL
        chance.choice(self.nodes).do(lambda node: self.server_api.use(node, channel, own))

    def _publish_last(self) -> None:
        """Publish once more in each channel: what follows a gap shows it.

        Half of the plans do without, where nodes learn of each gap by themselves.
        """
        if self.plan.seed % 2 and (
            self.plan.position_checks or self.plan.engine in (MEMORY, ONE, SHARDS, POSTGRESQL)
        ):
            return
        for shard in self.shards:
            shard.master.drops |= LOST_ON_THE_WAY in self.counts
        with self.world.answering():
            for channel in [*self.kept, "kept:all", NEWEST]:
                self.nodes[0].publish(channel)
            if self.plan.is_mixed:
                self.nodes[0].publish(PLAIN)
            if self.maps is not None:
                self.maps.put_last()

    def _save(self) -> None:
        for shard in self.shards:
            shard.master.save()

    def _go_wrong(self, fault: PlannedFault) -> None:
        kinds = {**ALL_FAULTS, **RELAY_FAULTS, **JOINED_FAULTS}
        if kinds[fault.name][0](self, random.Random(fault.seed)):
            self.judge.note(f"fault: {fault.name}")
            if self.site is not None and fault.name not in SPARES_RELAYS:
                self.site.judge.is_calm = False
            self.judge.may_end_epochs |= fault.name in MOVES or not self.shards
            self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
            self.judge.faults += fault.name not in NOT_COUNTED

    # the end

    def play(self) -> Result:
        """Run the plan, and judge what came of it."""
        judge, world = self.judge, self.world
        with ExitStack() as last:
            if self.postgresql is not None:
                last.enter_context(connecting(self.network, lambda: current(world)))
            last.callback(self._unwind)
            last.enter_context(_response_limit(self.plan.response_size))
            if self.site is not None:
                last.enter_context(relaying(self.site))
            if self.threads or self.plan.threads or self.site is not None:
                last.enter_context(blocking_calls(self))
            with world.answering():
                self._begin()
            world.run(self.plan.length)
            self.is_loaded = False
            judge.note("the load is over, and everything heals")
            world.run(CLAIMED)
            checks.check_claimed(self)
            world.run(QUIET / 2 - CLAIMED)
            self._publish_last()
            world.run(QUIET / 2)
            if self.maps is not None:
                self.maps.read()
            self._judge()
            self._stop()
            for defect in world.defects:
                judge.fail(defect)
        return Result(
            self.plan,
            judge.failures,
            judge.faults,
            judge.deliveries,
            len(judge.publishings),
            judge.told,
            judge.closed_as_slow,
            judge.most_unsent,
            world.steps,
            self.counts,
            judge.trace or [],
        )

    def _unwind(self) -> None:
        self.judge.on_failure = None  # what is judged is over
        self.network.is_down = True
        self.world.unwind()

    def _judge(self) -> None:
        judge = self.judge
        subscribed = {}
        for client in self.peers:
            if not client.is_settled:
                judge.fail(f"{client.name} is {client.state.name} and did not come back")
                continue
            for subscription in client.subscriptions.values():
                if subscription.has_history and subscription.channel not in MAPS:
                    subscribed[client.name, subscription.channel] = self.top(subscription.channel)
        judge.check_complete(subscribed)
        self.wishes.check()
        checks.check_end(self)
        if self.maps is not None:
            self.maps.check()
        if self.site is not None:
            self.site.check()

    def top(self, channel: str) -> tuple[int, str]:
        """Return the top of a stream as it is kept; offset -1 if there is none."""
        if self.postgresql is not None:
            found = postgresql_kept.stream(self.postgresql, channel)
            return (-1, "") if found is None else (found[2], found[0])
        if not self.shards:
            node = self.nodes[0].node
            assert node is not None
            position = run_by_hand(node.broker.positions([channel]))[0]
            return position.offset, position.epoch
        database = self.database_of(channel)
        _, meta_key, epoch_key = self.keys.stream(channel)
        run = f"-{database.replid[:8]}" if self.plan.epoch_per_run else ""
        if (meta := database.values.get(meta_key.encode())) is not None:
            return int(meta.get(b"s", b"0")), meta[b"e"].decode() + run
        epoch = database.values.get(epoch_key.encode())
        return (-1, "") if epoch is None else (0, epoch.decode() + run)

    def _stop(self) -> None:
        uids = {member: member.node.uid for member in self.nodes if member.node is not None}
        for client in self.peers:
            client.stop()
        for member in self.nodes:
            if member.process.alive:
                member.process.spawn(member.stop())
        self.world.run(STOPPING)
        for member, uid in uids.items():
            if member.process.alive:
                checks.check_stopped(self, member, uid)


@cache
def _config(
    history_size: int, position_checks: bool, queue_size: int, is_mixed: bool, has_maps: bool
) -> Config:
    kept: Mapping[str, Any] = {
        "name": "kept",
        "history_size": history_size,
        "history_ttl": "3000s",
        "history_recover": True,
        "force_recovery": True,
        "allow_subscribe_for_client": True,
        "allow_publish_for_client": True,
        "presence": True,
        "publish": True,
    }
    newest = {**kept, "name": "newest", "force_recovery_mode": "cache", "presence": False}
    plain: dict[str, Any] = {
        "name": "plain",
        "allow_subscribe_for_client": True,
        "allow_publish_for_client": True,
        "publish": True,
    }
    if is_mixed:
        plain |= {"history_size": history_size, "history_ttl": "3000s", "allow_recovery": True}
    own = ("presence", "publish", "allow_publish_for_client")
    mapped = {name: kept[name] for name in kept if name not in own} | {"map_publish": "client"}
    maps = [mapped | namespace for namespace in MAP_NAMESPACES] if has_maps else []
    return load(
        {
            "token_hmac_secret_key": SECRET,
            "v3_use_offset": True,
            "client_queue_max_size": queue_size,
            "client_recovery_max_size": 2 * queue_size,
            "http_stream": True,
            "sse": True,
            "events": True,
            "client_channel_position_check_delay": 20 if position_checks else 0,
            "namespaces": [kept, newest, plain, *maps],
        }
    )


@cache
def _token(user: str, channel: str) -> str:
    claims: dict[str, Any] = {"sub": user}
    if channel:
        claims["channels"] = [channel]
    return jwt.encode(claims, SECRET, algorithm="HS256")


@contextmanager
def _response_limit(size: int) -> Iterator[None]:
    """Let a streaming response of SockJS end after so many bytes within this block."""
    before = formats.XHR_STREAMING.limit
    object.__setattr__(formats.XHR_STREAMING, "limit", size)
    try:
        yield
    finally:
        object.__setattr__(formats.XHR_STREAMING, "limit", before)


@contextmanager
def _watched_logs(defects: list[str]) -> Iterator[None]:
    """Take the log of the product: an exception in it is a defect, which is added to a list."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR and record.exc_info:
                error, trace = record.exc_info[1], record.exc_info[2]
                where = traceback.extract_tb(trace)[-1] if trace is not None else None
                text = f"{record.getMessage()}: {error!r}"
                defects.append(text if where is None else f"{text} in {where.name}:{where.lineno}")

    logger = logging.getLogger("realtime")
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [Handler()], False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.handlers, logger.propagate, level = before
        logger.setLevel(level)
