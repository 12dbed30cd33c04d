"""Two nodes over the service's own layer, or over third-party layers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from channels.layers import InMemoryChannelLayer
from channels_redis.core import RedisChannelLayer as CoreChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from realtime.config.reader import load
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.foreign import ForeignGroups
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.node.node import Node
from tests.engine.redis_bench import close_layer
from tests.redis_server import RedisServer

OWN, SHARDS = "own layer", "own layer, shards"

CAPACITY = 5
"""Messages a mailbox of the layers that drop holds; the default is a hundred."""


def core(url: str, prefix: str, **options: Any) -> CoreChannelLayer:
    """The layer of lists. It waits in Redis for longer than redis-py 8 does by itself."""
    return CoreChannelLayer(
        hosts=[{"address": url, "socket_timeout": None}], prefix=prefix, **options
    )


LAYERS: dict[str, Callable[[str, str], Any]] = {
    "pubsub": lambda url, prefix: RedisPubSubChannelLayer(hosts=[url], prefix=prefix),
    "core": core,
    "core that drops": lambda url, prefix: core(url, prefix, capacity=CAPACITY),
    "memory": lambda url, prefix: InMemoryChannelLayer(),
    "memory that drops": lambda url, prefix: InMemoryChannelLayer(capacity=CAPACITY),
}


def two_step_node(server: RedisServer, prefix: str, foreign: Any) -> Node:
    """A node whose messages a third-party layer sends."""
    layer = RedisChannelLayer(hosts=[server.url], prefix=prefix)
    return Node(load({}), RedisEngine(layer.bus, prefix, groups=ForeignGroups(layer.bus, foreign)))


def own_node(servers: Sequence[RedisServer], prefix: str, **options: Any) -> Node:
    """A node whose messages the service's own layer sends. `options`: those of the layer."""
    layer = RedisChannelLayer(hosts=[server.url for server in servers], prefix=prefix, **options)
    return Node(load({}), RedisEngine(layer.bus, prefix))


@asynccontextmanager
async def two_nodes(
    kind: str, servers: Sequence[RedisServer], prefix: str, **options: Any
) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes of one service that were started; a node may be stopped before the end.

    `kind`: one of `LAYERS`, `OWN` or `SHARDS`. `options`: those of the service's own layer.
    """
    foreign: list[Any] = []
    if kind in LAYERS:
        foreign = [LAYERS[kind](servers[0].url, f"{prefix}-foreign") for _ in range(2)]
        if isinstance(foreign[0], InMemoryChannelLayer):
            foreign[1] = foreign[0]  # it does not leave its process
        nodes = [two_step_node(servers[0], prefix, layer) for layer in foreign]
    else:
        used = servers if kind == SHARDS else servers[:1]
        nodes = [own_node(used, prefix, **options) for _ in range(2)]
    for node in nodes:
        await node.start()
    try:
        yield nodes[0], nodes[1]
    finally:
        for node in nodes:
            await node.stop()
        for layer in foreign:
            if isinstance(layer, CoreChannelLayer):
                await layer.close_pools()
            elif isinstance(layer, RedisPubSubChannelLayer):
                await close_layer(layer)
