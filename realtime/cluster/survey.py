"""Surveys: what is asked of all nodes at once, and what each of them answers, as it travels.

A question is published in a channel of the service that keeps nothing: a node that was cut off
does not hear it later, for nobody waits any more. The answers are collected for a moment where
the engine keeps them; those that come too late are lost. What a node of another version does not
understand it does not answer, so it is one of those that are missing.
"""

from __future__ import annotations

import uuid
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from realtime import payload
from realtime.engine.base import SurveyID
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID

MAX_CONNECTIONS = 1000
"""Connections that an answer tells of."""
MAX_CHANNELS = 1000
"""Channels of one connection that it tells of."""
MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of names and infos in it, about: an answer is kept in Redis, and built on an event loop."""


def _new_id() -> SurveyID:
    return uuid.uuid4().hex


# questions


class AskConnections(Struct, frozen=True, tag="connections", tag_field="ask", gc=False):
    """Which connections does a user have at your node?"""

    user: UserID
    origin: str = ""
    """The node that asks, which does not wait for an answer of its own."""
    survey: SurveyID = field(default_factory=_new_id)


class AskSubscribers(Struct, frozen=True, tag="subscribers", tag_field="ask"):
    """How many connections are subscribed to these channels at your node?"""

    channels: tuple[ChannelName, ...]
    origin: str = ""
    survey: SurveyID = field(default_factory=_new_id)


Question = AskConnections | AskSubscribers

_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)


def encode_question(question: Question) -> Payload:
    """As the data of a publication."""
    return payload.check(msgspec.json.encode(question))


def decode_question(data: Payload) -> Question:
    """Raises msgspec.DecodeError: another version of this service asks."""
    return _question.decode(data.raw)


# answers


class ClientReport(Struct, frozen=True, array_like=True):
    """What a node says of one connection."""

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


class ConnectionsAnswer(Struct, frozen=True, tag="connections", tag_field="answer"):
    """The connections of a user at one node."""

    node: str
    """Node ID."""
    name: str
    total: int
    connections: list[ClientReport]
    """The first of them, `MAX_CONNECTIONS` at most."""


class SubscribersAnswer(Struct, frozen=True, tag="subscribers", tag_field="answer"):
    """How many connections are subscribed at one node."""

    node: str
    name: str
    numbers: list[int]
    """One for each channel of the question, in its order."""


Answer = ConnectionsAnswer | SubscribersAnswer
A = TypeVar("A", ConnectionsAnswer, SubscribersAnswer)


def encode_answer(answer: Answer) -> bytes:
    """As JSON."""
    return msgspec.json.encode(answer)


def decode_answer(answer: bytes, kind: type[A]) -> A:
    """Raises msgspec.DecodeError: another version of this service answers."""
    return msgspec.json.decode(answer, type=kind)


class Surveyed(NamedTuple, Generic[A]):
    """What the nodes answered, and the names of those that did not."""

    answers: list[A]
    missing: list[str]
