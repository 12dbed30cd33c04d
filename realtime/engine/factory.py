"""Engines by their names: the one place that knows all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.config import redis_options
from realtime.config.database_options import POSTGRESQL
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.dummy import DummyStore
from realtime.engine.postgresql.opening import PostgreSQLEngines
from realtime.engine.redis.opening import RedisEngines, RunOnKey
from realtime.engine.redis.redis_bus import RedisBus

if TYPE_CHECKING:
    from realtime.engine.postgresql.database import BlockingDatabase


class MemoryEngines:
    """Of nodes that make their own engine, in a process that is alone. See `Engines`."""

    is_shared = False
    """Whether processes are one service: publishing works from any of them."""
    server = ""
    """The name of the program that has the data of the engine; "" if there is none."""

    @staticmethod
    def answer_timeout(config: Config) -> float:
        """Return the seconds that a call of the engine may take."""
        return config.redis_read_timeout

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

    def panel_keys(self, config: Config) -> RunOnKey | None:
        """Return what runs commands on keys of the panel; None where processes share none."""
        return None

    def redis(self, config: Config) -> RedisBus | None:
        """Return the bus to the Redis that keeps streams and presence, for its doctor."""
        return None

    def database(self, config: Config) -> BlockingDatabase | None:
        """Return the database that keeps streams and presence, for its doctor; to be closed."""
        return None


EnginesOfAKind = MemoryEngines | RedisEngines | PostgreSQLEngines

ENGINES: dict[str, type[EnginesOfAKind]] = {
    "memory": MemoryEngines,
    redis_options.DUMMY: MemoryEngines,
    "redis": RedisEngines,
    POSTGRESQL: PostgreSQLEngines,
}
"""Name in the option `engine` → what makes engines of this name in one process."""


def is_shared(config: Config) -> bool:
    """Return whether processes are one service: publishing works from any of them."""
    return ENGINES[_name(config)].is_shared


def server_name(config: Config) -> str:
    """Return the name of the program that has the data of the engine; "" if there is none."""
    return ENGINES[_name(config)].server


def answer_timeout(config: Config) -> float:
    """Return the seconds that a call of the engine may take."""
    return ENGINES[_name(config)].answer_timeout(config)


def is_dummy(config: Config) -> bool:
    """Return whether what processes without clients publish goes nowhere."""
    return config.engine == redis_options.DUMMY


class Engines:
    """Makes the engines of one process. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._made = {name: kind() for name, kind in ENGINES.items()}

    def of(self, config: Config) -> EnginesOfAKind:
        """Return what makes the engines that the options ask for."""
        return self._made[_name(config)]


def _name(config: Config) -> str:
    return config.engine or ("redis" if redis_options.uses_redis(config) else "memory")
