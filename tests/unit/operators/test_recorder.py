"""The recorder: when samples are taken, what they tell, and which nodes come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.cluster.survey import decode_answer, encode_answer
from realtime.config.reader import load
from realtime.engine.nodes import NodeStatus
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.operators.node_watch import INTERVAL
from realtime.operators.observer import NodeObserver
from realtime.operators.questions import SLOT_SECONDS, AskPast, PastAnswer
from realtime.operators.recorder import MANY, NodeRecorder, digest
from realtime.operators.samples import Reading
from realtime.timers import Timers
from tests.unit.memory_cluster import Heartbeat
from tests.unit.node.node_parts import PLAIN, publish, stop, subscribe
from tests.unit.operators.observer_parts import observer_of
from tests.unit.parts import Clock, RecordingClient, context, turns
from tests.unit.suspended_engine import ClusterEngine

OFFSET = 1_700_000_000.0
"""From the clock of the loop to Unix seconds: a round number of slots."""


class Figures:
    """The figures of a node, in the hands of a test."""

    def __init__(self) -> None:
        self.states: dict[str, int] = {}
        self.totals: dict[str, int] = {}

    def read(self) -> Reading:
        return Reading(dict(self.states), dict(self.totals))


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
async def recorder(clock: Clock, figures: Figures) -> AsyncIterator[NodeRecorder]:
    clock.now = 4093.0
    loop = asyncio.get_running_loop()
    made = NodeRecorder(
        context(load({}), Timers(loop)),
        "one",
        figures.read,
        None,
        clock=lambda: OFFSET + clock.now,
    )
    made.start()
    yield made
    made.stop()


async def slots(clock: Clock, number: int) -> None:
    for _ in range(number):
        await clock.advance(SLOT_SECONDS)


def kinds(answer: PastAnswer) -> list[tuple[str, float]]:
    return [(event.kind, event.number) for event in answer.events]


async def test_sample_is_taken_at_the_end_of_each_slot(
    recorder: NodeRecorder, clock: Clock
) -> None:
    await clock.advance(6.9)
    none_yet = recorder.answer().slots
    await clock.advance(0.2)
    await slots(clock, 2)
    first = (int(OFFSET) + 4100) // SLOT_SECONDS
    assert none_yet == []
    assert recorder.answer().slots == [first, first + 1, first + 2]


async def test_first_sample_covers_half_a_slot_at_least(
    recorder: NodeRecorder, clock: Clock
) -> None:
    await clock.advance(4.0)
    recorder.sample_from_now()
    await clock.advance(5.0)
    near = recorder.answer().slots
    await clock.advance(8.1)
    first = (int(OFFSET) + 4110) // SLOT_SECONDS
    assert near == []
    assert recorder.answer().slots == [first]
    assert recorder.answer().samples["span"] == [13_100]


async def test_loop_that_was_held_leaves_a_gap(recorder: NodeRecorder, clock: Clock) -> None:
    await clock.advance(7.1)
    await clock.advance(35)
    await clock.advance(8)
    first = (int(OFFSET) + 4100) // SLOT_SECONDS
    assert recorder.answer().slots == [first, first + 3, first + 4]


async def test_start_is_the_first_event(recorder: NodeRecorder) -> None:
    answer = recorder.answer()
    assert (answer.node, answer.name, answer.started) == ("U", "one", OFFSET + 4093)
    assert [(event.kind, event.text, event.subject) for event in answer.events] == [
        ("node_started", "one", "U")
    ]


async def test_many_ends_at_once_are_an_event(
    recorder: NodeRecorder, clock: Clock, figures: Figures
) -> None:
    figures.states = {"connections": 10 * MANY}
    await slots(clock, 1)
    figures.totals = {"closed:0": MANY // 2}
    await slots(clock, 1)
    figures.states = {"connections": 0}
    figures.totals = {"closed:0": 6 * MANY, "closed:3010": 4 * MANY}
    await slots(clock, 1)
    assert kinds(recorder.answer())[1:] == [("mass_disconnect", 10 * MANY - MANY // 2)]


async def test_connections_that_always_come_and_go_are_no_event(
    recorder: NodeRecorder, clock: Clock, figures: Figures
) -> None:
    figures.states = {"connections": 3 * MANY}
    for number in range(20):
        figures.totals = {"closed:0": number * 12}
        await slots(clock, 1)
    figures.totals = {"closed:0": 20 * 12 + 8}
    await slots(clock, 1)
    assert kinds(recorder.answer()) == [("node_started", 0)]


async def test_samples_tell_of_slow_clients_refusals_and_a_late_loop(
    recorder: NodeRecorder, clock: Clock, figures: Figures
) -> None:
    figures.totals = {"closed:3008": 2, "refused": 7}
    figures.states = {"lag": 900_000}
    await slots(clock, 1)
    figures.states = {"lag": 400_000}
    await slots(clock, 1)
    assert sorted(kinds(recorder.answer())[1:]) == [
        ("late_loop", 900),
        ("refused", 7),
        ("slow_clients", 2),
    ]


async def test_options_differ_by_what_is_no_secret_and_not_by_the_name() -> None:
    assert digest(load({})) == digest(load({"name": "web-1", "api_key": "secret"}))
    assert digest(load({})) != digest(load({"presence": True}))


# a node


async def test_node_counts_what_its_clients_get(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN)
    await publish(node, PLAIN, 1)
    await publish(node, PLAIN, 2)
    await slots(clock, 2)
    [answer] = (await node.survey(AskPast(), PastAnswer)).answers
    sent = decode_answer(encode_answer(answer), PastAnswer)
    assert sent == answer
    assert sum(answer.samples["delivered"]) == 2
    assert answer.samples["subscriptions"] == [1] * len(answer.slots)
    assert (answer.node, answer.name) == (node.uid, node.describe().name)


# its neighbours


@pytest.fixture
async def engine(clock: Clock) -> ClusterEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def watching(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    """A node that has looked at the list of nodes once."""
    made = Node(load({}), engine, observe=NodeObserver)
    await made.start()
    await look(made, clock, 0)
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


async def look(node: Node, clock: Clock, seconds: float = INTERVAL) -> None:
    await clock.advance(seconds)
    await turns()
    await node.idle()


def neighbours(node: Node) -> list[tuple[str, str, str]]:
    """What the node has noted of others."""
    return [
        (event.kind, event.text, event.subject)
        for event in observer_of(node).recorder.events.events()
        if event.subject not in ("", node.uid)
    ]


def announce(engine: ClusterEngine, clock: Clock, lifetime: float = 10_000) -> None:
    other = NodeStatus("U2", "two", "1.0", 0, 0, 0, 60)
    engine.cluster.state.heartbeats["U2"] = Heartbeat(other, lifetime, clock.now)


async def test_node_that_comes_falls_silent_and_comes_back_is_noted(
    watching: Node, engine: ClusterEngine, clock: Clock
) -> None:
    announce(engine, clock)
    await look(watching, clock)
    announce(engine, clock, lifetime=1)
    await look(watching, clock)
    await look(watching, clock)
    announce(engine, clock)
    await look(watching, clock)

    assert neighbours(watching) == [
        ("node_started", "two", "U2"),
        ("node_silent", "two", "U2"),
        ("node_back", "two", "U2"),
    ]


async def test_node_that_leaves_the_list_has_stopped_if_it_is_still_gone_at_the_next_look(
    watching: Node, engine: ClusterEngine, clock: Clock
) -> None:
    announce(engine, clock)
    await look(watching, clock)
    gone = engine.cluster.state.heartbeats.pop("U2")
    await look(watching, clock)
    once = neighbours(watching)
    engine.cluster.state.heartbeats["U2"] = gone
    await look(watching, clock)
    back = neighbours(watching)
    engine.cluster.state.heartbeats.pop("U2")
    await look(watching, clock)
    await look(watching, clock)
    await look(watching, clock)

    assert once == back == [("node_started", "two", "U2")]
    assert neighbours(watching)[1:] == [("node_stopped", "two", "U2")]


async def test_interruption_of_the_engine_is_noted(watching: Node, clock: Clock) -> None:
    watching.on_interrupted(lambda channel: True)
    watching.on_resumed(lambda channel: True)
    noted = [event.kind for event in observer_of(watching).recorder.events.events()]
    assert [kind for kind in noted if kind.startswith("redis")] == ["redis_away", "redis_back"]
