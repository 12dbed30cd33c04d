"""Scenario: a plan becomes a service, its load and its faults; then everything heals and is judged.

build ─► load and faults (`plan.length` s) ─► heal ─► quiet (`QUIET` s) ─► judge ─► stop ─► leaks
"""

from __future__ import annotations

import gc
import logging
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt

from realtime.channel_rules import options_of as channel_options
from realtime.clients.commands.listening import Listener
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import load
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.layer import hosts_of, new_serializer
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import ShardServers
from realtime.engine.redis.shards import Shards
from realtime.redis.commands import Wait
from realtime.redis.hosts import Timeouts
from realtime.serving import run_by_hand
from tests.simulation.clients import SimulatedClient
from tests.simulation.faults import FAULTS, NOT_COUNTED
from tests.simulation.judge import Judge
from tests.simulation.listeners import SimulatedListener
from tests.simulation.members import NodeProcess
from tests.simulation.network import Network
from tests.simulation.plan import CONFIRMED, MEMORY, SENTINEL, SHARDS, Plan, PlannedFault
from tests.simulation.redis_server import Shard
from tests.simulation.threads import ThreadProcess, blocking_calls
from tests.simulation.world import Process, World

QUIET = 100.0
"""Seconds without load and faults, until everything must be true again."""
STOPPING = 30.0
"""Seconds in which every node must have stopped."""
TIMEOUTS = Timeouts(1.0, 5.0)
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
    counts: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


def plan_of(seed: int, engine: str = "") -> Plan:
    """Return the plan of a seed."""
    return Plan.of(seed, {name: weight for name, (_, weight) in FAULTS.items()}, engine)


def play(plan: Plan, *, traces: bool = False) -> Result:
    """Play a plan, and judge it."""
    gc.disable()  # a collection in between would depend on what ran before
    gc.freeze()  # the collection after the run need not look at what was there before it
    try:
        return _play(plan, traces)
    finally:
        gc.collect()
        gc.unfreeze()
        gc.enable()


def _play(plan: Plan, traces: bool) -> Result:
    with _watched_logs() as defects:
        return Service(plan, defects, traces=traces).play()


class Service:
    """The service of one run."""

    def __init__(self, plan: Plan, defects: list[str], *, traces: bool) -> None:
        self.plan = plan
        self.world = World(plan.seed, defects)
        self.network = Network(self.world)
        self.judge = Judge(self.world)
        if traces:
            self.judge.trace = []
        self.config = _config(plan.history_size, plan.position_checks)
        replicated = plan.engine in (SENTINEL, CONFIRMED)
        self.meta = MetaSettings(
            epoch_per_run=plan.epoch_per_run,
            wait=Wait(1, 500) if plan.engine == CONFIRMED else None,
        )
        number = {MEMORY: 0, SHARDS: 2}.get(plan.engine, 1)
        self.shards = [
            Shard(self.world, self.network, f"redis{n}", replicated=replicated)
            for n in range(number)
        ]
        self.kept = [f"kept:{n}" for n in range(plan.channels)]
        self.nodes: list[NodeProcess] = []
        self.threads: list[ThreadProcess] = []
        self.clients: list[SimulatedClient] = []
        self.listeners: list[SimulatedListener] = []
        self.outside = Outside(self.world, "outside")
        self.network.add(self.outside)
        self.counts: dict[str, int] = {}
        self._is_loaded = True

    def _begin(self) -> None:
        plan, world = self.plan, self.world
        self.nodes = [NodeProcess(self, f"node{n}") for n in range(plan.nodes)]
        self.threads = [ThreadProcess(self, f"thread{n}") for n in range(plan.threads)]
        self.clients = [self._client(n) for n in range(plan.clients)]
        self.listeners = [self._listener(n) for n in range(plan.listeners)]
        world.after(world.random.expovariate(plan.rate), self._publish)
        for fault in plan.faults:
            world.at(fault.at, self._go_wrong, fault)
        if self.shards:
            world.at(5.0, self._save)

    def _client(self, number: int) -> SimulatedClient:
        chance = self.world.random
        channels = {channel: True for channel in self.kept if chance.random() < 0.8}
        if chance.random() < 0.3 or not channels:
            channels["plain:0"] = False
        return SimulatedClient(
            self,
            self.outside,
            f"client{number}",
            chance.choice((1, 2)),
            channels,
            "kept:all" if chance.random() < 0.3 else "",
        )

    def _listener(self, number: int) -> SimulatedListener:
        chance = self.world.random
        channels = chance.sample(self.kept, chance.randint(1, len(self.kept)))
        return SimulatedListener(self, self.outside, f"listener{number}", channels)

    @property
    def peers(self) -> list[SimulatedClient | SimulatedListener]:
        """All that get publications."""
        return [*self.clients, *self.listeners]

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
        hosts = hosts_of([shard.entry for shard in self.shards])
        return RedisBus(ShardServers(hosts), "sim", new_serializer(), TIMEOUTS)

    def _shard_of(self, channel: str) -> int:
        return Shards(self.new_bus(), "sim").shard(channel)

    # load

    def _publish(self) -> None:
        if not self._is_loaded:
            return
        chance = self.world.random
        channel = chance.choice([*self.kept, "kept:all", "plain:0"])
        for _ in range(1 if chance.random() < 0.8 else chance.randint(2, 20)):
            drawn = chance.random()
            if drawn < 0.15 and self.threads:
                chance.choice(self.threads).publish(channel, insists=chance.random() < 0.5)
            elif drawn < 0.3:
                chance.choice(self.clients).publish(channel)
            else:
                chance.choice(self.nodes).publish(channel)
        self.world.after(chance.expovariate(self.plan.rate), self._publish)

    def _publish_last(self) -> None:
        """Publish once more in each channel: what follows a gap shows it."""
        with self.world.answering():
            for channel in [*self.kept, "kept:all"]:
                self.nodes[0].publish(channel)

    def _save(self) -> None:
        for shard in self.shards:
            shard.master.save()

    def _go_wrong(self, fault: PlannedFault) -> None:
        if FAULTS[fault.name][0](self, random.Random(fault.seed)):
            self.judge.note(f"fault: {fault.name}")
            self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
            self.judge.faults += fault.name not in NOT_COUNTED

    # the end

    def play(self) -> Result:
        """Run the plan, and judge what came of it."""
        judge, world = self.judge, self.world
        with ExitStack() as last:
            last.callback(self._unwind)
            if self.threads or self.plan.threads:
                last.enter_context(blocking_calls(self))
            with world.answering():
                self._begin()
            world.run(self.plan.length)
            self._is_loaded = False
            judge.note("the load is over, and everything heals")
            world.run(QUIET / 2)
            self._publish_last()
            world.run(QUIET / 2)
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
            self.counts,
            judge.trace or [],
        )

    def _unwind(self) -> None:
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
                if subscription.has_history:
                    subscribed[client.name, subscription.channel] = self._top(subscription.channel)
        judge.check_complete(subscribed)
        self._check_presence()
        self._check_lists()

    def _top(self, channel: str) -> tuple[int, str]:
        """Return the top of a stream as it is kept; offset -1 if there is none."""
        if not self.shards:
            node = self.nodes[0].node
            assert node is not None
            position = run_by_hand(node.broker.positions([channel]))[0]
            return position.offset, position.epoch
        database = self.shards[self._shard_of(channel)].master.database
        run = f"-{database.replid[:8]}" if self.plan.epoch_per_run else ""
        if (meta := database.values.get(b"sim:meta:" + channel.encode())) is not None:
            return int(meta.get(b"s", b"0")), meta[b"e"].decode() + run
        epoch = database.values.get(b"sim:epoch")
        return (-1, "") if epoch is None else (0, epoch.decode() + run)

    def _check_presence(self) -> None:
        for channel in [*self.kept, "kept:all"]:
            expected = {
                client.client_id
                for client in self.clients
                if channel in client.subscriptions and client.is_settled
            }
            expected |= self._listening(channel)
            present = self._present(channel)
            if present is not None and present != expected:
                self.judge.fail(
                    f"present in {channel} and gone: {sorted(present - expected)}; there and not"
                    f" present: {sorted(expected - present)}"
                )

    def _listening(self, channel: str) -> set[str]:
        """Return the IDs of listeners, which do not know them."""
        return {
            connection.id
            for member in self.nodes
            if member.node is not None
            for connection in member.node._connections
            if isinstance(connection, Listener) and channel in connection.session.subscriptions
        }

    def _present(self, channel: str) -> set[str] | None:
        for shard in self.shards:
            values = shard.master.database.values
            expiry = values.get(b"sim:presence.expiry:" + channel.encode())
            if expiry is not None:
                now = self.world.unix_time() * 1000
                return {member.decode() for member, at in expiry.items() if at > now}
        return set() if self.shards else None

    def _check_lists(self) -> None:
        for shard in self.shards:
            values = shard.master.database.values
            nodes = values.get(b"sim:nodes.expiry")
            if nodes is None:
                continue
            now = self.world.unix_time() * 1000
            listed = {member.decode() for member, at in nodes.items() if at > now}
            expected = {member.node.uid for member in self.nodes if member.node is not None}
            if listed != expected:
                self.judge.fail(f"nodes {sorted(listed)} are listed, and {sorted(expected)} serve")
            channels = set()
            for uid in expected:
                channels |= set(values.get(b"sim:channels:" + uid.encode(), ()))
            wanted = {
                channel.encode()
                for client in self.peers
                for channel in client.subscriptions
                if client.is_settled
            }
            if channels != wanted:
                self.judge.fail(f"channels {channels} are listed, and {wanted} have subscribers")

    def _stop(self) -> None:
        for client in self.peers:
            client.stop()
        for member in self.nodes:
            if member.process.alive:
                member.process.spawn(member.stop())
        self.world.run(STOPPING)
        for member in self.nodes:
            if member.process.alive:
                self._check_stopped(member)

    def _check_stopped(self, member: NodeProcess) -> None:
        """Check that a node that has stopped left nothing behind."""
        loop = member.process.loop
        left = [*loop.tasks.keys() - member.serving, *loop.timers]
        if left:
            self.judge.fail(f"{member.name} left {left}")


@cache
def _config(history_size: int, position_checks: bool) -> Config:
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
    plain = {
        "name": "plain",
        "allow_subscribe_for_client": True,
        "allow_publish_for_client": True,
        "publish": True,
    }
    return load(
        {
            "token_hmac_secret_key": SECRET,
            "v3_use_offset": True,
            "client_channel_position_check_delay": 20 if position_checks else 0,
            "namespaces": [kept, plain],
        }
    )


@cache
def _token(user: str, channel: str) -> str:
    claims: dict[str, Any] = {"sub": user}
    if channel:
        claims["channels"] = [channel]
    return jwt.encode(claims, SECRET, algorithm="HS256")


@contextmanager
def _watched_logs() -> Iterator[list[str]]:
    """Take the log of the product: an exception in it is a defect. Yields the list of defects."""
    defects: list[str] = []

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
        yield defects
    finally:
        logger.handlers, logger.propagate, level = before
        logger.setLevel(level)
