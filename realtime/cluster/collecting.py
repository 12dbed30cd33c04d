"""Collecting the answers of nodes to the question of a survey.

It needs an event loop only if the coroutines of the cluster do.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from realtime.cluster import survey
from realtime.cluster.survey import A, Question
from realtime.engine.nodes import Cluster

logger = logging.getLogger("realtime.node")

SURVEY_TIMEOUT = 1.0
"""Seconds until nodes that did not answer are missing."""
SURVEY_LIFETIME = 2.0
"""Seconds for which Redis takes answers."""
FIRST_LOOK = 0.002
MAX_LOOK_INTERVAL = 0.05
"""Seconds before the first look for answers. Each later interval is twice as long, up to this."""


async def collect(
    cluster: Cluster,
    question: Question,
    kind: type[A],
    waiting: dict[str, str],
    answers: dict[str, A],
    *,
    now: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> None:
    """Ask, and move nodes from `waiting` to `answers` as they answer, until the timeout.

    Args:
        cluster: the nodes.
        question: what they are asked.
        kind: the type of their answers.
        waiting: the ID of a node → its name.
        answers: the ID of a node → its answer.
        now: returns monotonic seconds.
        pause: waits for some seconds.

    Raises:
        EngineUnavailable: Redis did not answer, or refused.
    """
    deadline = now() + SURVEY_TIMEOUT
    await cluster.ask(question.survey, survey.encode_question(question), SURVEY_LIFETIME)
    interval, seen = FIRST_LOOK, 0
    while waiting and now() < deadline:
        await pause(interval)
        interval = min(2 * interval, MAX_LOOK_INTERVAL)
        new = await cluster.answers(question.survey, seen)
        seen += len(new)
        for encoded in new:
            try:
                answer = survey.decode_answer(encoded, kind)
            except msgspec.DecodeError as error:
                logger.debug("Ignored an undecodable survey answer: %s", error)
                continue
            answers[answer.node] = answer
            waiting.pop(answer.node, None)
