"""Heartbeats: what a node announces, and when."""

from __future__ import annotations

import asyncio

import pytest

from realtime.cluster.peers import HEARTBEAT_INTERVAL, HEARTBEAT_LIFETIME
from realtime.config.reader import load
from realtime.engine.nodes import NodeInfo
from realtime.errors import EngineUnavailable
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.unit.memory_cluster import Heartbeat
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, RecordingClient, eventually, turns
from tests.unit.suspended_engine import ClusterEngine


def heartbeats(engine: ClusterEngine) -> dict[str, Heartbeat]:
    """The nodes that announced themselves, by ID."""
    return engine.cluster.state.heartbeats


async def test_node_announces_itself_at_its_start_and_withdraws_at_its_end(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    heartbeat = heartbeats(engine)[node.uid]
    assert (heartbeat.node.uid, heartbeat.lifetime) == (node.uid, HEARTBEAT_LIFETIME)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert heartbeats(engine) == {}


async def test_heartbeat_describes_the_node_at_its_moment(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    assert heartbeats(engine)[node.uid].node.num_clients == 0
    node.hub.add(RecordingClient())
    await clock.advance(HEARTBEAT_INTERVAL)
    await eventually(lambda: heartbeats(engine)[node.uid].node.num_clients == 1)
    assert heartbeats(engine)[node.uid].node.uptime == HEARTBEAT_INTERVAL


async def test_heartbeats_come_in_time_and_none_after_the_end(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    announced = engine.calls["announce"]
    for _ in range(5):
        await clock.advance(HEARTBEAT_INTERVAL)
        await turns(20)
    assert engine.calls["announce"] - announced == 5

    await stop(node, clock, SHUTDOWN_TIMEOUT)
    announced = engine.calls["announce"]
    await clock.advance(10 * HEARTBEAT_INTERVAL)
    await turns(20)

    assert engine.calls["announce"] == announced


async def test_heartbeat_that_fails_is_logged_once_and_tried_again(
    node: Node, engine: ClusterEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    engine.failing.add("announce")
    for _ in range(3):
        await clock.advance(HEARTBEAT_INTERVAL)
        await turns(20)
    assert [record.levelname for record in caplog.records] == ["WARNING"]

    engine.failing.clear()
    heartbeats(engine).clear()
    await clock.advance(HEARTBEAT_INTERVAL)
    await eventually(lambda: node.uid in heartbeats(engine))


async def test_heartbeat_follows_an_interruption_at_once(node: Node, engine: ClusterEngine) -> None:
    heartbeats(engine).clear()
    node.on_resumed(lambda channel: True)
    await eventually(lambda: node.uid in heartbeats(engine))


async def test_nodes_are_this_one_as_it_is_now_and_then_the_others(
    node: Node, engine: ClusterEngine
) -> None:
    other = NodeInfo("u", "another", "1.0", 5, 4, 3, 2)
    await engine.cluster.announce(other, HEARTBEAT_LIFETIME)
    node.hub.add(RecordingClient())
    assert await node.nodes() == [node.describe(), other]
    assert node.describe().num_clients == 1


@pytest.mark.parametrize("step", ["subscribe", "position", "announce"])
async def test_node_that_could_not_start_leaves_no_task(engine: ClusterEngine, step: str) -> None:
    engine.failing.add(step)
    node = Node(load({}), engine)
    with pytest.raises(EngineUnavailable):
        await node.start()
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
