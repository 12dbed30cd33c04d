"""Which engine the configuration asks for, and its parts."""

from __future__ import annotations

from typing import Any

from realtime.config import redis_options, sources
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.redis import layer
from realtime.engine.redis.carriers import (
    BlockingCarrier,
    BlockingTwoStepCarrier,
    LayerCarrier,
    Receiving,
    TwoStepCarrier,
)
from realtime.engine.redis.engine import RedisEngine, RedisStore
from realtime.engine.redis.layer import RedisChannelLayer


def is_shared(config: Config) -> bool:
    """Whether processes are one service: publishing works from any of them."""
    return redis_options.uses_redis(config)


class Engines:
    """Makes the engines of one process. They share one layer of ours, which has the connections.

    Not to be used by two threads at once.
    """

    def __init__(self) -> None:
        self._own: tuple[Config, RedisChannelLayer] | None = None

    def engine(self, config: Config) -> Engine | None:
        """Return the engine of a node that serves clients; None for the memory engine."""
        if not is_shared(config):
            return None
        own, foreign = self._layers(config)
        carrier: Receiving = TwoStepCarrier(own, foreign)
        if foreign is None:
            carrier = LayerCarrier(own, owned=not config.channel_layer)
        return RedisEngine(carrier, sources.redis_prefix(config), **_options(config))

    def blocking_store(self, config: Config) -> Store:
        """Return the store of a process or thread without a node; its coroutines never suspend."""
        own, foreign = self._layers(config)
        carrier = BlockingCarrier(own) if foreign is None else BlockingTwoStepCarrier(own, foreign)
        return RedisStore(carrier, sources.redis_prefix(config), **_options(config))

    def storage_layer(self, config: Config) -> RedisChannelLayer:
        """Return the layer whose Redis keeps streams and presence; for a shared engine only."""
        return self._layers(config)[0]

    def _layers(self, config: Config) -> tuple[RedisChannelLayer, Any]:
        """Return the layer that keeps, and the one that sends if it is another."""
        if not config.channel_layer:
            return self._own_layer(config), None
        named = layer.configured(config.channel_layer)
        if isinstance(named, RedisChannelLayer):
            return named, None
        return self._own_layer(config), named

    def _own_layer(self, config: Config) -> RedisChannelLayer:
        if self._own is None or self._own[0] is not config:
            own = RedisChannelLayer(
                hosts=redis_options.hosts(config),
                prefix=sources.redis_prefix(config),
                connect_timeout=config.redis_connect_timeout,
                timeout=config.redis_read_timeout,
            )
            self._own = config, own
        return self._own[1]


def _options(config: Config) -> dict[str, Any]:
    return {
        "meta_lifetime": config.redis_history_meta_ttl,
        "epoch_per_run": config.redis_epoch_per_run,
    }
