"""The contract of `engine.nodes.Cluster`, for every engine that has one: surveys."""

from __future__ import annotations

from realtime import payload
from realtime.channel_rules import QUESTIONS
from tests.conftest import new_word
from tests.engine.bench import Bench

QUESTION = payload.check(b'{"ask":"how do you do"}')
LIFETIME = 10.0


async def test_question_is_delivered_to_subscribed_nodes_and_neither_kept_nor_listed(
    clustered: Bench,
) -> None:
    await clustered.broker.subscribe(QUESTIONS)

    await clustered.cluster.ask(new_word(), QUESTION, LIFETIME)

    (received,) = await clustered.received(QUESTIONS, 1)
    assert received.data == QUESTION
    assert await clustered.channels() == []
    assert (await clustered.broker.history(QUESTIONS)).publications == ()


async def test_answers_are_read_in_their_order_from_any_index_on(clustered: Bench) -> None:
    survey = new_word()
    await clustered.cluster.ask(survey, QUESTION, LIFETIME)
    assert await clustered.cluster.answers(survey, 0) == []

    for answer in ("first", "zweite: \u00e4", "third"):
        await clustered.cluster.answer(survey, answer.encode())

    answers = [b"first", "zweite: \u00e4".encode(), b"third"]
    assert await clustered.cluster.answers(survey, 0) == answers
    assert await clustered.cluster.answers(survey, 2) == answers[2:]
    assert await clustered.cluster.answers(survey, 3) == []


async def test_surveys_have_answers_of_their_own(clustered: Bench) -> None:
    surveys = [new_word(), new_word()]
    for survey in surveys:
        await clustered.cluster.ask(survey, QUESTION, LIFETIME)

    for survey in surveys:
        await clustered.cluster.answer(survey, survey.encode())

    for survey in surveys:
        assert await clustered.cluster.answers(survey, 0) == [survey.encode()]


async def test_answer_that_comes_too_late_is_dropped(clustered: Bench) -> None:
    survey = new_word()
    await clustered.cluster.ask(survey, QUESTION, LIFETIME)
    await clustered.elapse(LIFETIME + 1)
    await clustered.cluster.answer(survey, b"late")
    assert await clustered.cluster.answers(survey, 0) == []


async def test_answer_to_an_unknown_survey_is_dropped(clustered: Bench) -> None:
    survey = new_word()
    await clustered.cluster.answer(survey, b"never asked")
    assert await clustered.cluster.answers(survey, 0) == []


async def test_answers_do_not_extend_the_life_of_a_survey(clustered: Bench) -> None:
    survey = new_word()
    await clustered.cluster.ask(survey, QUESTION, LIFETIME)

    await clustered.elapse(LIFETIME - 2)
    await clustered.cluster.answer(survey, b"in time")
    await clustered.elapse(3)

    assert await clustered.cluster.answers(survey, 0) == []
