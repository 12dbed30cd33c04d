"""Rates of users: over all connections at a node, and over all nodes."""

from __future__ import annotations

import asyncio
import gc

import pytest

from realtime.config.rates import Rate
from realtime.config.reader import load
from realtime.node.limits import user_rates
from realtime.node.limits.command_rates import Spent
from realtime.node.limits.user_rates import INTERVAL, MAX_AHEAD, UserRates
from realtime.node.node import Node
from realtime.protocol.messages import Method
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.memory_cluster import ClusterState
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, context, eventually, turns
from tests.unit.suspended_engine import ClusterEngine

RPC, UNKNOWN = 9, 99
NOT_FOUND, NOT_AVAILABLE, TOO_MANY, SLOW = 104, 108, 111, 3008
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "client_anonymous": True,
    "client_command_rates": "",
    "user_command_rates": "* 2/s burst 10, rpc 1/s burst 3",
}


async def connect(node: Node, user: str = "17") -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, **({"token": connection_token(user)} if user else {}))
    await eventually(lambda: connection.reply(1) is not None)
    return connection


async def codes(connection: Connection, number: int, method: int = UNKNOWN) -> list[int]:
    """The error codes of so many commands."""
    connection.messages.clear()
    for _ in range(number):
        await connection.say(7, method)
    await turns()
    return [message["error"]["code"] for message in connection.messages if "error" in message]


async def test_connections_of_a_user_have_one_rate(nodes: list[Node], clock: Clock) -> None:
    one, other, stranger = [await connect(nodes[0], user) for user in ("17", "17", "18")]
    first, second = await codes(one, 6), await codes(other, 6)
    theirs = await codes(stranger, 6)
    await clock.advance(0.5)
    later = await codes(one, 2)
    assert (first, second) == ([NOT_FOUND] * 6, [NOT_FOUND] * 4 + [TOO_MANY] * 2)
    assert theirs == [NOT_FOUND] * 6
    assert later == [NOT_FOUND, TOO_MANY]


async def test_method_may_have_a_lower_rate_of_its_own(nodes: list[Node]) -> None:
    one, other = [await connect(nodes[0]) for _ in range(2)]
    assert await codes(one, 2, RPC) == [NOT_AVAILABLE] * 2
    assert await codes(other, 2, RPC) == [NOT_AVAILABLE, TOO_MANY]
    assert await codes(other, 1) == [NOT_FOUND]


async def test_connection_that_goes_on_is_closed_and_others_are_not(nodes: list[Node]) -> None:
    one, other = [await connect(nodes[0]) for _ in range(2)]
    await codes(one, 100)
    assert one.closes == [SLOW]
    assert await codes(other, 1) == [TOO_MANY]
    assert other.closes == []


async def test_anonymous_clients_have_no_user(nodes: list[Node]) -> None:
    assert set(await codes(await connect(nodes[0], ""), 100)) == {NOT_FOUND}


async def test_who_reconnects_has_the_same_debt(nodes: list[Node]) -> None:
    first = await connect(nodes[0])
    await codes(first, 10)
    first.client.close(None)
    await eventually(lambda: not nodes[0].hub.users)
    del first
    gc.collect()
    assert await codes(await connect(nodes[0]), 1) == [TOO_MANY]


async def test_what_was_taken_at_one_node_counts_at_the_other(
    nodes: list[Node], clock: Clock
) -> None:
    async def advance(seconds: float) -> None:
        await clock.advance(seconds)
        for node in nodes:
            await node.idle()

    here, there = [await connect(node) for node in nodes]
    await codes(here, 10)
    step = 1 / 128  # later than the other node, so that it tells after that one
    await advance(step)
    await codes(there, 1)  # a node hears of others when it tells
    await advance(INTERVAL - step)
    await advance(step)

    first = await codes(there, 5), await codes(here, 5)
    await advance(INTERVAL - step)
    await advance(step)
    second = await codes(there, 5), await codes(here, 5)

    # 11 taken, 2 have come back: the node that told last knows of both
    assert [each.count(NOT_FOUND) for each in first] == [1, 2]
    # 14 taken, 4 have come back
    assert [each.count(NOT_FOUND) for each in second] == [0, 1]


async def test_nothing_waits_while_redis_hangs(
    nodes: list[Node], engines: list[ClusterEngine], clock: Clock
) -> None:
    connection = await connect(nodes[0])
    engines[0].hold("add_debts")
    answered = []
    for _ in range(5):
        answered.append(await codes(connection, 2))
        await clock.advance(INTERVAL)
    waiting = engines[0].waiting.count("add_debts")
    engines[0].go_on("add_debts")
    await nodes[0].idle()

    assert answered == [[NOT_FOUND] * 2] * 5
    assert waiting == 1
    # what was taken meanwhile is told, too
    await codes(connection, 1)
    await clock.advance(INTERVAL)
    await nodes[0].idle()
    assert engines[0].calls["add_debts"] == 2


async def test_node_goes_on_by_its_own_counts_while_redis_is_away(
    nodes: list[Node],
    engines: list[ClusterEngine],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engines[0].failing.add("add_debts")
    connection = await connect(nodes[0])
    first = await codes(connection, 11)
    await clock.advance(INTERVAL)
    await nodes[0].idle()
    second = await codes(connection, 3)
    await clock.advance(INTERVAL)
    await nodes[0].idle()
    assert first == [NOT_FOUND] * 10 + [TOO_MANY]
    assert second == [NOT_FOUND] * 2 + [TOO_MANY]
    assert len([record for record in caplog.records if "commands of users" in record.message]) == 1


async def test_users_are_forgotten_when_they_are_gone_and_owe_nothing(
    nodes: list[Node], clock: Clock
) -> None:
    rates = nodes[0].user_limits.rates
    assert rates is not None
    for number in range(20):
        connection = await connect(nodes[0], str(number))
        await codes(connection, 4)
        connection.client.close(None)
    await eventually(lambda: not nodes[0].hub.users)
    del connection
    gc.collect()
    owing = len(rates._users)
    for _ in range(4):
        await clock.advance(INTERVAL)
        await nodes[0].idle()
    gc.collect()

    assert owing == 20
    assert (len(rates._users), rates._noted) == (0, [])


# over many nodes


async def test_many_nodes_let_through_as_much_as_one(clock: Clock, state: ClusterState) -> None:
    """In the long run: each has its burst before it hears of the others."""
    timers, number, seconds, rate = Timers(asyncio.get_running_loop()), 8, 300, Rate(10, 1, 20)
    tasks: set[asyncio.Task[None]] = set()
    nodes = []
    for _ in range(number):
        limits = ClusterEngine(timers, state).limits
        nodes.append(
            UserRates(
                context(load({}), timers, lambda work: tasks.add(asyncio.create_task(work))),
                {"*": rate},
                limits,
            )
        )
    debts, let_through = [node.of("17") for node in nodes], 0
    for _ in range(seconds * 2):
        for node, owed in zip(nodes, debts, strict=True):
            for _ in range(10):
                # each client is patient
                let_through += node.allows(owed, Spent(), Method.RPC, timers.now())
        await clock.advance(0.5)
        await eventually(lambda: all(task.done() for task in tasks))

    assert let_through <= number * rate.burst + seconds * 10 + number * 10
    assert let_through >= seconds * 10 - number * 10 * MAX_AHEAD / 10


async def test_telling_others_does_not_refuse_who_is_within_the_rate(
    clock: Clock, state: ClusterState
) -> None:
    """The burst is less than what may be taken from one telling to the next."""
    timers = Timers(asyncio.get_running_loop())
    tasks: set[asyncio.Task[None]] = set()
    rates = UserRates(
        context(load({}), timers, lambda work: tasks.add(asyncio.create_task(work))),
        {"*": Rate(10, 1, 2)},
        ClusterEngine(timers, state).limits,
    )
    debts, answers = rates.of("17"), []
    for _ in range(240):
        answers.append(rates.allows(debts, Spent(), None, timers.now()))
        await clock.advance(0.125)
        await eventually(lambda: all(task.done() for task in tasks))

    assert tasks
    assert all(answers)


async def test_user_who_sends_little_is_not_told_to_others(
    clock: Clock, state: ClusterState
) -> None:
    timers = Timers(asyncio.get_running_loop())
    engine = ClusterEngine(timers, state)
    tasks: list[asyncio.Task[None]] = []
    rates = UserRates(
        context(load({}), timers, lambda work: tasks.append(asyncio.create_task(work))),
        {"*": Rate(100, 1)},
        engine.limits,
    )
    debts = rates.of("17")
    told = []
    for commands in (4, 5):
        for _ in range(commands):
            rates.allows(debts, Spent(), None, timers.now())
        await clock.advance(INTERVAL)
        told.append(engine.calls["add_debts"])
        await asyncio.gather(*tasks)

    assert 100 // user_rates.SILENT_SHARE == 5
    assert told == [0, 1]
