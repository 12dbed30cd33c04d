"""Questions to all nodes and their answers, nodes that died, and how long Redis takes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from realtime import payload
from realtime.channel_rules import QUESTIONS
from realtime.engine.base import NODES_REMEMBERED, NodeStatus
from realtime.errors import EngineUnavailable
from tests.conftest import new_word
from tests.engine.bench import NODE, SECOND_NODE, Bench
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import KINDS, RedisBench
from tests.redis_server import RedisServer

QUESTION = payload.check(b'{"ask":"how do you do"}')
LIFETIME = 10.0
SLACK = 5.0
"""Seconds that a busy machine may add."""


@pytest.fixture(params=KINDS)
async def bench(request: pytest.FixtureRequest, open_redis: OpenRedisBench) -> RedisBench:
    """Each kind of engine over Redis."""
    made: RedisBench = await open_redis(request.param)
    await made.engine.withdraw(NODE)
    return made


def left_of(bench: RedisBench, survey: str) -> set[str]:
    """What is in Redis of a survey."""
    stored = bench.keys()
    return {key for key in stored if survey in key}


# surveys


async def test_question_reaches_nodes_that_listen_and_is_not_kept(bench: RedisBench) -> None:
    await bench.engine.subscribe(QUESTIONS)

    await bench.engine.ask(new_word(), QUESTION, LIFETIME)

    (heard,) = await bench.received(QUESTIONS, 1)
    assert heard.data == QUESTION
    assert (await bench.engine.history(QUESTIONS)).publications == ()


async def test_questions_are_no_channel_of_the_list(bench: RedisBench) -> None:
    await bench.engine.subscribe(QUESTIONS)

    assert await bench.engine.channels() == []


async def test_answers_are_collected_in_their_order_from_any_one_on(bench: RedisBench) -> None:
    survey = new_word()
    await bench.engine.ask(survey, QUESTION, LIFETIME)
    assert await bench.engine.answers(survey, 0) == []

    for answer in ("first", "zweite: \u00e4", "third"):
        await bench.engine.answer(survey, answer.encode())

    answers = [b"first", "zweite: \u00e4".encode(), b"third"]
    assert await bench.engine.answers(survey, 0) == answers
    assert await bench.engine.answers(survey, 2) == answers[2:]
    assert await bench.engine.answers(survey, 3) == []


async def test_answers_to_different_questions_do_not_meet(bench: RedisBench) -> None:
    surveys = [new_word(), new_word()]
    for survey in surveys:
        await bench.engine.ask(survey, QUESTION, LIFETIME)

    for survey in surveys:
        await bench.engine.answer(survey, survey.encode())

    for survey in surveys:
        assert await bench.engine.answers(survey, 0) == [survey.encode()]


async def test_answer_that_comes_too_late_leaves_nothing(bench: RedisBench) -> None:
    survey = new_word()
    await bench.engine.ask(survey, QUESTION, LIFETIME)
    assert left_of(bench, survey)

    await bench.elapse(LIFETIME + 1)
    await bench.engine.answer(survey, b"late")

    assert await bench.engine.answers(survey, 0) == []
    assert left_of(bench, survey) == set()


async def test_answers_do_not_make_the_time_for_them_longer(bench: RedisBench) -> None:
    survey = new_word()
    await bench.engine.ask(survey, QUESTION, LIFETIME)

    await bench.elapse(LIFETIME - 2)
    await bench.engine.answer(survey, b"in time")
    await bench.elapse(3)

    assert await bench.engine.answers(survey, 0) == []


# nodes


async def test_status_says_what_the_node_announced_and_that_it_lives(bench: RedisBench) -> None:
    said = NodeStatus(
        **msgspec.structs.asdict(SECOND_NODE), messages_published=70, messages_delivered=900
    )

    await bench.engine.announce(said, LIFETIME)

    (status,) = await bench.engine.statuses()
    assert (status.uid, status.num_channels, status.uptime) == ("N2", 9, 10)
    assert (status.messages_published, status.messages_delivered) == (70, 900)
    assert status.alive
    assert 0 <= status.silent_for < SLACK
    assert await bench.engine.nodes() == [SECOND_NODE]


async def test_node_of_an_older_version_published_nothing_as_far_as_we_know(
    bench: RedisBench,
) -> None:
    await bench.engine.announce(SECOND_NODE, LIFETIME)

    (status,) = await bench.engine.statuses()
    assert (status.name, status.messages_published, status.messages_delivered) == ("second", 0, 0)


async def test_node_that_fell_silent_is_dead_and_known_for_five_minutes(
    bench: RedisBench,
) -> None:
    await bench.engine.announce(NODE, LIFETIME)

    await bench.elapse(LIFETIME - SLACK)
    (status,) = await bench.engine.statuses()
    assert status.alive
    await bench.elapse(SLACK + 1)
    (status,) = await bench.engine.statuses()
    assert not status.alive
    assert LIFETIME + 1 <= status.silent_for < LIFETIME + 1 + SLACK
    assert await bench.engine.nodes() == []

    await bench.elapse(300 - 2 * SLACK)
    assert [status.alive for status in await bench.engine.statuses()] == [False]

    await bench.elapse(2 * SLACK)
    assert await bench.engine.statuses() == []


async def test_node_that_is_forgotten_leaves_nothing_beside_one_that_lives(
    bench: RedisBench,
) -> None:
    await bench.engine.announce(NODE, LIFETIME)
    await bench.elapse(NODES_REMEMBERED - 1)
    await bench.engine.announce(SECOND_NODE, LIFETIME)
    await bench.elapse(2)

    assert [status.uid for status in await bench.engine.statuses()] == ["N2"]

    with bench.servers[0].client() as client, bench.servers[-1].client() as other:
        entries = [name for c in (client, other) for name in c.hkeys(bench.engine.keys.seen[0])]
    assert set(entries) == {b"N2"}


async def test_dead_node_that_gives_a_sign_of_life_lives(bench: RedisBench) -> None:
    await bench.engine.announce(NODE, LIFETIME)
    await bench.elapse(LIFETIME + 1)

    await bench.engine.announce(NODE, LIFETIME)

    (status,) = await bench.engine.statuses()
    assert status.alive
    assert status.silent_for < SLACK


async def test_node_that_withdrew_is_not_known_any_more(bench: RedisBench) -> None:
    for node in (NODE, SECOND_NODE):
        await bench.engine.announce(node, LIFETIME)

    await bench.engine.withdraw(NODE)

    assert [status.uid for status in await bench.engine.statuses()] == ["N2"]


# every engine


async def test_round_trip_takes_time_where_there_is_one(engine: Bench) -> None:
    seconds = await engine.engine.round_trip()

    if engine.engine.shared:
        assert seconds is not None
        assert 0 < seconds < SLACK
    else:
        assert seconds is None


async def test_without_other_nodes_nobody_answers(engine: Bench) -> None:
    survey = new_word()

    await engine.engine.answer(survey, b"nobody asked")

    assert await engine.engine.answers(survey, 0) == []
    if not engine.engine.shared:
        assert await engine.engine.statuses() == []


async def test_round_trip_to_a_redis_that_is_away_fails(
    open_redis: OpenRedisBench, own_redis: Callable[..., RedisServer]
) -> None:
    server = own_redis()
    bench: RedisBench = await open_redis(servers=[server])

    server.kill()

    with pytest.raises(EngineUnavailable):
        await bench.engine.round_trip()
