"""Surveys: questions to all nodes and the answers of each, as they travel.

A question is published in an internal channel without history: a node that was cut off does not
get it later, when its answer would come too late. Redis takes answers for a short time. A
node that does not know a question, because it runs another version, does not answer: it is missing
in the result.

Nodes of the previous version read questions and answers: names, tags and the order of the fields
of `ClientReport` are part of that format.
"""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from realtime import payload
from realtime.cluster.user_surveys import (
    AskRecent,
    AskUsers,
    RecentAnswer,
    UsersAnswer,
    new_id,
)
from realtime.engine.nodes import SurveyID
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID

MAX_CONNECTIONS = 1000
"""Connections in one answer."""
MAX_CHANNELS = 1000
"""Channels of one connection in an answer."""
MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of names and infos in one answer, about. It is built on an event loop, kept in Redis."""
MAX_BUSY_CHANNELS = 100
"""Channels that a node names as its busiest ones, and namespaces."""
SLOT_SECONDS = 10
"""Seconds between two samples of a node. Slots are counted since the beginning of Unix time."""


# questions


class AskConnections(Struct, frozen=True, tag="connections", tag_field="ask", gc=False):
    """Ask for the connections of a user at each node."""

    user: UserID
    origin: str = ""
    """The ID of the node that asks; it knows its own answer and does not send it."""
    survey: SurveyID = field(default_factory=new_id)


class AskSubscribers(Struct, frozen=True, tag="subscribers", tag_field="ask"):
    """Ask for the number of connections that are subscribed to channels at each node."""

    channels: tuple[ChannelName, ...]
    origin: str = ""
    survey: SurveyID = field(default_factory=new_id)


Order = Literal["publications", "subscribers", "bytes"]
"""What makes a channel one of the busiest."""


class AskActivity(Struct, frozen=True, tag="activity", tag_field="ask"):
    """Ask each node how busy it is. It counts publications by channel for a while after this."""

    limit: int
    """Channels that it names, `MAX_BUSY_CHANNELS` at most."""
    order: Order = "publications"
    origin: str = ""
    namespace: str | None = None
    """Only channels of this namespace, "" for the top level; None: of all."""
    pattern: str = ""
    """Only channels whose name matches it, in any case: `*`, `?` and `[..]`; "": all."""
    survey: SurveyID = field(default_factory=new_id)


class AskMirror(Struct, frozen=True, kw_only=True, tag="mirror", tag_field="ask"):
    """Ask each node for what it has copied since the last question about the same mirror.

    The first question begins the mirror at a node. It ends when no question comes any more.
    """

    mirror: str
    """Names the mirror, and is new for each."""
    user: UserID = ""
    """Copy the frames of this user's connections; "" for none."""
    channels: str = ""
    """Copy the publications in channels that match this pattern; "" for none."""
    masked: bool = False
    """Leave payloads out."""
    taken: dict[str, int] = {}
    """Node ID → the number of the last copy that arrived."""
    ends: bool = False
    """End the mirror."""
    origin: str = ""
    survey: SurveyID = field(default_factory=new_id)


class AskPast(Struct, frozen=True, tag="past", tag_field="ask"):
    """Ask each node for its samples and events of the last hour."""

    origin: str = ""
    survey: SurveyID = field(default_factory=new_id)


Question = (
    AskConnections | AskSubscribers | AskActivity | AskMirror | AskPast | AskRecent | AskUsers
)

_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)


def encode_question(question: Question) -> Payload:
    """Return a question as the data of a publication."""
    return payload.check(msgspec.json.encode(question))


def decode_question(data: Payload) -> Question:
    """Return the question that `encode_question` got.

    Raises:
        msgspec.DecodeError: a node of another version asked something unknown.
    """
    return _question.decode(data.raw)


# answers


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


class SubscribersAnswer(Struct, frozen=True, tag="subscribers", tag_field="answer"):
    """The number of connections that are subscribed at one node."""

    node: str
    name: str
    numbers: list[int]
    """One for each channel of the question, in its order."""


class NodeFigures(Struct, frozen=True, kw_only=True):
    """What a node says of itself: its state, and its counts since its start."""

    node: str
    """Node ID."""
    name: str
    version: str
    uptime: float
    """Seconds since its start, by the clock to which its counts belong."""
    connections: int
    users: int
    channels: int
    subscriptions: int
    published: int
    """Publications made in its process."""
    delivered: int
    """Publications pushed to its clients."""
    draining: bool
    loop_lag: float
    """The largest lag of the last half minute, seconds."""
    cpu_seconds: float
    """CPU time of its process."""
    memory: int | None = None
    """Bytes of memory that its process uses; None where the system does not say."""


class ChannelActivity(Struct, frozen=True, array_like=True):
    """A busy channel, as one node sees it."""

    channel: ChannelName
    subscribers: int
    publications: float
    """In a second, of the last seconds."""
    bytes: float = 0.0
    """Of the data of those; 0 also of an older version."""


class NamespaceActivity(Struct, frozen=True, array_like=True):
    """A namespace at one node."""

    namespace: str
    """"" for the top level."""
    channels: int
    """Those with a subscriber at this node."""
    subscribers: int
    delivered: int
    """Publications pushed to the clients of this node since its start."""


class ActivityAnswer(Struct, frozen=True, tag="activity", tag_field="answer"):
    """How busy one node is."""

    figures: NodeFigures
    seconds: float
    """How long publications were counted; 0 if counting begins now."""
    channels: list[ChannelActivity]
    namespaces: list[NamespaceActivity]

    @property
    def node(self) -> str:
        return self.figures.node


CopyKind = Literal["there", "opened", "received", "sent", "closed", "published"]
"""What a copy is of: a connection that was there, was opened or was closed, a frame that the client
sent or was sent, a publication."""


class Copy(Struct, frozen=True, array_like=True):
    """What a mirror shows: a frame, a publication, or that a connection came or went."""

    number: int
    """In the order of copies of one mirror at one node."""
    time: float
    """Unix seconds, by the clock of the node."""
    kind: CopyKind
    client: ClientID
    """"" for a publication."""
    channel: ChannelName
    """"" for a frame."""
    text: str
    """JSON, without secrets; or a text in brackets in place of what cannot be shown."""
    offset: int = 0
    epoch: str = ""
    """The position of a publication; 0 and "" without history."""


class MirrorAnswer(Struct, frozen=True, tag="mirror", tag_field="answer"):
    """What one node has copied."""

    node: str
    name: str
    copies: list[Copy]
    left_out: int
    """How much was not copied since the mirror began, because more happened than it holds."""
    refused: bool = False
    """Whether the node has as many mirrors as it may."""


class Event(Struct, frozen=True, array_like=True, gc=False):
    """Something that happened at a node, or equal things that happened within a minute."""

    kind: str
    """One of `node.event_log.KINDS`; newer versions may have others."""
    first: float
    """Unix seconds, by the clock of the node."""
    last: float
    """When it happened for the last time."""
    count: int
    """How often; of log lines, how many with the same template."""
    text: str = ""
    """A log line, or the name of what the event is about; see `node.event_log.KINDS`."""
    subject: str = ""
    """The ID of what it is about, if other nodes see the same event."""
    number: float = 0
    """A figure, such as connections; its meaning belongs to the kind."""


class PastAnswer(Struct, frozen=True, kw_only=True, tag="past", tag_field="answer"):
    """What one node keeps of the last hour. A node that started since has less."""

    node: str
    name: str
    now: float
    """Unix seconds, by the clock of the node, as all other times are."""
    started: float
    options: str = ""
    """Equal at nodes with equal options, those left out that belong to one node, and secrets."""
    slots: list[int]
    """The numbers of its samples: each was taken at this many times `SLOT_SECONDS`. They grow;
    those that are left out were not taken."""
    samples: dict[str, list[int]]
    """Figure → its value in each sample; see `node.samples` and `node.figures`."""
    events: list[Event]
    """Oldest first."""


Answer = (
    ConnectionsAnswer
    | SubscribersAnswer
    | ActivityAnswer
    | MirrorAnswer
    | PastAnswer
    | RecentAnswer
    | UsersAnswer
)
A = TypeVar(
    "A",
    ConnectionsAnswer,
    SubscribersAnswer,
    ActivityAnswer,
    MirrorAnswer,
    PastAnswer,
    RecentAnswer,
    UsersAnswer,
)


def encode_answer(answer: Answer) -> bytes:
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
