"""Servers: where the Redis of the service is, and how a bus reaches its parts.

    ShardServers     a list of servers; each is a shard, with ordinary pub/sub
    ClusterServers   a Redis Cluster; each partition is a shard, with sharded pub/sub

A shard is what is lost and comes back by itself, in a cluster with the others of its server.
"""

from __future__ import annotations

import binascii
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from realtime.engine.redis.partitions import Partitions
from realtime.engine.redis.scripts import APPEND, SEND_ONCE, Appended, sharded
from realtime.redis.blocking import BlockingRedis
from realtime.redis.blocking_cluster import BlockingCluster, BlockingRoute
from realtime.redis.cluster import Cluster, Route
from realtime.redis.commands import Script
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub import PubSub
from realtime.redis.sharded_pubsub import ShardedPubSub
from realtime.redis.slot_map import SlotMap
from realtime.redis.slots import slot_of

RING = 4096
"""Points of the ring of shards: as in channels_redis, with which nodes may share groups."""

OnShards = Callable[[Collection[int]], None]
"""Called with the indexes of shards."""
BlockingClient = BlockingRedis | BlockingRoute


class Wires(Protocol):
    """The connections of one event loop."""

    @property
    def commands(self) -> Sequence[Connection | Route]:
        """To each shard, for commands."""
        ...

    @property
    def confirming(self) -> Sequence[Connection | Route]:
        """To each shard, for messages that wait for replicas: other commands would wait, too."""
        ...

    @property
    def pubsub(self) -> Sequence[PubSub]:
        """Of each shard."""
        ...

    async def close(self) -> None:
        """Close all of them; bounded in time."""
        ...


class Servers(Protocol):
    """See the module. Belongs to no event loop or thread."""

    count: int
    """Number of shards."""
    publish: bytes
    """The command that sends to a Redis channel."""
    append: Script[Appended]
    send_once: Script[Appended]
    """The scripts that send, with that command."""

    def shard_of(self, channel: str) -> int:
        """Return the index of the shard of a Redis channel, or of a key of the panel."""
        ...

    def open(
        self,
        timeouts: Timeouts,
        on_message: Callable[[str, bytes], None],
        on_lost: OnShards,
        on_restored: OnShards,
    ) -> Wires:
        """Return connections of the running event loop, which open when they are needed."""
        ...

    def blocking(self, timeouts: Timeouts) -> Sequence[BlockingClient]:
        """Return the clients of threads for each shard."""
        ...

    def labels(self) -> list[str]:
        """Return where the servers are, without credentials."""
        ...

    def examined(self, clients: Sequence[BlockingClient]) -> list[tuple[str, BlockingClient]]:
        """Return each server once: where it is, and a client that reaches it.

        Raises:
            EngineUnavailable: no server says which ones there are.
        """
        ...

    def representatives(self) -> list[int]:
        """Return one shard of each server that is known."""
        ...

    def unserved(self) -> int:
        """Return how many shards have no server, as far as is known."""
        ...


class ShardServers:
    """A fixed list of servers; the same in the same order in every process."""

    publish = b"PUBLISH"
    append = APPEND
    send_once = SEND_ONCE

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts
        self.count = len(hosts)

    def shard_of(self, channel: str) -> int:
        if self.count == 1:
            return 0
        point = binascii.crc32(channel.encode()) % RING
        return int(point / (RING / self.count))

    def open(
        self,
        timeouts: Timeouts,
        on_message: Callable[[str, bytes], None],
        on_lost: OnShards,
        on_restored: OnShards,
    ) -> Wires:
        return _ShardWires(self.hosts, timeouts, on_message, on_lost, on_restored)

    def blocking(self, timeouts: Timeouts) -> Sequence[BlockingClient]:
        return [BlockingRedis(host, timeouts) for host in self.hosts]

    def labels(self) -> list[str]:
        return [host.label for host in self.hosts]

    def examined(self, clients: Sequence[BlockingClient]) -> list[tuple[str, BlockingClient]]:
        return list(zip(self.labels(), clients, strict=True))

    def representatives(self) -> list[int]:
        return list(range(self.count))

    def unserved(self) -> int:
        return 0


class _ShardWires:
    def __init__(
        self,
        hosts: Sequence[Host],
        timeouts: Timeouts,
        on_message: Callable[[str, bytes], None],
        on_lost: OnShards,
        on_restored: OnShards,
    ) -> None:
        self.commands = [Connection(host, timeouts) for host in hosts]
        self.confirming = [Connection(host, timeouts) for host in hosts]
        self.pubsub = [
            PubSub(
                host,
                timeouts,
                on_message=on_message,
                on_lost=functools.partial(on_lost, (index,)),
                on_restored=functools.partial(on_restored, (index,)),
            )
            for index, host in enumerate(hosts)
        ]

    async def close(self) -> None:
        for subscriptions in self.pubsub:
            await subscriptions.close()
        for connection in (*self.commands, *self.confirming):
            await connection.close()


class ClusterServers:
    """A Redis Cluster, of which some servers are named."""

    publish = b"SPUBLISH"
    append = sharded(APPEND)
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

    def open(
        self,
        timeouts: Timeouts,
        on_message: Callable[[str, bytes], None],
        on_lost: OnShards,
        on_restored: OnShards,
    ) -> Wires:
        return _ClusterWires(
            Cluster(self.map, timeouts),
            on_message=on_message,
            on_lost=on_lost,
            on_restored=on_restored,
        )

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


class _ClusterWires:
    def __init__(
        self,
        cluster: Cluster,
        *,
        on_message: Callable[[str, bytes], None],
        on_lost: OnShards,
        on_restored: OnShards,
    ) -> None:
        self._cluster = cluster
        self._pubsub = ShardedPubSub(
            cluster, on_message=on_message, on_lost=on_lost, on_restored=on_restored
        )
        self.commands = cluster.routes
        self.confirming = cluster.confirming
        self.pubsub = self._pubsub.parts

    async def close(self) -> None:
        await self._pubsub.close()
        await self._cluster.close()
