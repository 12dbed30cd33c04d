"""A node that ends closes its clients at an even rate, and serves those that are left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import pytest

from realtime.config.reader import load
from realtime.node.drain import CLOSE_AT_ONCE, CLOSE_INTERVAL
from realtime.node.node import SHUTDOWN_TIMEOUT, SIGNALS_APART, Node
from realtime.timers import Timers
from tests.unit.node.node_parts import EVERYTHING, OpenedClient, stop
from tests.unit.parts import Clock, turns
from tests.unit.suspended_engine import ClusterEngine

SHUTDOWN = 3001


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    """A node in the test's time, which moves while it stops."""
    made = Node(load(EVERYTHING))
    await made.start()
    yield made
    await stop(made, clock, made.config.drain_seconds + SHUTDOWN_TIMEOUT)


def closed(clients: Iterable[OpenedClient]) -> int:
    return sum(bool(client.closes) for client in clients)


async def test_as_many_clients_as_are_closed_at_once_are(node: Node) -> None:
    clients = [OpenedClient(node, f"C{number}") for number in range(CLOSE_AT_ONCE)]
    node.begin_stop()
    assert closed(clients) == CLOSE_AT_ONCE


@pytest.fixture
async def draining(clock: Clock) -> AsyncIterator[Callable[[float, int], list[OpenedClient]]]:
    """Make a node that drains: `draining(seconds, clients)`, which returns the clients."""
    nodes: list[Node] = []

    def begin(seconds: float, number: int) -> list[OpenedClient]:
        node = Node(load({**EVERYTHING, "drain_seconds": seconds}))
        nodes.append(node)
        clients = [OpenedClient(node, f"C{n}") for n in range(number)]
        node.begin_stop()
        return clients

    yield begin
    for node in nodes:
        node.on_signal()
        await stop(node, clock, 60 + SHUTDOWN_TIMEOUT)


Draining = Callable[[float, int], list[OpenedClient]]


@pytest.mark.parametrize("seconds", [2, 10, 60])
@pytest.mark.parametrize("number", [CLOSE_AT_ONCE + 1, 100, 1000])
async def test_clients_are_closed_evenly_those_that_came_first_first(
    draining: Draining, clock: Clock, number: int, seconds: float
) -> None:
    began = clock.now
    clients = draining(seconds, number)
    rest = number - CLOSE_AT_ONCE

    while clock.now - began < seconds:
        # a client more or less for the step that is not over
        due = CLOSE_AT_ONCE + rest * (clock.now - began) / seconds
        one_step = rest * CLOSE_INTERVAL / seconds + 1
        told = closed(clients)
        assert due - one_step <= told <= due
        assert all(client.closes for client in clients[:told])
        await clock.advance(CLOSE_INTERVAL)
    await clock.advance(CLOSE_INTERVAL)

    assert all(client.close_codes == [SHUTDOWN] for client in clients)


async def test_all_clients_are_closed_at_once_without_time_for_it(draining: Draining) -> None:
    assert closed(draining(0, 1000)) == 1000


async def test_clients_that_go_by_themselves_are_not_waited_for(clock: Clock) -> None:
    node = Node(load({**EVERYTHING, "drain_seconds": 60}))
    clients = [OpenedClient(node, f"C{number}") for number in range(100)]
    node.begin_stop()
    for client in clients:
        node.closed(client)
    await stop(node, clock, 2 * CLOSE_INTERVAL)
    assert closed(clients) == CLOSE_AT_ONCE


async def test_api_is_answered_until_the_node_stops(clock: Clock) -> None:
    node = Node(load({**EVERYTHING, "drain_seconds": 10}))
    for number in range(100):
        OpenedClient(node, f"C{number}")
    node.begin_stop()
    await clock.advance(10)
    before = node.stopping
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert (before, node.stopping) == (False, True)


async def test_node_that_drains_stays_alive_for_the_others(clock: Clock) -> None:
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load({**EVERYTHING, "drain_seconds": 60}), engine)
    await node.start()
    for number in range(100):
        OpenedClient(node, f"C{number}")
    announced = engine.calls["announce"]

    stopping = asyncio.create_task(node.stop())
    await turns()
    await clock.advance(30)

    assert engine.calls["announce"] > announced
    assert engine.calls["withdraw"] == 0
    node.on_signal()
    await clock.advance(SHUTDOWN_TIMEOUT)
    await stopping
    assert engine.calls["withdraw"] == 1


async def test_second_signal_closes_at_once_those_that_are_left(clock: Clock) -> None:
    node = Node(load({**EVERYTHING, "drain_seconds": 60}))
    clients = [OpenedClient(node, f"C{number}") for number in range(1000)]
    node.on_signal()
    await clock.advance(SIGNALS_APART)
    node.on_signal()
    assert [client.close_codes for client in clients] == [[SHUTDOWN]] * 1000
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def test_signal_that_comes_twice_at_the_same_time_is_one(clock: Clock) -> None:
    node = Node(load({**EVERYTHING, "drain_seconds": 60}))
    clients = [OpenedClient(node, f"C{number}") for number in range(1000)]
    node.on_signal()
    node.on_signal()
    assert closed(clients) == CLOSE_AT_ONCE
    await clock.advance(SIGNALS_APART)
    node.on_signal()
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def test_stop_waits_until_the_last_client_was_told(node: Node, clock: Clock) -> None:
    clients = [OpenedClient(node, f"C{number}") for number in range(1000)]
    await stop(node, clock, node.config.drain_seconds + CLOSE_INTERVAL)
    assert closed(clients) == 1000


async def test_newcomer_between_two_slices_is_closed_at_once(node: Node, clock: Clock) -> None:
    for number in range(1000):
        OpenedClient(node, f"C{number}")
    node.begin_stop()
    await clock.advance(CLOSE_INTERVAL)
    newcomer = OpenedClient(node, "newcomer")
    assert newcomer.close_codes == [SHUTDOWN]
