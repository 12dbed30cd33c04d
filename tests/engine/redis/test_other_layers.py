"""Nodes over other channel layers: Redis keeps, the layer sends, and what it drops is filled in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer

from realtime.config.options import ChannelOptions
from realtime.engine import records
from realtime.engine.base import Outgoing
from realtime.engine.records import Message
from realtime.engine.redis import foreign
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.foreign import ForeignGroups
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.errors import NoReply
from realtime.node.node import Node
from realtime.protocol.messages import Publication
from tests.engine.bench import RecordingReceiver
from tests.engine.layered_nodes import LAYERS, two_nodes, two_step_node
from tests.redis_server import RedisServer
from tests.unit.node.node_parts import PLAIN, RECOVERABLE, publish, published, subscribe
from tests.unit.parts import RecordingClient, data, eventually


@pytest.fixture(params=LAYERS)
async def nodes(
    request: pytest.FixtureRequest, redis_server: RedisServer, unique: str
) -> AsyncIterator[Sequence[Node]]:
    """Two nodes of one service, over each layer."""
    async with two_nodes(request.param, [redis_server], unique) as started:
        yield started


@pytest.mark.parametrize("options", [PLAIN, RECOVERABLE], ids=["plain", "recoverable"])
async def test_publications_that_begin_side_by_side_are_sent_in_their_order(
    nodes: Sequence[Node], unique: str, options: ChannelOptions
) -> None:
    sent: list[int] = []
    send = nodes[0].broker._send  # type: ignore[attr-defined]

    async def the_last_ones_first(group: str, message: Message, position: object) -> None:
        value = int(records.to_publication(message, 0).data.raw)
        await asyncio.sleep(0.01 * (5 - value))
        sent.append(value)
        await send(group, message, position)

    nodes[0].broker._send = the_last_ones_first  # type: ignore[attr-defined]
    await asyncio.gather(*(publish(nodes[0], options, value, unique) for value in range(5)))

    assert sent == [*range(5)]


async def test_layer_that_hangs_holds_up_a_channel_for_a_time_only(
    redis_server: RedisServer, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "SEND_TIMEOUT", 0.2)
    layer = InMemoryChannelLayer()
    send, hangs = layer.group_send, asyncio.Event()

    async def hang_once(group: str, message: Message) -> None:
        if not hangs.is_set():
            hangs.set()
            await asyncio.Event().wait()
        await send(group, message)

    monkeypatch.setattr(layer, "group_send", hang_once)
    node = two_step_node(redis_server, unique, layer)
    await node.start()
    client = RecordingClient("C")
    await subscribe(node, client, PLAIN, unique)

    first = asyncio.create_task(publish(node, PLAIN, 1, unique))
    await hangs.wait()
    async with asyncio.timeout(60):
        await publish(node, PLAIN, 2, unique)
        with pytest.raises(NoReply):
            await first

    await eventually(lambda: published(client) == [2])
    await node.stop()


async def test_publication_reaches_clients_of_both_nodes(
    nodes: Sequence[Node], unique: str
) -> None:
    clients = [RecordingClient(f"C{number}") for number in range(2)]
    for node, client in zip(nodes, clients, strict=True):
        await subscribe(node, client, PLAIN, unique)

    await publish(nodes[0], PLAIN, 1, unique)

    for client in clients:
        await eventually(lambda client=client: published(client) == [1])  # type: ignore[misc]


async def test_publications_one_after_another_arrive_complete_and_in_order(
    nodes: Sequence[Node], unique: str
) -> None:
    clients = [RecordingClient(f"C{number}") for number in range(2)]
    for node, client in zip(nodes, clients, strict=True):
        await subscribe(node, client, RECOVERABLE, unique)

    for value in range(60):
        await publish(nodes[value % 2], RECOVERABLE, value, unique)

    for client in clients:
        await eventually(lambda client=client: len(published(client)) >= 60)  # type: ignore[misc]
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
    history = (await nodes[0].broker.history(unique)).publications
    kept = [int(publication.data.raw) for publication in history]
    assert sorted(kept) == [*range(60)]

    # the end of a burst may be dropped too, which the next publication reveals, unless the mailbox
    # is still so full that it drops this one
    await eventually(lambda: all(published(client) for client in clients))
    while any(len(published(client)) < len(kept) for client in clients):
        assert len(kept) < 100, "the stream keeps no more"
        kept.append(len(kept))
        await publish(nodes[0], RECOVERABLE, kept[-1], unique)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await eventually(
                    lambda: all(len(published(client)) == len(kept) for client in clients)
                )
    for client in clients:
        assert published(client) == kept
        assert client.closes == []


async def test_end_that_the_layer_dropped_is_found_by_looking(
    nodes: Sequence[Node], unique: str
) -> None:
    client = RecordingClient()
    await subscribe(nodes[0], client, RECOVERABLE, unique)
    await publish(nodes[1], RECOVERABLE, 1, unique)
    await eventually(lambda: published(client) == [1])
    engine: Any = nodes[0]._engine
    group = engine.shards.keys.group(unique)
    bus = engine.groups
    await bus.leave(group)
    await publish(nodes[1], RECOVERABLE, 2, unique)
    await bus.join(group)

    follower = nodes[0].hub.feeds[unique].follower
    assert follower is not None
    await follower.check()

    assert published(client) == [1, 2]


async def test_user_is_disconnected_from_every_node(nodes: Sequence[Node], unique: str) -> None:
    client = RecordingClient("C", user=unique)
    nodes[1].opened(client)
    nodes[1].hub.add(client)

    await nodes[0].disconnect_user(unique)

    await eventually(lambda: client.close_codes == [3012])
    nodes[1].hub.remove(client)
    nodes[1].closed(client)


# layers in trouble


class TroubledLayer(InMemoryChannelLayer):
    """Fails to receive so many times; lets so many cancellations pass unnoticed."""

    def __init__(
        self,
        failures: int = 0,
        deafness: int = 0,
        error: type[BaseException] = ConnectionError,
    ) -> None:
        super().__init__()
        self.failures = failures
        self.deafness = deafness
        self.error = error

    async def receive(self, channel: str) -> Any:
        if self.failures:
            self.failures -= 1
            raise self.error("the layer is troubled")
        while True:
            try:
                return await super().receive(channel)
            except asyncio.CancelledError:
                if not self.deafness:
                    raise
                self.deafness -= 1


async def start_engine(
    server: RedisServer, prefix: str, foreign: Any
) -> tuple[RedisEngine, RecordingReceiver]:
    layer = RedisChannelLayer(hosts=[server.url], prefix=prefix)
    engine = RedisEngine(layer.bus, prefix, groups=ForeignGroups(layer.bus, foreign))
    receiver = RecordingReceiver()
    await engine.start(receiver, receiver.uid)
    return engine, receiver


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ConnectionError, id="error"),
        pytest.param(asyncio.CancelledError, id="cancelled by itself"),
    ],
)
async def test_layer_that_fails_is_an_interruption_that_ends_when_a_message_arrives(
    redis_server: RedisServer, unique: str, error: type[BaseException]
) -> None:
    foreign = TroubledLayer(failures=2, error=error)
    engine, receiver = await start_engine(redis_server, unique, foreign)
    await engine.broker.subscribe(unique)
    await eventually(lambda: bool(receiver.interruptions))

    await engine.broker.publish(Outgoing(unique, Publication(data("1")), PLAIN))

    await eventually(lambda: bool(receiver.publications[unique]))
    assert (len(receiver.interruptions), len(receiver.resumptions)) == (1, 1)
    assert receiver.interruptions[0](unique)
    await engine.stop()


async def test_interruption_ends_also_when_nothing_is_published(
    redis_server: RedisServer, unique: str
) -> None:
    """Streams are not read, nor presence renewed, while the end of it is awaited."""
    engine, receiver = await start_engine(redis_server, unique, TroubledLayer(failures=1))
    await engine.broker.subscribe(unique)
    await eventually(lambda: bool(receiver.interruptions))
    await eventually(lambda: bool(receiver.resumptions))
    await engine.stop()


async def test_engine_stops_though_the_layer_does_not_notice(
    redis_server: RedisServer, unique: str
) -> None:
    foreign = TroubledLayer(deafness=1)
    engine, _ = await start_engine(redis_server, unique, foreign)
    await engine.broker.subscribe(unique)

    stopping = asyncio.create_task(engine.stop())
    done, _ = await asyncio.wait([stopping], timeout=5)
    if not done:
        stopping.cancel()
        await asyncio.wait([stopping], timeout=5)

    assert done
    assert foreign.deafness == 0
