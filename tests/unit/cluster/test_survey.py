"""Surveys: the answer of a node, the result of all answers, and the bounds of both."""

from __future__ import annotations

import asyncio

import pytest

from realtime.channel_rules import QUESTIONS
from realtime.cluster import survey
from realtime.cluster.survey import (
    SURVEY_TIMEOUT,
    AskConnections,
    AskSubscribers,
    ClientReport,
    ConnectionsAnswer,
    SubscribersAnswer,
    SurveyQuestion,
)
from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.nodes import NodeStatus
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.operators.questions import AskPast
from realtime.payload import Payload
from realtime.protocol.messages import Publication
from realtime.server_api import operations
from realtime.timers import Timers
from tests.unit.cluster.survey_parts import Reporting
from tests.unit.node.node_parts import PLAIN, subscribe
from tests.unit.parts import Clock, RecordingClient, data, eventually, turns
from tests.unit.suspended_engine import (
    ClusterEngine,
    Gate,
    SuspendedBroker,
    SuspendedCluster,
)

OTHER = NodeStatus("N2", "second", "1.0", 0, 0, 0, 0)
SILENT = NodeStatus("N3", "third", "1.0", 0, 0, 0, 0, last_seen_seconds=20, alive=False)


class AnsweringCluster(SuspendedCluster):
    """Has another node, which answers what the test says."""

    def __init__(self, timers: Timers, broker: SuspendedBroker, gate: Gate) -> None:
        super().__init__(timers, broker, gate)
        self.others: list[NodeStatus] = []
        self.asked: list[bytes] = []
        self.will_answer: list[bytes] = []
        self.answered: list[tuple[str, bytes]] = []

    async def statuses(self) -> list[NodeStatus]:
        return self.others

    async def ask(self, survey_id: str, question: Payload, lifetime: float) -> None:
        self.asked.append(question.raw)

    async def answers(self, survey_id: str, start: int) -> list[bytes]:
        return self.will_answer[start:]

    async def answer(self, survey_id: str, answer: bytes) -> None:
        if "answer" in self.gate.failing:
            raise EngineUnavailable("away")
        self.answered.append((survey_id, answer))


class AnsweringEngine(ClusterEngine):
    """An engine with that cluster."""

    cluster: AnsweringCluster

    def __init__(self, timers: Timers) -> None:
        super().__init__(timers)
        self.cluster = AnsweringCluster(timers, self.broker, self)


@pytest.fixture
async def engine(clock: Clock) -> AnsweringEngine:
    return AnsweringEngine(Timers(asyncio.get_running_loop()))


async def other_asks(engine: AnsweringEngine, question: SurveyQuestion | str) -> None:
    asked = data(question) if isinstance(question, str) else survey.encode_question(question)
    await engine.broker.publish(Outgoing(QUESTIONS, Publication(asked), ChannelOptions()))
    await turns(20)


# what a node answers


async def test_node_answers_with_the_connections_of_the_user(
    node: Node, engine: AnsweringEngine
) -> None:
    for client in (Reporting("C1", ["a", "b"]), RecordingClient("C2", "18")):
        node.hub.add(client)

    await other_asks(engine, AskConnections("17", origin="another", survey="S"))

    ((survey_id, encoded),) = engine.cluster.answered
    answer = survey.decode_answer(encoded, ConnectionsAnswer)
    assert survey_id == "S"
    assert (answer.node, answer.name, answer.total) == (node.uid, "first", 1)
    assert answer.connections == [ClientReport("C1", "websocket", 1.0, 2, ["a", "b"])]


async def test_node_answers_with_the_numbers_of_subscribers_without_observers(
    node: Node, engine: AnsweringEngine
) -> None:
    for number in range(3):
        await subscribe(node, RecordingClient(f"C{number}"), PLAIN)
    held = RecordingClient("held")
    await node.subscriptions.add("a", held, PLAIN, held.info_in("a"))
    await subscribe(node, RecordingClient("O", ""), PLAIN, visible=False)
    await subscribe(node, RecordingClient("O", ""), PLAIN, "watched", visible=False)

    await other_asks(engine, AskSubscribers(("a", "nobody", "watched"), origin="another"))

    ((_, encoded),) = engine.cluster.answered
    assert survey.decode_answer(encoded, SubscribersAnswer).numbers == [4, 0, 0]


async def test_observers_and_subscribers_that_left_are_not_counted_any_more(node: Node) -> None:
    client, observer = RecordingClient("C"), RecordingClient("O", "")
    await subscribe(node, client, PLAIN)
    await subscribe(node, observer, PLAIN, visible=False)
    feed = node.hub.feeds["a"]
    assert feed.size == 1

    await node.subscriptions.remove("a", observer, PLAIN, leave=None, visible=False)
    assert feed.size == 1
    await node.subscriptions.remove("a", client, PLAIN, leave=None)

    assert feed.size == 0


async def test_node_without_an_observer_does_not_know_what_operators_ask(
    node: Node, engine: AnsweringEngine
) -> None:
    await other_asks(engine, AskPast(origin="another"))
    assert engine.cluster.answered == []


async def test_node_does_not_answer_itself(node: Node, engine: AnsweringEngine) -> None:
    await other_asks(engine, AskConnections("17", origin=node.uid))
    assert engine.cluster.answered == []


@pytest.mark.parametrize("words", ['{"ask":"weather"}', "1", '{"ask":"connections"}'])
async def test_unknown_question_is_not_answered_and_the_next_one_is(
    node: Node, engine: AnsweringEngine, words: str
) -> None:
    await other_asks(engine, words)
    assert engine.cluster.answered == []
    await other_asks(engine, AskConnections("17", origin="another", survey="next"))
    assert [survey_id for survey_id, _ in engine.cluster.answered] == ["next"]


async def test_answer_that_cannot_be_sent_does_no_harm(
    node: Node, engine: AnsweringEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.failing.add("answer")
    await other_asks(engine, AskConnections("17", origin="another"))
    assert caplog.records == []


# bounds


async def test_answer_has_a_bounded_size_however_long_the_names_are(node: Node) -> None:
    names = ["x" * 251 + f"{number:04}" for number in range(10_000)]
    for number in range(100):
        node.hub.add(Reporting(f"C{number}", names))

    ((answer,), _) = await operations.connections(node, "17")

    assert answer.total == 100
    assert 0 < len(answer.connections) < 100
    assert len(survey.encode_answer(answer)) < 2 * survey.MAX_ANSWER_BYTES
    assert {len(report.channels) for report in answer.connections} == {survey.MAX_CHANNELS}
    assert {report.num_channels for report in answer.connections} == {10_000}


# asking


async def test_node_without_others_asks_none(node: Node, engine: AnsweringEngine) -> None:
    node.hub.add(RecordingClient("C"))
    ((answer,), missing) = await operations.connections(node, "17")
    assert ([report.client for report in answer.connections], missing) == (["C"], [])
    assert engine.cluster.asked == []


async def test_result_has_the_answers_of_all_nodes(
    node: Node, engine: AnsweringEngine, clock: Clock
) -> None:
    engine.cluster.others = [OTHER]
    await subscribe(node, RecordingClient("C"), PLAIN)
    asking = asyncio.create_task(operations.subscribers(node, ["a", "b"]))
    await eventually(lambda: bool(engine.cluster.asked))

    engine.cluster.will_answer.append(
        survey.encode_answer(SubscribersAnswer("N2", "second", [2, 3]))
    )
    await clock.advance(0.1)
    answers, missing = await asking

    assert [(answer.name, answer.numbers) for answer in answers] == [
        ("first", [1, 0]),
        ("second", [2, 3]),
    ]
    assert missing == []


@pytest.mark.parametrize(
    "answer", [None, b"{}", b"[", b'{"answer":"connections"}'], ids=["none", "{}", "[", "other"]
)
async def test_node_that_does_not_answer_in_time_is_missing(
    node: Node, engine: AnsweringEngine, clock: Clock, answer: bytes | None
) -> None:
    engine.cluster.others = [OTHER]
    engine.cluster.will_answer += [] if answer is None else [answer]
    asking = asyncio.create_task(operations.subscribers(node, ["a"]))
    await eventually(lambda: bool(engine.cluster.asked))

    for _ in range(int(SURVEY_TIMEOUT / 0.1) - 1):
        await clock.advance(0.1)
        await turns(20)
    assert not asking.done()
    await clock.advance(0.2)
    await eventually(asking.done)

    answers, missing = await asking
    assert ([answer.name for answer in answers], missing) == (["first"], ["second"])


async def test_silent_node_is_missing_at_once_and_counts_if_it_answers_all_the_same(
    node: Node, engine: AnsweringEngine, clock: Clock
) -> None:
    engine.cluster.others = [SILENT]

    assert (await operations.subscribers(node, ["a"])).missing == ["third"]
    assert await node.silent() == ["third"]

    engine.cluster.others = [OTHER, SILENT]
    engine.cluster.will_answer += [
        survey.encode_answer(SubscribersAnswer(uid, name, [1]))
        for uid, name in (("N3", "third"), ("N2", "second"))
    ]
    asking = asyncio.create_task(operations.subscribers(node, ["a"]))
    await eventually(lambda: bool(engine.cluster.asked))
    await clock.advance(0.1)
    answers, missing = await asking
    assert ([answer.name for answer in answers], missing) == (["first", "third", "second"], [])
