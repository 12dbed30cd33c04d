"""One server of a Redis Cluster: it knows by itself who has which slots, and redirects commands.

What a server does with a command for keys:

    its own slot, which is stable    runs it
    its own slot, which moves away   runs it if it has all keys; ASK if it has none; else TRYAGAIN
    a slot that moves here           after ASKING runs it, but TRYAGAIN if it lacks one of several
    any other slot                   MOVED, to the master that it knows
    keys of several slots            CROSSSLOT

The commands of a script are held to the same. For sharded pub/sub keys do not count, and a replica
is as good as its master. A server that learns that it has a slot no more ends the sharded
subscriptions of the slot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from realtime.redis import slots
from tests.simulation.redis_database import Database
from tests.simulation.redis_server import LAG, Connection, RedisServer
from tests.simulation.redis_values import OK, RedisError, Reply, copied, encode

if TYPE_CHECKING:
    from tests.simulation.redis_cluster import ClusterShard

GOSSIP = 0.5
"""Seconds until the other servers know of a change, at most."""
REJOIN_MAX = 1.0
"""Seconds for which a server that starts says CLUSTERDOWN, at most."""

DOWN = "CLUSTERDOWN The cluster is down"
CROSS_SLOT = "CROSSSLOT Keys in request don't hash to the same slot"
TRY_AGAIN = "TRYAGAIN Multiple keys request during rehashing of slot"
NOT_LOCAL = "ERR Script attempted to access a non local key in a cluster node"

_SCRIPTS = (b"EVAL", b"EVALSHA")
_SHARDED = (b"SPUBLISH", b"SSUBSCRIBE", b"SUNSUBSCRIBE")
_MANY_KEYS = frozenset((b"DEL", b"EXISTS", b"SUNION", b"SSUBSCRIBE", b"SUNSUBSCRIBE"))
_KEYLESS = frozenset(
    (b"PING", b"CLIENT", b"INFO", b"TIME", b"SCRIPT", b"SCAN", b"KEYS", b"PUBLISH", b"WAIT")
)


@lru_cache(100_000)
def slot_of(key: bytes) -> int:
    """Return the slot of a key."""
    return slots.slot_of(key.decode())


def keys_of(name: bytes, command: Sequence[bytes]) -> Sequence[bytes]:
    """Return the keys of a command, or its channels of sharded pub/sub."""
    if name in _SCRIPTS:
        return command[3 : 3 + int(command[2])]
    if name in _MANY_KEYS:
        return command[1:]
    return () if name in _KEYLESS else command[1:2]


class ClusterDatabase(Database):
    """A database of which keys move away, one by one."""

    verify: Callable[[Sequence[bytes]], None] | None = None
    """Called with each command of the script that runs, while its slot moves."""

    def lacks(self, key: bytes) -> bool:
        """Return whether there is no such key."""
        return self._value(key) is None

    def keys_in(self, slot: int) -> list[bytes]:
        """Return the keys of a slot."""
        return [key for key in list(self.values) if slot_of(key) == slot]

    def keep_only(self, is_kept: Callable[[bytes], bool]) -> None:
        """Drop the keys of slots that others have."""
        for key in [key for key in self.values if not is_kept(key)]:
            self.values.pop(key)
            self.expiries.pop(key, None)

    def give(self, key: bytes, target: ClusterDatabase) -> None:
        """Move a key to another server, as MIGRATE does; one that is gone stays gone."""
        if not self.lacks(key):
            target.values[key] = copied(self.values[key])
            target._changed[key] = None
            if key in self.expiries:
                target.expiries[key] = self.expiries[key]
            self._drop(key)

    def _called(self, command: Sequence[bytes]) -> Reply:
        if self.verify is not None:
            self.verify(command)
        return super()._called(command)


class ClusterServer(RedisServer):
    """One server: a master, or a replica that redirects all commands for keys."""

    database: ClusterDatabase

    def __init__(self, shard: ClusterShard, name: str) -> None:
        self.shard = shard
        self.cluster = shard.cluster
        self.moved: dict[int, ClusterShard] = {}
        """Of the slots that moved, where each is, as far as this server knows."""
        self.masters: dict[ClusterShard, ClusterServer] = {}
        """The masters that it knows."""
        self.moving: dict[int, ClusterShard] = {}
        """Slots that move away, and where to."""
        self.coming: set[int] = set()
        """Slots that move here."""
        self.stale_until = 0.0
        """Until when it learns nothing."""
        self.down_until = 0.0
        """Until when it says that the cluster is down."""
        self.is_cut_off = False
        """Whether it reaches no other server."""
        super().__init__(shard.world, shard.network, name)

    def new_database(self) -> ClusterDatabase:
        return ClusterDatabase(self.world.unix_time, self.world.random.randbytes)

    # what it knows

    def go_down(self, until: float) -> None:
        """Say until then that the cluster is down."""
        self.down_until = max(self.down_until, until)

    def leave(self, slot: int) -> None:
        """Learn that a slot has moved away."""
        del self.moving[slot]
        self.learn(at_once=True)

    def learn(self, *, at_once: bool = False) -> None:
        """Learn what is true."""
        now = self.world.now
        if not at_once and (self.stale_until > now or self.is_cut_off or self.process.frozen):
            self.world.at(max(self.stale_until, now + GOSSIP), self.learn)
            return
        was_master = self.masters.get(self.shard) is self
        names = [name for name in self._subscribers if self._shard_of(slot_of(name)) is self.shard]
        self.moved = dict(self.cluster.moved)
        self.masters = {shard: shard.master for shard in self.cluster.shards}
        is_demoted = was_master and self.masters[self.shard] is not self
        for name in names:
            if is_demoted or self._shard_of(slot_of(name)) is not self.shard:
                self._end_subscriptions(name)

    def _shard_of(self, slot: int) -> ClusterShard:
        return self.moved.get(slot) or self.cluster.first_shard(slot)

    def _end_subscriptions(self, channel: bytes) -> None:
        for connection in self._subscribers.pop(channel):
            del connection.names[channel]
            connection.write(encode([b"sunsubscribe", channel, len(connection.names)]))

    # life

    def restart(self, keeps: str) -> None:
        super().restart(keeps)
        self.database.keep_only(lambda key: self.cluster.owner(slot_of(key)) is self.shard)
        self.down_until = self.world.now + self.world.random.random() * REJOIN_MAX
        self.learn(at_once=True)

    def follow(self, master: RedisServer) -> None:
        """As of one that has no Sentinels: connections stay."""
        self.database.become_replica(master.database)
        self.replicas = []
        self._caught_up_at = self.world.now
        if self not in master.replicas:
            master.replicas.append(self)
        blocked, self._blocked = self._blocked, {}
        for connection in blocked:
            connection.unblock()

    def promote(self) -> None:
        self.database.promote()

    def catch_up(self, master: RedisServer) -> None:
        """Have all that the master has written."""
        replid = self.database.replid
        self.database.become_replica(master.database)
        self.database.replid = replid

    # commands

    def answer(self, connection: Connection, command: Sequence[bytes]) -> None:
        name = command[0].upper()
        is_asking, connection.is_asking = connection.is_asking, name == b"ASKING"
        reply: Reply = OK
        if name == b"CLUSTER":
            reply = self._slots()
        elif name == b"ASKING":
            pass
        elif (error := self._redirection(name, command, is_asking)) is not None:
            reply = error
        elif name in (b"SSUBSCRIBE", b"SUNSUBSCRIBE"):
            self._change_subscriptions(connection, name, command[1:])
            return
        elif name in _SCRIPTS and (self.moving or self.coming):
            self.database.verify = partial(self._verify, is_asking)
            try:
                super().answer(connection, command)
            finally:
                self.database.verify = None
            return
        else:
            super().answer(connection, command)
            return
        connection.write(encode(reply))

    def _redirection(
        self, name: bytes, command: Sequence[bytes], is_asking: bool
    ) -> RedisError | None:
        keys = keys_of(name, command)
        if not keys:
            return None
        slot = slot_of(keys[0])
        for key in keys[1:]:
            if slot_of(key) != slot:
                return RedisError(CROSS_SLOT)
        if self.down_until > self.world.now:
            return RedisError(DOWN)
        shard = self._shard_of(slot)
        master = self.masters[shard]
        if master is self:
            target = self.moving.get(slot)
            return None if target is None else self._asks(slot, target, name, keys)
        if is_asking and slot in self.coming:
            is_partly_here = len(set(keys)) > 1 and any(map(self.database.lacks, keys))
            return RedisError(TRY_AGAIN) if is_partly_here and name not in _SHARDED else None
        if name in _SHARDED and shard is self.shard:
            return None  # a replica has the subscribers of its master's slots, too
        host, port = master.place
        return RedisError(f"MOVED {slot} {host}:{port}")

    def _asks(
        self, slot: int, target: ClusterShard, name: bytes, keys: Sequence[bytes]
    ) -> RedisError | None:
        missing = 0 if name in _SHARDED else sum(map(self.database.lacks, keys))
        if not missing:
            return None
        if missing < len(keys):
            return RedisError(TRY_AGAIN)
        host, port = self.masters[target].place
        return RedisError(f"ASK {slot} {host}:{port}")

    def _verify(self, is_asking: bool, command: Sequence[bytes]) -> None:
        if self._redirection(command[0].upper(), command, is_asking) is not None:
            raise RedisError(NOT_LOCAL)

    def _slots(self) -> Reply:
        rows = []
        for first, last, shard in self.cluster.ranges(self.moved):
            master = self.masters[shard]
            servers = [master, *(each for each in shard.servers if each is not master)]
            alive = [each for each in servers if each is master or each.process.alive]
            names = [[each.place[0].encode(), each.place[1], b"", []] for each in alive]
            rows.append([first, last, *names])
        return rows

    # pub/sub

    def _publish(self, channel: bytes, data: bytes) -> int:
        self.on_publish(self, data)
        for other in () if self.is_cut_off else self.shard.servers:
            if other is not self and channel in other._subscribers and not other.is_cut_off:
                self.world.after(self.world.random.random() * LAG, other.deliver, channel, data)
        return self.deliver(channel, data)

    def deliver(self, channel: bytes, data: bytes) -> int:
        """Send a message to the subscribers of this server."""
        subscribers = self._subscribers.get(channel, ())
        message = encode([b"smessage", channel, data])
        for connection in self.reached(subscribers, data):
            connection.write(message)
        return len(subscribers)
