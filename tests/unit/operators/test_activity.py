"""Activity: what a node says of its busiest channels, and when it counts."""

from __future__ import annotations

from typing import NoReturn

import pytest

from realtime.cluster.survey import decode_answer, encode_answer
from realtime.config.options import ChannelOptions
from realtime.node.hub import Hub
from realtime.node.node import Node
from realtime.operators.activity import LEASE, MAX_COUNTED, SLICE, Activity
from realtime.operators.questions import (
    MAX_BUSY_CHANNELS,
    ActivityAnswer,
    AskActivity,
    Order,
)
from realtime.operators.service_activity import activity as service_activity
from realtime.operators.taps import Taps
from realtime.protocol.messages import Publication, StreamPosition
from tests.unit.node.node_parts import PLAIN, publish, subscribe
from tests.unit.operators.observer_parts import observer_of
from tests.unit.parts import Clock, RecordingClient, data

RECOVERABLE = ChannelOptions(history_size=9, history_lifetime=60, history_recover=True)


async def ask(node: Node, limit: int = 10, order: Order = "publications") -> ActivityAnswer:
    [answer] = (await node.survey(AskActivity(limit, order), ActivityAnswer)).answers
    return decode_answer(encode_answer(answer), ActivityAnswer)


def rates(answer: ActivityAnswer) -> dict[str, float]:
    return {each.channel: each.publications for each in answer.channels}


def is_watched(node: Node) -> bool:
    return node.observer.published is not None


@pytest.mark.parametrize("options", [PLAIN, RECOVERABLE], ids=["plain", "recoverable"])
async def test_rates_are_those_since_the_node_was_first_asked(
    node: Node, clock: Clock, options: ChannelOptions
) -> None:
    for channel in ("busy", "calm", "quiet"):
        for client in ("A", "B"):
            await subscribe(node, RecordingClient(client), options, channel)
    await publish(node, options, 0, "busy")
    first = await ask(node)
    for value in range(8):
        await publish(node, options, value, "busy")
    await publish(node, options, 0, "calm")
    await clock.advance(4)

    second = await ask(node)

    assert (first.seconds, set(rates(first).values())) == (0, {0})
    assert second.seconds == 4
    assert list(rates(second).items()) == [("busy", 2), ("calm", 0.25), ("quiet", 0)]
    assert [each.subscribers for each in second.channels] == [2, 2, 2]


async def test_rates_follow_what_happens(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN, "a")
    await ask(node)
    for value in range(6):
        await publish(node, PLAIN, value)
    seen = []
    for _ in range(3):
        await clock.advance(2)
        seen.append(rates(await ask(node))["a"])
    assert seen == [3, 1.5, 0]


async def test_another_operator_who_asks_often_takes_nothing_away(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN, "a")
    await ask(node)
    await clock.advance(1)
    for value in range(8):
        await publish(node, PLAIN, value)
    for _ in range(8):
        await clock.advance(0.125)
        await ask(node)
    assert rates(await ask(node)) == {"a": 4}


async def test_node_stops_counting_when_it_is_not_asked_any_more(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN, "a")
    assert not is_watched(node)
    await ask(node)
    await clock.advance(LEASE - 1)
    await ask(node)
    assert is_watched(node)
    await clock.advance(LEASE)
    assert not is_watched(node)
    await publish(node, PLAIN, 1)
    assert (await ask(node)).seconds == 0


async def test_the_busiest_are_found_among_many_and_ordered_as_asked(
    node: Node, clock: Clock
) -> None:
    names = [f"c{number}" for number in range(SLICE + 50)]
    for name in names:
        await subscribe(node, RecordingClient(), PLAIN, name)
    await subscribe(node, RecordingClient("second"), PLAIN, names[3])
    await ask(node)
    await publish(node, PLAIN, 1, names[-1])
    await clock.advance(1)
    by_publications = await ask(node, 2)
    by_subscribers = await ask(node, 2, "subscribers")
    assert [each.channel for each in by_publications.channels] == [names[-1], names[3]]
    assert [each.channel for each in by_subscribers.channels] == [names[3], names[-1]]


@pytest.mark.parametrize(("limit", "named"), [(-1, 0), (10**9, MAX_BUSY_CHANNELS)])
async def test_answer_names_a_bounded_number_of_channels(
    node: Node, limit: int, named: int
) -> None:
    for number in range(MAX_BUSY_CHANNELS + 1):
        await subscribe(node, RecordingClient(), PLAIN, f"c{number}")
    answer = await ask(node, limit)
    assert len(answer.channels) == named
    assert answer.figures.channels == MAX_BUSY_CHANNELS + 1


async def test_count_of_channels_that_come_and_go_is_bounded(node: Node, clock: Clock) -> None:
    taps = Taps()
    figures = (await ask(node)).figures
    activity = Activity(Hub(), taps, node.counters, node.timers, lambda: figures)
    await activity.answer(AskActivity(1))
    assert taps.published is not None
    for number in range(MAX_COUNTED + 10):
        taps.published(str(number), Publication(data("1")), None)
    assert len(activity._counts) == MAX_COUNTED


class Counts(dict[str, list[int]]):
    """Counts of so many channels that going through all of them would hold up the event loop."""

    def items(self) -> NoReturn:
        raise AssertionError("went through all channels that were counted")

    __iter__ = keys = values = copy = items


async def test_answer_does_not_go_through_all_counts_in_one_turn(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN, "a")
    figures = (await ask(node)).figures
    activity = Activity(node.hub, Taps(), node.counters, node.timers, lambda: figures)
    question = AskActivity(1)
    await activity.answer(question)
    seen = []
    for number in (4, 2):
        activity._counts = Counts(a=[number, 10])
        await clock.advance(1)
        seen.append((await activity.answer(question)).channels[0].publications)
    assert seen == [4, 3]


async def test_answer_has_the_figures_of_the_node_and_its_namespaces(
    node: Node, clock: Clock
) -> None:
    await clock.advance(20)
    client = RecordingClient()
    node.hub.add(client)
    await subscribe(node, client, PLAIN)
    await publish(node, PLAIN, 1)

    answer = await ask(node)

    figures, [namespace] = answer.figures, answer.namespaces
    assert (figures.node, figures.name) == (node.uid, node.describe().name)
    assert (figures.connections, figures.users, figures.channels) == (1, 1, 1)
    assert (figures.subscriptions, figures.published, figures.delivered) == (1, 1, 1)
    assert (figures.uptime, figures.draining) == (20, False)
    assert figures.cpu_seconds > 0
    assert figures.memory is None or figures.memory > 1024 * 1024
    assert (namespace.namespace, namespace.channels) == ("", 1)
    assert (namespace.subscribers, namespace.delivered) == (1, 1)


async def test_operation_says_that_rates_are_not_known_yet(node: Node, clock: Clock) -> None:
    await subscribe(node, RecordingClient(), PLAIN)
    first = await service_activity(node, 5)
    await clock.advance(1)
    second = await service_activity(node, 5)
    assert [each.publications for each in first.channels] == [None]
    assert [(each.subscribers, each.publications) for each in second.channels] == [(1, 0.0)]


async def test_watcher_that_fails_is_left_out_and_the_publication_is_delivered(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def fail(channel: str, publication: Publication, position: StreamPosition | None) -> None:
        raise ValueError

    def see(channel: str, publication: Publication, position: StreamPosition | None) -> None:
        seen.append(channel)

    client = RecordingClient()
    await subscribe(node, client, PLAIN)
    observer_of(node).add(fail)
    observer_of(node).add(see)

    await publish(node, PLAIN, 1)
    await publish(node, PLAIN, 2)

    assert (len(client.pushed), seen) == (2, ["a", "a"])
    assert [record.message for record in caplog.records] == ["Could not watch a publication"]
