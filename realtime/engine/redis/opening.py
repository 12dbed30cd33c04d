"""What the Redis engines of a process are made of, as the options say; see `engine.factory`."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from channels.layers import channel_layers

from realtime import channel_rules
from realtime.config import redis_options, sources
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.epochs import glanced_lifetime
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.engine import RedisEngine, RedisStore
from realtime.engine.redis.foreign import ForeignGroups, ForeignLayer, blocking_send
from realtime.engine.redis.layer import RedisChannelLayer, hosts_of, new_serializer
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.engine.redis.redis_bus import RedisBus, RedisGroups
from realtime.engine.redis.servers import ClusterServers, ShardServers
from realtime.errors import EngineUnavailable
from realtime.redis.blocking_cluster import Routed, run_many
from realtime.redis.commands import Command, Reply, Wait
from realtime.redis.hosts import Host, Timeouts


class RunOnKey(Protocol):
    """Runs commands on one key of the panel, in one round trip."""

    def __call__(self, name: str, *commands: Command) -> list[Reply]:
        """Run commands on the key with this name; they leave the key out.

        Raises:
            EngineUnavailable: the engine is away or refuses.
        """


class RedisEngines:
    """Makes the Redis engines of one process. They share one bus, which has the connections."""

    is_shared = True
    server = "Redis"

    @staticmethod
    def answer_timeout(config: Config) -> float:
        return config.redis_read_timeout

    def __init__(self) -> None:
        self._own: tuple[Config, RedisBus] | None = None

    def engine(self, config: Config) -> Engine:
        redis, layer = self._buses(config)
        groups = (
            RedisGroups(redis, owned=not config.channel_layer)
            if layer is None
            else ForeignGroups(redis, layer)
        )
        return RedisEngine(redis, sources.redis_prefix(config), _meta(config), groups)

    def blocking_store(self, config: Config, timeout: float | None = None) -> Store:
        redis, layer = self._buses(config)
        if timeout is not None:
            redis = redis.with_timeouts(Timeouts(timeout, timeout))
        send = None if layer is None else blocking_send(layer)
        return RedisStore(redis, sources.redis_prefix(config), _meta(config), send)

    def labels(self, config: Config) -> list[str]:
        return self.redis(config).servers.labels()

    def redis(self, config: Config) -> RedisBus:
        return self._buses(config)[0]

    def database(self, config: Config) -> None:
        return None

    def panel_keys(self, config: Config) -> RunOnKey:
        bus, prefix = self.redis(config), sources.redis_prefix(config)

        def run(name: str, *commands: Command) -> list[Reply]:
            key = f"{bus.partitions.root(prefix, name)}:panel:{name}"
            client = bus.blocking(bus.shard_of(key))
            replies = run_many(
                [Routed(client, (command, key, *rest)) for command, *rest in commands]
            )
            for reply in replies:
                if isinstance(reply, EngineUnavailable):
                    raise reply
            return replies

        return run

    def _buses(self, config: Config) -> tuple[RedisBus, ForeignLayer | None]:
        """Return the bus to the Redis that keeps, and the layer that sends if it is another."""
        if not config.channel_layer:
            return self._own_bus(config), None
        layer = channel_layers[config.channel_layer]
        if isinstance(layer, RedisChannelLayer):
            return layer.bus, None
        return self._own_bus(config), layer

    def _own_bus(self, config: Config) -> RedisBus:
        if self._own is None or self._own[0] is not config:
            self._own = config, _bus(config)
        return self._own[1]


def _bus(config: Config) -> RedisBus:
    count, servers = config.redis_partitions, redis_options.hosts(config)
    is_cluster = redis_options.is_cluster(config)
    partitions = Partitions(count or (DEFAULT_PARTITIONS if is_cluster else 0))
    hosts = [Host(entry) for entry in servers] if is_cluster else hosts_of(servers)
    return RedisBus(
        ClusterServers(hosts, partitions) if is_cluster else ShardServers(hosts),
        sources.redis_prefix(config),
        new_serializer(),
        Timeouts(config.redis_connect_timeout, config.redis_read_timeout),
        partitions,
    )


def _meta(config: Config) -> MetaSettings:
    wait = Wait(config.redis_wait_replicas, int(config.redis_wait_timeout * 1000))
    return MetaSettings(
        config.redis_history_meta_ttl,
        config.redis_epoch_per_run,
        wait if wait.replicas else None,
        glanced_lifetime(config),
        partial(channel_rules.meta_ttl, config),
        glanced_lifetime(config),
    )
