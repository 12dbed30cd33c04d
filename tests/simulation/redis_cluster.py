"""A Redis Cluster in the network: masters that share the slots, each with a replica that lags.

    Cluster        what is true: the shards, and the slots that moved
    ClusterShard   a master and its replica
    ClusterServer  what one server knows, which may be less

States of a slot, and the events that lead to them:

    STABLE   one shard has it
    MOVING   its keys move from the source to the target, one by one

    STABLE ── begin_move ──► MOVING ── the last key ──► STABLE at the target
    STABLE ── move_at_once ──► STABLE at the target

What may happen to a `ClusterShard`, besides a restart:

    planned   CLUSTER FAILOVER: the replica has everything, and takes over in one moment
    lost      the master is killed; the replica takes over, without what it had not got yet
    frozen    the master is frozen; it may serve on for a moment when it goes on
    cut off   the master is cut off from the others, and serves on until it notices
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from realtime.redis.slots import SLOTS
from tests.simulation.network import Network
from tests.simulation.redis_cluster_server import GOSSIP, ClusterServer, slot_of
from tests.simulation.redis_server import Shard
from tests.simulation.world import World

NODE_TIMEOUT = 2.0
"""Seconds after which a master that is cut off serves no more."""
STALE_MAX = 0.05
"""Seconds until a server that is asked knows that it is no master, or that a slot left, at most."""
STEP = 0.05
"""Seconds from one key that moves to the next, on average."""
STEPS = 20
"""Where a slot has more keys than that, several move in one step."""
MASTERS = 3


class ClusterShard(Shard):
    """A master and its replica."""

    master: ClusterServer
    replica: ClusterServer
    failovers = ("planned", "lost", "frozen", "cut off")

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        super().__init__(cluster.world, cluster.network, name, replicated=True)

    def new_server(self, name: str) -> ClusterServer:
        return ClusterServer(self, name)

    def watch(self, name: str) -> None:
        """No Sentinels: the servers watch each other."""

    @property
    def servers(self) -> Sequence[ClusterServer]:
        return self.master, self.replica

    @property
    def is_moving(self) -> bool:
        """Whether a slot is moving to it, or from it."""
        return bool(self.master.moving or self.master.coming)

    @property
    def is_well(self) -> bool:
        return super().is_well and not any(server.process.frozen for server in self.servers)

    @property
    def may_fail_over(self) -> bool:
        """A replica does not know which slots move, so nobody does both at a time."""
        return super().may_fail_over and not self.is_moving

    def restart(self, keeps: str, seconds: float) -> None:
        """As of one server. Keys of a slot that moves are at two servers: none may lose some."""
        super().restart("all" if self.is_moving else keeps, seconds)

    def fail_over(self, how: str, chance: Callable[[float, float], float]) -> None:
        """Make the replica the master; see the module for `how`."""
        old, new = self.master, self.replica
        self._is_failing_over = True
        if how == "planned":
            new.catch_up(old)
            self._swap(chance)
            self._rejoin(old)
            return
        self.on_loss()
        until = NODE_TIMEOUT + chance(0.2, 6.0)
        if how == "lost":
            old.process.kill()
        elif how == "frozen":
            old.process.freeze()
        else:
            old.is_cut_off, old.replicas = True, []
            self.world.after(NODE_TIMEOUT, old.go_down, float("inf"))
        if chance(0.0, 1.0) < 0.5:  # with cluster-require-full-coverage
            self.world.after(NODE_TIMEOUT, self.cluster.go_down, self.world.now + until, old)
        self.world.after(until, self._swap, chance)
        self.world.after(until + chance(0.1, 4.0), self._come_back, old, how, chance)

    def _swap(self, chance: Callable[[float, float], float]) -> None:
        self.on_loss()
        old, new = self.master, self.replica
        old.replicas = []
        new.promote()
        self.master, self.replica = new, old
        new.learn(at_once=True)
        self.cluster.tell(chance)

    def _come_back(
        self, old: ClusterServer, how: str, chance: Callable[[float, float], float]
    ) -> None:
        if how == "lost":
            old.restart("all")
        if self.cluster.serves_late:
            old.process.thaw()
            self.world.after(chance(0.0, STALE_MAX), self._rejoin, old)
        else:
            self._rejoin(old)
            old.process.thaw()

    def _rejoin(self, old: ClusterServer) -> None:
        self.on_loss()
        old.is_cut_off, old.down_until = False, 0.0
        old.learn(at_once=True)
        old.follow(self.master)
        self._is_failing_over = False


class Cluster:
    """See the module."""

    def __init__(
        self, world: World, network: Network, tags: Sequence[str], *, serves_late: bool = False
    ) -> None:
        """
        Args:
            tags: hash tags of the keys; only their slots move.
            serves_late: a master that was frozen, and has been replaced, runs some commands before
                it hears of that. Whoever does not wait for replicas takes them for done.
        """
        self.serves_late = serves_late
        self.world = world
        self.network = network
        self.slots = [slot_of(tag.encode()) for tag in tags]
        self.moved: dict[int, ClusterShard] = {}
        """Where the slots are that moved."""
        self.shards = [ClusterShard(self, f"redis{number}") for number in range(MASTERS)]
        self._starts = [number * SLOTS // MASTERS for number in range(MASTERS)]
        """The first slot of each shard."""
        for server in self.servers:
            server.learn(at_once=True)

    @property
    def servers(self) -> list[ClusterServer]:
        return [server for shard in self.shards for server in shard.servers]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Some of the servers, as the options name them."""
        return [shard.entry for shard in self.shards[:2]]

    # what is true

    def owner(self, slot: int) -> ClusterShard:
        """Return the shard that has a slot."""
        return self.moved.get(slot) or self.first_shard(slot)

    def first_shard(self, slot: int) -> ClusterShard:
        """Return the shard that had a slot at the beginning."""
        return self.shards[bisect_right(self._starts, slot) - 1]

    def ranges(self, moved: Mapping[int, ClusterShard]) -> Iterator[tuple[int, int, ClusterShard]]:
        """Yield ranges of slots and their shards, for a server that knows of these moves."""
        for start, end in pairwise([*self._starts, SLOTS]):
            shard = self.first_shard(start)
            for slot in sorted(slot for slot in moved if start <= slot < end):
                if start < slot:
                    yield start, slot - 1, shard
                yield slot, slot, moved[slot]
                start = slot + 1
            if start < end:
                yield start, end - 1, shard

    def tell(self, chance: Callable[[float, float], float]) -> None:
        """Let all servers learn what is true, soon."""
        for server in self.servers:
            self.world.after(chance(0.0, GOSSIP), server.learn)

    def go_down(self, until: float, without: ClusterServer) -> None:
        """Let all servers but one say for a while that the cluster is down."""
        for server in self.servers:
            if server is not without:
                server.go_down(until)

    # slots that move

    def begin_move(self, slot: int, target: ClusterShard, chance: Random) -> None:
        """Begin to move a slot, one key after another."""
        source = self.owner(slot)
        target.master.coming.add(slot)
        source.master.moving[slot] = target
        self.world.after(chance.expovariate(1 / STEP), self._step, slot, target, [], chance)

    def _step(self, slot: int, target: ClusterShard, keys: list[bytes], chance: Random) -> None:
        source = self.owner(slot)
        if source.is_well and target.is_well:
            if not keys:
                keys = source.master.database.keys_in(slot)
                chance.shuffle(keys)
            if not keys:
                self._end_move(slot, source, target, chance)
                return
            self.give([keys.pop() for _ in range(1 + len(keys) // STEPS)], source, target)
        self.world.after(chance.expovariate(1 / STEP), self._step, slot, target, keys, chance)

    def give(self, keys: Sequence[bytes], source: ClusterShard, target: ClusterShard) -> None:
        """Move some keys of one shard to another one."""
        for key in keys:
            source.master.database.give(key, target.master.database)
        for master in (target.master, source.master):
            master.replicate()

    def _end_move(
        self, slot: int, source: ClusterShard, target: ClusterShard, chance: Random
    ) -> None:
        self.moved[slot] = target
        target.master.coming.discard(slot)
        target.master.learn(at_once=True)
        self.world.after(chance.uniform(0.0, STALE_MAX), source.master.leave, slot)
        self.tell(chance.uniform)

    def move_at_once(self, slots: Sequence[int], target: ClusterShard, chance: Random) -> None:
        """Move slots of one shard with all of their keys in one moment."""
        source = self.owner(slots[0])
        for slot in slots:
            self.give(source.master.database.keys_in(slot), source, target)
            self.moved[slot] = target
        for shard in (target, source):
            shard.master.learn(at_once=True)
        self.tell(chance.uniform)
