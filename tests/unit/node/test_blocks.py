"""Blocked users: no connection of theirs is open at any node, whatever messages are lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from realtime.cluster.control import BlockUser, UnblockUser
from realtime.cluster.member import Member
from realtime.config.reader import load
from realtime.engine.limits import NO_LIST
from realtime.errors import EngineUnavailable, LimitExceeded, NoReply
from realtime.node.limits import blocks
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit import memory_cluster
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, RecordingClient, eventually, turns
from tests.unit.suspended_engine import ClusterEngine

FORCED = 3012
TOKENS = {"token_hmac_secret_key": SECRET}


def later(seconds: float = 1000.0) -> float:
    return time.time() + seconds


@pytest.fixture
async def shared(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    """A node with a cluster, whose engine a test can hold."""
    made = Node(load(TOKENS), engine)
    await made.start()
    await turns()  # it looks for changes at once
    await made.idle()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
async def alone(clock: Clock) -> AsyncIterator[Node]:
    """A node with the memory engine."""
    made = Node(load(TOKENS))
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture(params=["shared", "alone"])
def node(request: pytest.FixtureRequest, shared: Node, alone: Node) -> Node:
    return shared if request.param == "shared" else alone


def add(node: Node, client_id: str = "C", user: str = "17") -> RecordingClient:
    client = RecordingClient(client_id, user)
    node.hub.add(client)
    return client


async def connect(node: Node, user: str = "17") -> list[int]:
    """The codes with which a client that connects is closed; none if it stays."""
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token(user))
    await eventually(lambda: bool(connection.reply(1) or connection.closes))
    closes = connection.closes.copy()
    connection.client.close(None)
    return closes


async def test_connections_are_closed_and_refused_until_the_user_is_unblocked(node: Node) -> None:
    mine, also, other = add(node, "C1"), add(node, "C2"), add(node, "C3", "18")
    await node.block_user("17", end := later())
    refused = await connect(node), await connect(node, "18")
    listed = await node.blocked()
    await node.unblock_user("17")
    assert [mine.close_codes, also.close_codes, other.close_codes] == [[FORCED], [FORCED], []]
    assert refused == ([FORCED], [])
    assert listed == {"17": end}
    assert await connect(node) == []
    assert await node.blocked() == {}


async def test_block_ends_by_itself(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.block_user("17", end := later())
    before = await connect(node)
    monkeypatch.setattr(time, "time", lambda: end)
    assert before == [FORCED]
    assert not node.blocks.has("17")
    assert await node.blocked() == {}


async def test_anonymous_clients_and_other_names_are_not_blocked(node: Node) -> None:
    await node.block_user("17", later())
    assert [node.blocks.has(user) for user in ("17", "", "170", "1")] == [True, False, False, False]


async def test_client_is_refused_that_was_being_identified(shared: Node) -> None:
    connection = Connection(shared)
    connecting = connection.say(1, 0, token=connection_token("17"))
    await shared.block_user("17", later())
    await connecting
    await turns()
    assert connection.closes == [FORCED]
    assert not shared.hub.users


async def test_so_many_are_blocked_and_no_more(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blocks, memory_cluster):
        monkeypatch.setattr(module, "MAX_BLOCKED", 10)
    for number in range(10):
        await node.block_user(str(number), later())
    with pytest.raises(LimitExceeded):
        await node.block_user("one more", later())
    await node.block_user("5", later(2000))
    await node.unblock_user("6")
    await node.block_user("one more", later())
    assert len(await node.blocked()) == 10


async def test_message_of_another_node_is_applied_here(shared: Node, engine: ClusterEngine) -> None:
    client, member = add(shared), Member(load(TOKENS), engine)
    await member.block_user("17", later())
    await eventually(lambda: client.close_codes == [FORCED])
    blocked = shared.blocks.has("17")
    await member.unblock_user("17")
    await eventually(lambda: not shared.blocks.has("17"))
    assert blocked


async def test_node_that_starts_later_knows_who_is_blocked(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    await engine.limits.block({"17": later()})
    fresh = Node(load(TOKENS), engine)
    await fresh.start()
    known = fresh.blocks.has("17")
    await stop(fresh, clock, SHUTDOWN_TIMEOUT)
    assert known


async def test_node_does_not_start_without_the_list(engine: ClusterEngine) -> None:
    engine.failing.add("blocked")
    fresh = Node(load(TOKENS), engine)
    with pytest.raises(EngineUnavailable):
        await fresh.start()


@pytest.mark.parametrize("missed", ["block", "unblock"])
async def test_node_that_missed_a_message_learns_it_in_time(
    shared: Node, engine: ClusterEngine, clock: Clock, missed: str
) -> None:
    client, limits = add(shared), engine.limits
    if missed == "unblock":
        await shared.block_user("17", later())
        await limits.block({"17": 0})
    else:
        await limits.block({"17": later()})
    await clock.advance(blocks.INTERVAL)
    await eventually(lambda: shared.blocks.has("17") is (missed == "block"))
    assert client.close_codes == [FORCED]


async def test_message_that_comes_too_late_does_not_block_for_long(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    await engine.limits.block({"17": later()})
    await engine.limits.block({"17": 0})
    shared._control.on_message(BlockUser("17", later(), "another"))
    at_first = shared.blocks.has("17")
    await clock.advance(blocks.INTERVAL)
    assert at_first
    await eventually(lambda: not shared.blocks.has("17"))


async def test_message_during_the_reading_counts(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    await engine.limits.block({"18": later()})
    engine.hold_answer("blocked")
    await clock.advance(blocks.INTERVAL)
    await engine.reached("blocked")
    shared._control.on_message(BlockUser("17", later(), "another"))
    shared._control.on_message(UnblockUser("18", "another"))
    engine.go_on("blocked")
    await shared.idle()
    assert shared.blocks.has("17")
    assert not shared.blocks.has("18")


async def test_user_stays_blocked_while_redis_is_away(
    shared: Node, engine: ClusterEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await shared.block_user("17", later())
    engine.failing.add("blocked")
    for _ in range(3):
        await clock.advance(blocks.INTERVAL)
        await shared.idle()
    assert await connect(shared) == [FORCED]
    assert len([r for r in caplog.records if "blocked users" in r.message]) == 1


async def test_nothing_waits_while_redis_hangs(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    engine.hold("blocked")
    await clock.advance(blocks.INTERVAL)
    await engine.reached("blocked")
    await clock.advance(10 * blocks.INTERVAL)
    assert await connect(shared) == []
    assert engine.waiting.count("blocked") == 1
    engine.go_on("blocked")


async def test_list_that_redis_lost_comes_back(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    await shared.block_user("17", end := later())
    engine.cluster.state.blocked, engine.cluster.state.blocks_version = {}, NO_LIST
    await clock.advance(blocks.INTERVAL)
    await shared.idle()
    assert shared.blocks.has("17")
    assert await shared.blocked() == {"17": end}


async def test_user_is_not_blocked_where_the_list_cannot_be_written(
    shared: Node, engine: ClusterEngine
) -> None:
    engine.failing.add("block")
    with pytest.raises(EngineUnavailable):
        await shared.block_user("17", later())
    assert not shared.blocks.has("17")


async def test_user_is_blocked_here_where_others_cannot_be_told(
    shared: Node, engine: ClusterEngine
) -> None:
    client = add(shared)
    engine.failing.add("publish")
    with pytest.raises(NoReply):
        await shared.block_user("17", later())
    assert client.close_codes == [FORCED]
    assert engine.cluster.state.blocked.keys() == {"17"}


async def test_who_came_in_when_a_block_was_over_is_closed_by_the_next_one(
    shared: Node, engine: ClusterEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shared.block_user("17", end := later())
    monkeypatch.setattr(time, "time", lambda: end)
    client = add(shared)
    await engine.limits.block({"17": later()})  # the message is lost
    await clock.advance(blocks.INTERVAL)
    await eventually(lambda: client.close_codes == [FORCED])


async def test_list_that_redis_lost_comes_back_beside_what_was_blocked_since(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    await shared.block_user("17", end := later())
    await clock.advance(blocks.INTERVAL)
    await shared.idle()
    engine.cluster.state.blocked, engine.cluster.state.blocks_version = {}, NO_LIST
    await engine.limits.block({"18": end})
    await clock.advance(blocks.INTERVAL)
    await shared.idle()
    assert await shared.blocked() == {"17": end, "18": end}
    assert [shared.blocks.has(user) for user in ("17", "18")] == [True, True]


@pytest.mark.parametrize("reads", [False, True], ids=["of which it has heard", "that it has read"])
async def test_last_block_that_redis_lost_comes_back(
    shared: Node, engine: ClusterEngine, clock: Clock, *, reads: bool
) -> None:
    """A replica is promoted that had not got it."""
    member, state = Member(load(TOKENS), engine), engine.cluster.state
    await member.block_user("17", end := later())
    replica = state.blocked, state.blocks_version
    await clock.advance(blocks.INTERVAL)
    await shared.idle()
    await member.block_user("18", end)
    if reads:
        await clock.advance(blocks.INTERVAL)
        await shared.idle()
    state.blocked, state.blocks_version = replica

    await clock.advance(blocks.INTERVAL)
    await shared.idle()

    assert await shared.blocked() == {"17": end, "18": end}
    assert shared.blocks.has("18")


async def test_longer_end_that_redis_lost_comes_back(
    shared: Node, engine: ClusterEngine, clock: Clock
) -> None:
    member, state = Member(load(TOKENS), engine), engine.cluster.state
    for user, end in (("17", sooner := later()), ("18", longer := later(2000))):
        await member.block_user(user, end)
    replica = state.blocked, state.blocks_version
    await member.block_user("17", longer)
    await member.block_user("18", sooner)
    state.blocked, state.blocks_version = replica
    await clock.advance(blocks.INTERVAL)
    await shared.idle()
    # the longer end counts: no user comes in too soon
    assert await shared.blocked() == {"17": longer, "18": longer}


async def test_message_that_comes_when_the_block_is_over_closes_connections(shared: Node) -> None:
    """The node was frozen, or its clock is ahead."""
    client = add(shared)
    shared._control.on_message(BlockUser("17", later(-1), "another"))
    assert client.close_codes == [FORCED]
    assert await connect(shared) == []


async def test_node_starts_while_redis_goes_and_comes_back(
    engine: ClusterEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.limits.block({"17": later()})
    fresh = Node(load(TOKENS), engine)
    engine.hold_answer("blocked")
    starting = asyncio.ensure_future(fresh.start())
    await engine.reached("blocked")
    fresh.on_interrupted(lambda channel: True)
    fresh.on_resumed(lambda channel: True)
    await turns()
    engine.go_on("blocked")
    await starting
    await fresh.idle()
    known = fresh.blocks.has("17")
    await stop(fresh, clock, SHUTDOWN_TIMEOUT)
    assert known
    assert not [record for record in caplog.records if record.exc_info]
