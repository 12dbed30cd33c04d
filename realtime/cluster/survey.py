"""Surveys: questions to all nodes and the answers of each.

A question is published in an internal channel without history: a node that was cut off does not
get it later, when its answer would come too late. The engine takes answers for a short time. A
node that does not know a question, because it runs another version, does not answer: it is missing
in the result.

Nodes of the previous version read questions and answers: names, tags and the order of the fields
of `ClientReport` are part of that format. What operators ask is in `realtime.operators.questions`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, Union

import msgspec
from msgspec import Struct

from realtime import payload
from realtime.engine.nodes import Cluster, SurveyID
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID

logger = logging.getLogger("realtime.node")

MAX_CONNECTIONS = 1000
"""Connections in one answer."""
MAX_CHANNELS = 1000
"""Channels of one connection in an answer."""
MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of names and infos in one answer, about. It is built on an event loop, kept by the
engine."""

SURVEY_TIMEOUT = 1.0
"""Seconds until nodes that did not answer are missing."""
SURVEY_LIFETIME = 2.0
"""Seconds for which the engine takes answers."""
FIRST_LOOK = 0.002
MAX_LOOK_INTERVAL = 0.05
"""Seconds before the first look for answers. Each later interval is twice as long, up to this."""


class SurveyQuestion(Struct, frozen=True, kw_only=True, tag_field="ask"):
    """What all nodes are asked."""

    origin: str = ""
    """The ID of the node that asks; it knows its own answer and does not send it."""
    survey: SurveyID = ""


class SurveyAnswer(Protocol):
    """What one node answers: a struct with a tag in the field `answer`."""

    @property
    def node(self) -> str:
        """Node ID."""


A = TypeVar("A", bound=SurveyAnswer)
Handler: TypeAlias = Callable[[Any], Awaitable[SurveyAnswer]]


class Answers:
    """What a node answers to each question that it knows."""

    def __init__(self, handlers: Mapping[type[SurveyQuestion], Handler]) -> None:
        """`handlers`: type of question → what returns the answer."""
        self._handlers = handlers
        self._decoder: msgspec.json.Decoder[SurveyQuestion] = msgspec.json.Decoder(
            Union[tuple(handlers)]  # noqa: UP007
        )

    def question(self, data: Payload) -> SurveyQuestion:
        """Return the question that `encode_question` got.

        Raises:
            msgspec.DecodeError: a node of another version asked something unknown.
        """
        return self._decoder.decode(data.raw)

    async def to(self, question: SurveyQuestion) -> SurveyAnswer | None:
        """Return the answer to a question; None if this node does not know the question."""
        handler = self._handlers.get(type(question))
        return None if handler is None else await handler(question)


def encode_question(question: SurveyQuestion) -> Payload:
    """Return a question as the data of a publication."""
    return payload.check(msgspec.json.encode(question))


def encode_answer(answer: SurveyAnswer) -> bytes:
    """Return an answer as JSON."""
    return msgspec.json.encode(answer)


def decode_answer(answer: bytes, kind: type[A]) -> A:
    """Return the answer that `encode_answer` got.

    Raises:
        msgspec.DecodeError: a node of another version answered something else.
    """
    return msgspec.json.decode(answer, type=kind)


class SurveyResult(NamedTuple, Generic[A]):
    """The answers of the nodes, and the names of the nodes that did not answer in time.

    Silent nodes are among those: they are listed, but send no heartbeats.
    """

    answers: list[A]
    missing: list[str]


async def collect(
    cluster: Cluster,
    question: SurveyQuestion,
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
        EngineUnavailable: The engine did not answer, or refused.
    """
    deadline = now() + SURVEY_TIMEOUT
    await cluster.ask(question.survey, encode_question(question), SURVEY_LIFETIME)
    interval, seen = FIRST_LOOK, 0
    while waiting and now() < deadline:
        await pause(interval)
        interval = min(2 * interval, MAX_LOOK_INTERVAL)
        new = await cluster.answers(question.survey, seen)
        seen += len(new)
        for encoded in new:
            try:
                answer = decode_answer(encoded, kind)
            except msgspec.DecodeError as error:
                logger.debug("Ignored an undecodable survey answer: %s", error)
                continue
            answers[answer.node] = answer
            waiting.pop(answer.node, None)


# questions of the service itself


class AskConnections(SurveyQuestion, frozen=True, tag="connections", gc=False):
    """Ask for the connections of a user at each node."""

    user: UserID


class ClientReport(Struct, frozen=True, array_like=True):
    """One connection, as its node describes it."""

    client: ClientID
    transport: str
    """"websocket" or "sockjs"."""
    seconds: float
    """Since the transport was opened."""
    num_channels: int
    channels: list[ChannelName]
    """The first of them, `MAX_CHANNELS` at most."""
    info: str | None = None
    """Connection info, JSON text."""
    address: str = ""
    """Of the client; "" if it is not known, as are the next ones, also of an older version."""
    agent: str = ""
    """The header User-Agent of the handshake."""
    library: str = ""
    """Name and version of the client library, as it names itself."""
    protocol: str = ""
    """Generation and format, such as "2 json"."""
    auth_session: str = ""
    """The beginning of a digest of the login session: the same for the same session."""
    quiet: float | None = None
    """Seconds since the last command; None if that is not known."""


class ConnectionsAnswer(Struct, frozen=True, tag="connections", tag_field="answer"):
    """The connections of a user at one node."""

    node: str
    """Node ID."""
    name: str
    total: int
    connections: list[ClientReport]
    """The first of them, `MAX_CONNECTIONS` at most."""


class AskSubscribers(SurveyQuestion, frozen=True, tag="subscribers"):
    """Ask for the number of connections that are subscribed to channels at each node."""

    channels: tuple[ChannelName, ...]


class SubscribersAnswer(Struct, frozen=True, tag="subscribers", tag_field="answer"):
    """The number of connections that are subscribed at one node."""

    node: str
    name: str
    numbers: list[int]
    """One for each channel of the question, in its order."""
