"""Keys of the panel in the engine of the service."""

from __future__ import annotations

from realtime.config import sources
from realtime.engine.redis.opening import RunOnKey
from realtime.serving import serving

RunInRedis = RunOnKey


def run_in_redis() -> RunInRedis | None:
    """Return what runs commands in the Redis of the service; None without Redis."""
    config = sources.current()
    return serving.engines(config).panel_keys(config)
