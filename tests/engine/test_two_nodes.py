"""Two nodes of one service: what one does, the other sees."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Joined, Left, Outgoing
from realtime.engine.once import Once
from realtime.protocol.messages import ClientInfo, Publication
from tests.engine.bench import (
    KEPT,
    NODE,
    NODE_LIFETIME,
    PLAIN,
    SECOND_NODE,
    Pair,
    comes_true,
    untimed,
)
from tests.engine.conftest import OpenNode
from tests.engine.postgresql_bench import POSTGRESQL
from tests.engine.redis_bench import KINDS
from tests.unit.parts import data, eventually, position_of

LONG = ChannelOptions(history_size=1000, history_lifetime=100)
INFO = ClientInfo("17", "C1", data('{ "a": 1.0 }'), data("2"))
OTHER_INFO = ClientInfo("18", "C2")


# streams and delivery


@pytest.mark.parametrize("options", [PLAIN, KEPT], ids=["without history", "with history"])
async def test_publication_join_and_leave_reach_every_engine_that_subscribed(
    pair: Pair, unique: str, options: ChannelOptions
) -> None:
    await pair.one.broker.subscribe(unique)
    await pair.other.broker.subscribe(unique)
    publication = Publication(data('{ "n": 1.0 }'), INFO, 0, "uid")

    position = (await pair.one.broker.publish(Outgoing(unique, publication, options))).position
    await pair.one.broker.notify(unique, Joined(INFO))
    await pair.one.broker.notify(unique, Left(OTHER_INFO))

    offset = 1 if options.keeps_history else 0
    for bench in pair:
        await bench.received(unique, 1)
        assert bench.receiver.publications[unique] == [
            (msgspec.structs.replace(publication, offset=offset), position)
        ]
        await eventually(lambda bench=bench: bool(bench.receiver.leaves[unique]))  # type: ignore[misc]
        assert bench.receiver.joins[unique] == [INFO]
        assert bench.receiver.leaves[unique] == [OTHER_INFO]


async def test_engines_number_their_publications_together(pair: Pair, unique: str) -> None:
    for bench in pair:
        await bench.broker.subscribe(unique)

    positions = await asyncio.gather(
        *(pair[value % 2].publish(unique, value, options=LONG) for value in range(60))
    )

    assert sorted(position.offset for position in positions if position) == [*range(1, 61)]
    assert len({position.epoch for position in positions if position}) == 1
    history = (await pair.one.broker.history(unique)).publications
    assert [publication.offset for publication in history] == [*range(1, 61)]
    for bench in pair:
        received = await bench.received(unique, 60)
        received.sort(key=lambda publication: publication.offset)
        assert received == untimed(history)


@pytest.mark.parametrize("options", [PLAIN, LONG], ids=["without history", "with history"])
async def test_key_used_at_both_nodes_at_once_publishes_once(
    pair: Pair, unique: str, options: ChannelOptions
) -> None:
    for bench in pair:
        await bench.broker.subscribe(unique)
    outgoing = Outgoing(unique, Publication(data("1"), uid="u"), options, Once("key"))

    published = await asyncio.gather(*(pair[n % 2].broker.publish(outgoing) for n in range(50)))

    position = await position_of(pair.one.broker, unique) if options.keeps_history else None
    assert [each.position for each in published] == [position] * 50
    assert [each.kept for each in published].count(True) == 1
    for bench in pair:
        await bench.publish(unique, 2, options=PLAIN)
    for bench in pair:
        await bench.received(unique, 3)
        assert sorted(bench.values(unique)) == [1, 2, 2]


async def test_unused_channel_has_the_same_epoch_and_history_is_removed_everywhere(
    pair: Pair, unique: str
) -> None:
    positions = [await position_of(bench.broker, unique) for bench in pair]
    published = await pair.other.publish(unique, 1, 2)
    assert published is not None
    assert {position.epoch for position in positions} == {published.epoch}

    await pair.other.broker.remove_history(unique)
    assert await pair.one.kept(unique) == []
    assert await position_of(pair.one.broker, unique) == published


# presence


async def test_presence_is_that_of_all_engines(pair: Pair, unique: str) -> None:
    await pair.one.presence.add(unique, [INFO], 60)
    await pair.other.presence.add(unique, [OTHER_INFO], 60)
    for bench in pair:
        assert dict(await bench.presence.get(unique)) == {"C1": INFO, "C2": OTHER_INFO}

    await pair.other.presence.remove(unique, "C1")
    assert set(await pair.one.presence.get(unique)) == {"C2"}


# channels and nodes


async def test_channels_of_many_engines_changing_at_once_are_right_in_the_end(
    pair: Pair, unique: str
) -> None:
    names = [f"{unique}-{number}" for number in range(20)]
    subscribed: dict[tuple[int, str], bool] = {}

    async def change(number: int) -> None:
        # of its own: what is subscribed in the end does not depend on who is quicker
        chance, broker = random.Random(number), pair[number].broker
        for _ in range(100):
            name = chance.choice(names)
            subscribed[number, name] = chance.random() < 0.5
            await (broker.subscribe if subscribed[number, name] else broker.unsubscribe)(name)

    await asyncio.gather(change(0), change(1))

    expected = {name for (_, name), there in subscribed.items() if there}
    assert 0 < len(expected) < len(names)

    async def right() -> bool:
        return all([sorted(await bench.channels()) == sorted(expected) for bench in pair])

    await comes_true(right)


async def test_nodes_are_described_as_they_announced_themselves_last(pair: Pair) -> None:
    later = msgspec.structs.replace(NODE, num_clients=3, num_channels=4, uptime=63)
    for expected in (NODE, later):
        await pair.one.cluster.announce(expected, NODE_LIFETIME)
        for bench in pair:
            nodes = await bench.nodes()
            assert sorted(nodes, key=lambda node: node.uid) == [expected, SECOND_NODE]


async def test_node_without_heartbeats_is_forgotten_with_its_channels_until_it_is_back(
    pair: Pair, unique: str
) -> None:
    await pair.one.broker.subscribe(f"{unique}-one")
    await pair.other.broker.subscribe(f"{unique}-other")
    await pair.one.cluster.announce(NODE, 200)
    await pair.one.elapse(100)
    await pair.other.cluster.announce(SECOND_NODE, NODE_LIFETIME)
    assert len(await pair.other.nodes()) == 2

    await pair.one.elapse(200)

    assert await pair.other.nodes() == [SECOND_NODE]
    assert await pair.other.channels() == [f"{unique}-other"]
    await pair.one.cluster.announce(NODE, NODE_LIFETIME)
    assert len(await pair.other.nodes()) == 2
    assert sorted(await pair.other.channels()) == [f"{unique}-one", f"{unique}-other"]


async def test_node_that_withdrew_is_gone_with_its_channels(pair: Pair, unique: str) -> None:
    await pair.one.broker.subscribe(f"{unique}-one")
    await pair.other.broker.subscribe(f"{unique}-other")
    await pair.one.cluster.withdraw(NODE)
    assert await pair.other.nodes() == [SECOND_NODE]
    assert await pair.other.channels() == [f"{unique}-other"]


async def test_engine_that_stopped_does_not_disturb_the_other(pair: Pair, unique: str) -> None:
    for bench in pair:
        await bench.broker.subscribe(unique)

    await pair.one.engine.stop()
    await pair.other.publish(unique, 1)

    assert len(await pair.other.received(unique, 1)) == 1
    assert pair.one.receiver.publications[unique] == []


# services on one server


@pytest.mark.parametrize("kind", [*KINDS, POSTGRESQL])
async def test_services_with_other_prefixes_see_nothing_of_each_other(
    open_node: OpenNode, unique: str, kind: str
) -> None:
    one = await open_node(kind, f"{unique}a")
    other = await open_node(kind, f"{unique}b", SECOND_NODE)
    for bench in (one, other):
        await bench.broker.subscribe(unique)

    await one.publish(unique, 1, 2)
    await one.presence.add(unique, [INFO], 60)
    await one.broker.notify(unique, Joined(INFO))
    await other.publish(unique, 3)

    await one.received(unique, 2)
    await other.received(unique, 1)
    await eventually(lambda: bool(one.receiver.joins[unique]))
    assert (one.values(unique), other.values(unique)) == ([1, 2], [3])
    assert (one.receiver.occupied, other.receiver.occupied) == ([unique], [unique])
    for bench, owner in ((one, "N1"), (other, "N2")):
        assert await bench.cluster.claim(unique, owner, 60) == owner
    assert await other.kept_values(unique) == [3]
    assert dict(await other.presence.get(unique)) == {}
    assert other.receiver.joins[unique] == []
    assert (await one.nodes(), await other.nodes()) == ([NODE], [SECOND_NODE])
