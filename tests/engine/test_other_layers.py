"""Nodes over other channel layers: Redis keeps, the layer sends, and what it drops is filled in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer
from channels_redis.core import RedisChannelLayer as CoreChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from realtime.engine.carriers import TwoStepCarrier
from realtime.engine.redis import RedisEngine
from realtime.layer import RedisChannelLayer
from realtime.node import Node
from realtime.options_reader import load
from tests.redis_server import RedisServer
from tests.unit.node_parts import PLAIN, RECOVERABLE, publish, published, subscribe
from tests.unit.parts import RecordingClient, eventually

CAPACITY = 5
"""Messages a mailbox of the layers that drop holds; the default is a hundred."""

LAYERS: dict[str, Callable[[str, str], Any]] = {
    "pubsub": lambda url, prefix: RedisPubSubChannelLayer(hosts=[url], prefix=prefix),
    "core": lambda url, prefix: CoreChannelLayer(hosts=[url], prefix=prefix),
    "core that drops": lambda url, prefix: CoreChannelLayer(
        hosts=[url], prefix=prefix, capacity=CAPACITY
    ),
    "memory": lambda url, prefix: InMemoryChannelLayer(),
    "memory that drops": lambda url, prefix: InMemoryChannelLayer(capacity=CAPACITY),
}


@pytest.fixture(params=LAYERS)
async def nodes(
    request: pytest.FixtureRequest, redis_server: RedisServer, unique: str
) -> AsyncIterator[Sequence[Node]]:
    """Two nodes of one service, over each layer."""
    foreign = LAYERS[request.param](redis_server.url, f"{unique}-foreign")
    started = []
    for _ in range(2):
        layer = RedisChannelLayer(hosts=[redis_server.url], prefix=unique)
        engine = RedisEngine(TwoStepCarrier(layer, foreign), unique)
        node = Node(load({}), engine)
        await node.start()
        started.append(node)
    yield started
    for node in started:
        await node.stop()
    if isinstance(foreign, CoreChannelLayer):
        await foreign.close_pools()
    elif isinstance(foreign, RedisPubSubChannelLayer):
        await foreign.flush()


async def test_publication_reaches_clients_of_both_nodes(
    nodes: Sequence[Node], unique: str
) -> None:
    clients = [RecordingClient(f"C{number}") for number in range(2)]
    for node, client in zip(nodes, clients, strict=True):
        await subscribe(node, client, PLAIN, unique)

    await publish(nodes[0], PLAIN, 1, unique)

    for client in clients:
        await eventually(lambda client=client: published(client) == [1])


async def test_publications_one_after_another_arrive_complete_and_in_order(
    nodes: Sequence[Node], unique: str
) -> None:
    clients = [RecordingClient(f"C{number}") for number in range(2)]
    for node, client in zip(nodes, clients, strict=True):
        await subscribe(node, client, RECOVERABLE, unique)

    for value in range(60):
        await publish(nodes[value % 2], RECOVERABLE, value, unique)

    for client in clients:
        await eventually(lambda client=client: len(published(client)) >= 60)
        assert published(client) == [*range(60)]
        assert client.closes == []


async def test_publications_of_a_burst_arrive_complete_and_in_order(
    nodes: Sequence[Node], unique: str
) -> None:
    """More at once than a mailbox holds: what the layer drops is read from the stream."""
    clients = [RecordingClient(f"C{number}") for number in range(2)]
    for node, client in zip(nodes, clients, strict=True):
        await subscribe(node, client, RECOVERABLE, unique)

    await asyncio.gather(
        *(publish(nodes[value % 2], RECOVERABLE, value, unique) for value in range(60))
    )
    history = (await nodes[0].engine.history(unique)).publications
    kept = [int(publication.data.raw) for publication in history]
    assert sorted(kept) == [*range(60)]

    # the end of a burst may be dropped too, which the next publication reveals
    await eventually(lambda: all(published(client) for client in clients))
    await publish(nodes[0], RECOVERABLE, 60, unique)
    for client in clients:
        await eventually(lambda client=client: len(published(client)) >= 61)
        assert published(client) == [*kept, 60]
        assert client.closes == []


async def test_end_that_the_layer_dropped_is_found_by_looking(
    nodes: Sequence[Node], unique: str
) -> None:
    client = RecordingClient()
    await subscribe(nodes[0], client, RECOVERABLE, unique)
    await publish(nodes[1], RECOVERABLE, 1, unique)
    await eventually(lambda: published(client) == [1])
    group = nodes[0].engine.keys.group(unique)
    carrier = nodes[0].engine._receiving
    await carrier.leave(group)
    await publish(nodes[1], RECOVERABLE, 2, unique)
    await carrier.join(group)

    following = nodes[0].hub.feeds[unique].following
    assert following is not None
    await following.check()

    assert published(client) == [1, 2]


async def test_user_is_disconnected_from_every_node(nodes: Sequence[Node], unique: str) -> None:
    client = RecordingClient("C", user=unique)
    nodes[1].opened(client)
    nodes[1].hub.add(client)

    await nodes[0].disconnect_user(unique)

    await eventually(lambda: client.close_codes == [3012])
    nodes[1].hub.remove(client)
    nodes[1].closed(client)
