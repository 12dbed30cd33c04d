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
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.store import RedisStore
from realtime.locks import ForkSafeLock

_lock = ForkSafeLock()
_own_layer: tuple[Config, RedisChannelLayer] | None = None


def is_shared(config: Config) -> bool:
    """Whether processes are one service: publishing works from any of them."""
    return redis_options.uses_redis(config)


def engine(config: Config) -> Engine | None:
    """The engine of a node that serves clients; None for the memory engine."""
    if not is_shared(config):
        return None
    own, foreign = _layers(config)
    carrier: Receiving = TwoStepCarrier(own, foreign)
    if foreign is None:
        carrier = LayerCarrier(own, owned=not config.channel_layer)
    return RedisEngine(carrier, sources.redis_prefix(), **_options(config))


def blocking_store(config: Config) -> Store:
    """The store of a process, or thread, that has no node; its coroutines never suspend."""
    own, foreign = _layers(config)
    carrier = BlockingCarrier(own) if foreign is None else BlockingTwoStepCarrier(own, foreign)
    return RedisStore(carrier, sources.redis_prefix(), **_options(config))


def keeping_layer(config: Config) -> RedisChannelLayer:
    """The layer whose Redis keeps streams and presence; for a shared engine only."""
    return _layers(config)[0]


def _options(config: Config) -> dict[str, Any]:
    return {
        "meta_lifetime": config.redis_history_meta_ttl,
        "epoch_per_run": config.redis_epoch_per_run,
    }


def _layers(config: Config) -> tuple[RedisChannelLayer, Any]:
    """The layer that keeps, and the one that sends if it is another."""
    if not config.channel_layer:
        return _own(config), None
    named = layer.configured(config.channel_layer)
    if isinstance(named, RedisChannelLayer):
        return named, None
    return _own(config), named


def _own(config: Config) -> RedisChannelLayer:
    """A layer of our own; one for the whole process, since it owns the connections."""
    global _own_layer
    with _lock:
        if _own_layer is None or _own_layer[0] is not config:
            made = RedisChannelLayer(
                hosts=redis_options.hosts(config),
                prefix=sources.redis_prefix(),
                connect_timeout=config.redis_connect_timeout,
                timeout=config.redis_read_timeout,
            )
            _own_layer = config, made
        return _own_layer[1]
