"""The contract of `engine.nodes.Cluster`, for every engine that has one: nodes and channels."""

from __future__ import annotations

import msgspec
import pytest

from realtime.engine.nodes import NodeStatus
from realtime.errors import EngineUnavailable
from tests.engine.bench import KEPT, NODE, SECOND_NODE, Bench
from tests.engine.redis_bench import RedisBench

LIFETIME = 10.0
SLACK = 5.0
"""Seconds that a busy machine may take longer."""


@pytest.fixture
async def alone(clustered: Bench) -> Bench:
    """Each engine with a cluster, in which there is no node yet."""
    await clustered.cluster.withdraw(NODE)
    return clustered


# channels


async def test_channels_are_those_with_a_subscriber(clustered: Bench, unique: str) -> None:
    await clustered.broker.subscribe(f"{unique}-a")
    await clustered.broker.subscribe(f"{unique}-b")
    await clustered.broker.subscribe(f"{unique}-left")
    await clustered.broker.unsubscribe(f"{unique}-left")
    await clustered.publish(f"{unique}-nobody", 1, options=KEPT)

    await clustered.idle()
    listed = await clustered.channels()

    assert {name for name in listed if name.startswith(unique)} == {f"{unique}-a", f"{unique}-b"}
    assert len(listed) == len(set(listed))


# nodes


async def test_node_that_withdrew_once_or_twice_has_no_status(clustered: Bench) -> None:
    assert await clustered.nodes() == [NODE]
    for _ in range(2):
        await clustered.cluster.withdraw(NODE)
        assert await clustered.cluster.statuses() == []


async def test_announcing_again_reports_no_channel_again(clustered: Bench, unique: str) -> None:
    await clustered.broker.subscribe(unique)
    for _ in range(3):
        await clustered.cluster.announce(NODE, 1000.0)
    assert (clustered.receiver.occupied, clustered.receiver.vacated) == ([unique], [])


async def test_changes_are_reported_before_a_node_withdraws(clustered: Bench, unique: str) -> None:
    await clustered.broker.subscribe(unique)
    await clustered.broker.unsubscribe(unique)
    await clustered.cluster.withdraw(NODE)
    assert clustered.receiver.vacated == [unique]


# statuses


async def test_status_is_what_the_node_announced_and_alive(alone: Bench) -> None:
    said = NodeStatus(
        **msgspec.structs.asdict(SECOND_NODE),
        messages_published=70,
        messages_delivered=900,
        num_subs=12,
    )

    await alone.cluster.announce(said, LIFETIME)

    (status,) = await alone.cluster.statuses()
    assert (status.uid, status.num_channels, status.uptime) == ("N2", 9, 10)
    assert (status.messages_published, status.messages_delivered) == (70, 900)
    assert status.num_subs == 12
    assert status.alive
    assert 0 <= status.last_seen_seconds < SLACK
    assert await alone.nodes() == [SECOND_NODE]
    await alone.cluster.announce(SECOND_NODE, LIFETIME)
    (status,) = await alone.cluster.statuses()
    assert (status.name, status.messages_published, status.messages_delivered) == ("second", 0, 0)


async def test_node_without_heartbeats_is_dead_and_listed_for_five_minutes(
    alone: Bench,
) -> None:
    await alone.cluster.announce(NODE, LIFETIME)

    await alone.elapse(LIFETIME - SLACK)
    (status,) = await alone.cluster.statuses()
    assert status.alive
    await alone.elapse(SLACK + 1)
    (status,) = await alone.cluster.statuses()
    assert not status.alive
    assert LIFETIME + 1 <= status.last_seen_seconds < LIFETIME + 1 + SLACK
    assert await alone.nodes() == []

    await alone.elapse(300 - 2 * SLACK)
    assert [status.alive for status in await alone.cluster.statuses()] == [False]

    await alone.elapse(2 * SLACK)
    assert await alone.cluster.statuses() == []


async def test_dead_node_is_alive_again_after_a_heartbeat(alone: Bench) -> None:
    await alone.cluster.announce(NODE, LIFETIME)
    await alone.elapse(LIFETIME + 1)

    await alone.cluster.announce(NODE, LIFETIME)

    (status,) = await alone.cluster.statuses()
    assert status.alive
    assert status.last_seen_seconds < SLACK


# round trips


async def test_round_trip_takes_time(clustered: Bench) -> None:
    assert 0 <= await clustered.cluster.round_trip() < SLACK


async def test_round_trip_to_a_redis_that_is_away_fails(own: RedisBench) -> None:
    own.servers[0].kill()
    with pytest.raises(EngineUnavailable):
        await own.cluster.round_trip()
