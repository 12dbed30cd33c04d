"""Servers: where the Redis of the service is, and how a bus reaches its parts.

    ShardServers     a list of servers; each is a shard, with ordinary pub/sub
    ClusterServers   a Redis Cluster; each partition is a shard, with sharded pub/sub

A shard is what is lost and comes back by itself, in a cluster with the others of its server.
"""

from __future__ import annotations

import binascii
import functools
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.scripts import APPEND, PUT, SEND_ONCE, sharded
from realtime.redis.blocking import BlockingRedis
from realtime.redis.blocking_cluster import BlockingCluster, BlockingRoute
from realtime.redis.cluster import LoopCluster, Route
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.master import Master, OnMoved
from realtime.redis.pubsub import PubSub
from realtime.redis.sharded_pubsub import ShardedPubSub
from realtime.redis.slot_map import SlotMap
from realtime.redis.slots import slot_of

RING = 4096
"""Points of the ring of shards: as in channels_redis, with which nodes may share groups."""

OnShards = Callable[[Collection[int]], None]
"""Called with the indexes of shards."""
BlockingClient = BlockingRedis | BlockingRoute


class Handlers(NamedTuple):
    """What is called while an event loop receives."""

    on_message: Callable[[str, bytes], None]
    """With each message: its Redis channel and its bytes."""
    on_lost: OnShards
    """Messages of these shards may be missed from now on."""
    on_restored: OnShards
    """All of them are received again."""


class LoopConnections(NamedTuple):
    """The connections of one event loop. They open when they are needed."""

    commands: Sequence[Connection | Route]
    """To each shard, for commands."""
    confirming: Sequence[Connection | Route]
    """To each shard, for messages that wait for replicas: other commands would wait, too."""
    pubsub: Sequence[PubSub]
    """Of each shard."""
    close: Callable[[], Awaitable[None]]
    """Close all of them; bounded in time."""


class ShardServers:
    """A fixed list of servers; the same in the same order in every process."""

    publish = b"PUBLISH"
    append = APPEND
    put = PUT
    send_once = SEND_ONCE

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts
        self.count = len(hosts)

    def shard_of(self, channel: str) -> int:
        """Return the index of the shard of a Redis channel, or of a key of the panel."""
        if self.count == 1:
            return 0
        point = binascii.crc32(channel.encode()) % RING
        return int(point / (RING / self.count))

    def shards_with(self, key: str) -> Sequence[int]:
        """Return the shards that may have a key."""
        return range(self.count)

    def open(self, timeouts: Timeouts, handlers: Handlers, on_moved: OnMoved) -> LoopConnections:
        """Return connections of the running event loop.

        Args:
            on_moved: called when Sentinels name another master.
        """
        masters = [Master(host, timeouts, on_moved) for host in self.hosts]
        with_master = list(zip(self.hosts, masters, strict=True))
        commands = [Connection(host, timeouts, master) for host, master in with_master]
        confirming = [Connection(host, timeouts, master) for host, master in with_master]
        pubsub = [
            PubSub(
                host,
                timeouts,
                on_message=handlers.on_message,
                on_lost=functools.partial(handlers.on_lost, (index,)),
                on_restored=functools.partial(handlers.on_restored, (index,)),
                master=master,
            )
            for index, (host, master) in enumerate(with_master)
        ]

        async def close() -> None:
            for subscriptions in pubsub:
                await subscriptions.close()
            for connection in (*commands, *confirming):
                await connection.close()

        return LoopConnections(commands, confirming, pubsub, close)

    def asks_sentinels(self, shard: int) -> bool:
        """Return whether Sentinels name the server of a shard."""
        return bool(self.hosts[shard].sentinels)

    def blocking(self, timeouts: Timeouts) -> Sequence[BlockingClient]:
        """Return the clients of threads for each shard."""
        return [BlockingRedis(host, timeouts) for host in self.hosts]

    def labels(self) -> list[str]:
        """Return where the servers are, without credentials."""
        return [host.label for host in self.hosts]

    def examined(self, clients: Sequence[BlockingClient]) -> list[tuple[str, BlockingClient]]:
        """Return each server once: where it is, and a client that reaches it.

        Raises:
            EngineUnavailable: no server says which ones there are.
        """
        return list(zip(self.labels(), clients, strict=True))

    def representatives(self) -> list[int]:
        """Return one shard of each server that is known."""
        return list(range(self.count))

    def unserved(self) -> int:
        """Return how many shards have no server, as far as is known."""
        return 0


class ClusterServers:
    """A Redis Cluster, of which some servers are named."""

    publish = b"SPUBLISH"
    append = sharded(APPEND)
    put = sharded(PUT)
    send_once = sharded(SEND_ONCE)

    def __init__(self, hosts: Sequence[Host], partitions: Partitions) -> None:
        """
        Args:
            hosts: servers that know the others.
            partitions: at least one.
        """
        self._partitions = partitions
        self.count = partitions.count
        self.map = SlotMap(hosts, [slot_of(tag) for tag in partitions.tags])

    def shard_of(self, channel: str) -> int:
        return self._partitions.named(channel)

    def shards_with(self, key: str) -> Sequence[int]:
        return (self._partitions.named(key),)

    def open(self, timeouts: Timeouts, handlers: Handlers, on_moved: OnMoved) -> LoopConnections:
        cluster = LoopCluster(self.map, timeouts)
        pubsub = ShardedPubSub(cluster, **handlers._asdict())

        async def close() -> None:
            await pubsub.close()
            await cluster.close()

        return LoopConnections(cluster.routes, cluster.confirming, pubsub.parts, close)

    def asks_sentinels(self, shard: int) -> bool:
        return False

    def blocking(self, timeouts: Timeouts) -> Sequence[BlockingClient]:
        cluster = BlockingCluster(self.map, timeouts)
        return [BlockingRoute(cluster, slot) for slot in self.map.slots]

    def labels(self) -> list[str]:
        places = self.map.primaries() or self.map.others()
        return [self.map.at(place).label for place in places]

    def examined(self, clients: Sequence[BlockingClient]) -> list[tuple[str, BlockingClient]]:
        route = clients[0]
        assert isinstance(route, BlockingRoute)
        if not self.map.places:
            route.cluster.load()
        return [
            (self.map.at(place).label, route.cluster.client(place))
            for place in self.map.primaries()
        ]

    def representatives(self) -> list[int]:
        places = self.map.places
        first = {
            places[slot]: index
            for index, slot in reversed(list(enumerate(self.map.slots)))
            if slot in places
        }
        return sorted(first.values()) or [0]

    def unserved(self) -> int:
        places = self.map.places
        return sum(slot not in places for slot in self.map.slots)


Servers = ShardServers | ClusterServers
"""Belong to no event loop or thread."""
