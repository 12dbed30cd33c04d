"""Engines by their names: the one place that knows all of them."""

from __future__ import annotations

from realtime.config import redis_options
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.dummy import DummyStore
from realtime.engine.redis.opening import RedisEngines


class MemoryEngines:
    """Of nodes that make their own engine, in a process that is alone. See `Engines`."""

    is_shared = False
    """Whether processes are one service: publishing works from any of them."""

    def engine(self, config: Config) -> Engine | None:
        """Return the engine of a node that serves clients; None: a memory engine of its own."""
        return None

    def blocking_store(self, config: Config, timeout: float | None = None) -> Store:
        """Return the store of a process or thread without a node; its coroutines never suspend.

        Args:
            timeout: seconds to connect, and seconds to wait for a reply; None: as the options say.
        """
        return DummyStore()

    def labels(self, config: Config) -> list[str]:
        """Return where the servers of the engine are, without credentials."""
        return []


ENGINES: dict[str, type[MemoryEngines | RedisEngines]] = {
    "memory": MemoryEngines,
    redis_options.DUMMY: MemoryEngines,
    "redis": RedisEngines,
}
"""Name in the option `engine` → what makes engines of this name in one process."""


def is_shared(config: Config) -> bool:
    """Return whether processes are one service: publishing works from any of them."""
    return ENGINES[_name(config)].is_shared


def is_dummy(config: Config) -> bool:
    """Return whether what processes without clients publish goes nowhere."""
    return config.engine == redis_options.DUMMY


class Engines:
    """Makes the engines of one process. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._made = {name: kind() for name, kind in ENGINES.items()}

    def of(self, config: Config) -> MemoryEngines | RedisEngines:
        """Return what makes the engines that the options ask for."""
        return self._made[_name(config)]


def _name(config: Config) -> str:
    return config.engine or ("redis" if redis_options.uses_redis(config) else "memory")
