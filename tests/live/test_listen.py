"""`listen`: a channel for the site's own code, over each engine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, cast

import pytest

from realtime import Heard, PublicationsLost, apublish, apublish_many, listen
from realtime.config import sources
from realtime.errors import NamespaceNotFound, NotAvailable, NotServing
from realtime.node.node import Node
from realtime.node.reader import ChannelReader
from realtime.payload import Payload
from realtime.protocol.messages import Publication
from realtime.serving import serving

pytest_plugins = ["tests.database_fixtures", "tests.engine_options"]

NAMESPACES = [
    {"name": "kept", "history_size": 50, "history_lifetime": 300},
    {"name": "joined", "history_size": 50, "history_lifetime": 300, "join_on_read": True},
    {"name": "passing"},
]


@contextmanager
def no_connections() -> Iterator[None]:
    yield


@pytest.fixture
async def node(engine_options: dict[str, Any]) -> AsyncIterator[Node]:
    """A node in this process."""
    sources.configuration.override(
        namespaces=NAMESPACES, client_queue_max_size=10_000, **engine_options
    )
    yield await serving.start(no_connections)
    await serving.stop()
    sources.configuration.override()


async def take(reading: Any, number: int) -> list[Heard]:
    async with asyncio.timeout(60):
        return [await anext(reading) for _ in range(number)]


async def publish(channel: str, *data: Any) -> None:
    await apublish_many([(channel, each) for each in data])


async def listening(node: Node, channel: str) -> None:
    """Wait until somebody listens."""
    async with asyncio.timeout(60):
        while not (feed := node.hub.feeds.get(channel)) or not list(feed._all_live()):
            await asyncio.sleep(0.01)


async def left(node: Node, channel: str) -> None:
    async with asyncio.timeout(60):
        while channel in node.hub.feeds:
            await asyncio.sleep(0.01)


async def test_missed_publications_then_live_ones_each_once(node: Node) -> None:
    await publish("kept:1", 1, 2, 3)
    async with aclosing(listen("kept:1", since=1)) as reading:
        missed = await take(reading, 2)
        await publish("kept:1", 4, 5)
        live = await take(reading, 2)

    assert [each.data for each in missed + live] == [2, 3, 4, 5]
    assert [each.offset for each in missed + live] == [2, 3, 4, 5]
    assert len({each.epoch for each in missed + live}) == 1
    await left(node, "kept:1")


async def test_publications_while_it_begins_are_neither_lost_nor_twice(node: Node) -> None:
    await publish("kept:2", *range(20))
    async with aclosing(listen("kept:2", since=0)) as reading, asyncio.TaskGroup() as group:
        found = group.create_task(take(reading, 40))
        for number in range(20, 40):
            await apublish("kept:2", number)
    assert [each.data for each in found.result()] == list(range(40))


async def test_joins_what_was_missed_where_the_channel_says_so(node: Node) -> None:
    await publish("joined:1", "a", "b", "c")
    async with aclosing(listen("joined:1", since=0)) as reading:
        assert [(each.data, each.offset) for each in await take(reading, 1)] == [("abc", 3)]


async def test_live_only_without_history(node: Node) -> None:
    with pytest.raises(NotAvailable):
        await anext(listen("passing:1", since=0))
    reading = listen("passing:1")
    first = asyncio.ensure_future(anext(reading))
    await listening(node, "passing:1")
    await publish("passing:1", {"x": 1})
    assert (await first)[:5] == ({"x": 1}, 0, "", {}, "")
    await reading.aclose()


async def test_missing_history_is_an_error(node: Node) -> None:
    await publish("kept:3", *range(60))
    with pytest.raises(PublicationsLost):
        await anext(listen("kept:3", since=0))
    with pytest.raises(PublicationsLost):
        await anext(listen("kept:3", since=9))
    async with aclosing(listen("kept:3", since=10)) as reading:
        assert (await take(reading, 1))[0].data == 10
    with pytest.raises(NamespaceNotFound):
        await anext(listen("unknown:1"))


async def test_slow_reader_is_an_error(node: Node) -> None:
    async with aclosing(listen("kept:4", since=0)) as reading:
        await publish("kept:4", 0)
        await take(reading, 1)
        for _ in range(11):
            await publish("kept:4", "x" * 1000)
        async with asyncio.timeout(60):
            while not (top := node.hub.feeds["kept:4"].position) or top.offset < 12:
                await asyncio.sleep(0.01)
        with pytest.raises(PublicationsLost):
            await take(reading, 12)


async def test_burst_at_a_waiting_reader_leaves_no_gap(node: Node) -> None:
    offsets: list[int] = []

    async def read() -> None:
        async for each in listen("kept:10", since=0):
            offsets.append(each.offset)

    reading = asyncio.ensure_future(read())
    await publish("kept:10", 0)
    async with asyncio.timeout(60):
        while not offsets:
            await asyncio.sleep(0.01)
        await publish("kept:10", *["x" * 1000] * 30)
        with pytest.raises(PublicationsLost):
            await reading
    assert offsets == list(range(1, len(offsets) + 1))


async def test_reader_that_is_too_slow_keeps_no_more(node: Node) -> None:
    reader, text = ChannelReader(node, "kept:11"), b'"%b"' % (b"x" * 998)
    for _ in range(100):
        reader.push(cast(bytes, Publication(Payload(text, text))))
    assert reader._waiting.qsize() == 11


async def test_lost_position_is_recovered(node: Node) -> None:
    async with aclosing(listen("kept:5", since=0)) as reading:
        await publish("kept:5", 1)
        await take(reading, 1)
        node.subscriptions._lose_positions(node.hub.feeds["kept:5"])
        await publish("kept:5", 2, 3)
        assert [each.data for each in await take(reading, 2)] == [2, 3]


async def test_reader_that_is_cancelled_or_forgotten_leaves(node: Node) -> None:
    async def read() -> None:
        async for _ in listen("kept:6"):
            pass

    task = asyncio.ensure_future(read())
    await listening(node, "kept:6")
    task.cancel()
    await left(node, "kept:6")

    reading = listen("kept:6", since=0)
    await publish("kept:6", 1)
    await take(reading, 1)
    del reading
    gc.collect()
    await left(node, "kept:6")


async def test_is_no_subscriber_to_others(node: Node) -> None:
    async with aclosing(listen("kept:7", since=0)) as reading:
        await publish("kept:7", 1)
        await take(reading, 1)
        assert node.hub.feeds["kept:7"].size == 0
        assert node.subscriptions.count == 0


async def test_stop_of_the_node_ends_it(node: Node) -> None:
    reading = listen("kept:8")
    first = asyncio.ensure_future(anext(reading))
    await listening(node, "kept:8")
    await serving.stop()
    with pytest.raises(NotServing):
        await first


async def test_a_thousand_readers(node: Node) -> None:
    readings = [listen(f"kept:many{number % 10}", since=0) for number in range(1000)]
    firsts = [asyncio.ensure_future(anext(each)) for each in readings]
    for number in range(10):
        await publish(f"kept:many{number}", number)
    async with asyncio.timeout(60):
        found = await asyncio.gather(*firsts)
    assert [each.data for each in found] == [number % 10 for number in range(1000)]
    await asyncio.gather(*(each.aclose() for each in readings))


async def test_needs_a_process_that_serves() -> None:
    with pytest.raises(NotServing):
        await anext(listen("kept:9"))
