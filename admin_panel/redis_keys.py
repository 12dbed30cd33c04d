"""Keys of the panel in the Redis of the service."""

from __future__ import annotations

from typing import Any, Protocol

from realtime.config import sources
from realtime.errors import EngineUnavailable
from realtime.redis.commands import Command
from realtime.serving import serving


class RunInRedis(Protocol):
    """Runs commands on one key of the panel in the Redis of the service, in one round trip."""

    def __call__(self, name: str, *commands: Command) -> list[Any]:
        """Run commands on the key with this name; they leave the key out.

        Raises:
            EngineUnavailable: Redis is away or refuses.
        """


def run_in_redis() -> RunInRedis | None:
    """Return what runs commands in the Redis of the service; None without Redis."""
    config = sources.current()
    bus, prefix = serving.redis_bus(config), sources.redis_prefix(config)
    if bus is None:
        return None

    def run(name: str, *commands: Command) -> list[Any]:
        key = f"{bus.partitions.root(prefix, name)}:panel:{name}"
        client = bus.blocking(bus.shard_of(key))
        replies = client.run_many([(command, key, *rest) for command, *rest in commands])
        for reply in replies:
            if isinstance(reply, EngineUnavailable):
                raise reply
        return replies

    return run
