"""Which engine the configuration asks for, and its parts."""

from __future__ import annotations

from channels.layers import channel_layers

from realtime.config import redis_options, sources
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.dummy import DummyStore
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.bus import Bus, NodeBus, RedisBlockingBus, RedisNodeBus
from realtime.engine.redis.engine import RedisEngine, RedisStore
from realtime.engine.redis.foreign import ForeignBlockingBus, ForeignLayer, ForeignNodeBus
from realtime.engine.redis.layer import RedisChannelLayer, new_serializer
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import ClusterServers
from realtime.engine.traced import traced_store
from realtime.redis.commands import Wait
from realtime.redis.hosts import Host, Timeouts


def is_shared(config: Config) -> bool:
    """Whether processes are one service: publishing works from any of them."""
    return redis_options.uses_redis(config)


def is_dummy(config: Config) -> bool:
    """Whether what processes without clients publish goes nowhere."""
    return config.engine == redis_options.DUMMY


class Engines:
    """Makes the engines of one process. They share one bus, which has the connections.

    Not to be used by two threads at once.
    """

    def __init__(self) -> None:
        self._own: tuple[Config, RedisBus] | None = None

    def engine(self, config: Config) -> Engine | None:
        """Return the engine of a node that serves clients; None for the memory engine.

        A node has the memory engine, too, where the option says `dummy`.
        """
        if not is_shared(config):
            return None
        redis, foreign = self._buses(config)
        bus: NodeBus = (
            RedisNodeBus(redis, owned=not config.channel_layer)
            if foreign is None
            else ForeignNodeBus(redis, foreign)
        )
        return RedisEngine(bus, sources.redis_prefix(config), _meta(config))

    def blocking_store(self, config: Config, timeout: float | None = None) -> Store:
        """Return the store of a process or thread without a node; its coroutines never suspend.

        Args:
            timeout: seconds to connect, and seconds to wait for a reply; None: as the options say.
        """
        if is_dummy(config):
            return DummyStore()
        redis, foreign = self._buses(config)
        if timeout is not None:
            redis = redis.with_timeouts(Timeouts(timeout, timeout))
        bus: Bus = (
            RedisBlockingBus(redis) if foreign is None else ForeignBlockingBus(redis, foreign)
        )
        store = RedisStore(bus, sources.redis_prefix(config), _meta(config))
        return traced_store(store, config)

    def redis_bus(self, config: Config) -> RedisBus:
        """Return the bus to the Redis that keeps streams and presence; for a shared engine only."""
        return self._buses(config)[0]

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
            if redis_options.is_cluster(config):
                self._own = config, _cluster_bus(config)
                return self._own[1]
            layer = RedisChannelLayer(
                hosts=redis_options.hosts(config),
                prefix=sources.redis_prefix(config),
                connect_timeout=config.redis_connect_timeout,
                timeout=config.redis_read_timeout,
                partitions=config.redis_partitions,
            )
            self._own = config, layer.bus
        return self._own[1]


def _cluster_bus(config: Config) -> RedisBus:
    partitions = Partitions(config.redis_partitions or DEFAULT_PARTITIONS)
    hosts = [Host(entry) for entry in redis_options.hosts(config)]
    return RedisBus(
        ClusterServers(hosts, partitions),
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
    )
