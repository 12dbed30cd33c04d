"""What operators ask all nodes, and what each node answers, as it travels.

Nodes of the previous version read questions and answers: names and tags are part of that format.
A question needs a row in `observer`, which says what answers it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from realtime.cluster.survey import SurveyQuestion
from realtime.protocol.messages import ChannelName, ClientID, UserID

MAX_BUSY_CHANNELS = 100
"""Channels that a node names as its busiest ones, and namespaces."""
MAX_USERS = 100
"""Users that a node names."""
SLOT_SECONDS = 10
"""Seconds between two samples of a node. Slots are counted since the beginning of Unix time."""


# how busy nodes are


Order = Literal["publications", "subscribers", "bytes"]
"""What makes a channel one of the busiest."""


class AskActivity(SurveyQuestion, frozen=True, tag="activity"):
    """Ask each node how busy it is. It counts publications by channel for a while after this."""

    limit: int
    """Channels that it names, `MAX_BUSY_CHANNELS` at most."""
    order: Order = "publications"
    namespace: str | None = None
    """Only channels of this namespace, "" for the top level; None: of all."""
    pattern: str = ""
    """Only channels whose name matches it, in any case: `*`, `?` and `[..]`; "": all."""


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


# copies of frames and publications


class AskMirror(SurveyQuestion, frozen=True, tag="mirror"):
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
    taken: dict[str, int] = field(default_factory=dict)
    """Node ID → the number of the last copy that arrived."""
    ends: bool = False
    """End the mirror."""


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
    key: str = ""
    """Of a change of a map; "" else."""
    removed: bool = False


class MirrorAnswer(Struct, frozen=True, tag="mirror", tag_field="answer"):
    """What one node has copied."""

    node: str
    name: str
    copies: list[Copy]
    left_out: int
    """How much was not copied since the mirror began, because more happened than it holds."""
    refused: bool = False
    """Whether the node has as many mirrors as it may."""


# the last hour


class AskPast(SurveyQuestion, frozen=True, tag="past"):
    """Ask each node for its samples and events of the last hour."""


class Event(Struct, frozen=True, array_like=True, gc=False):
    """Something that happened at a node, or equal things that happened within a minute."""

    kind: str
    """One of `event_log.KINDS`; newer versions may have others."""
    first: float
    """Unix seconds, by the clock of the node."""
    last: float
    """When it happened for the last time."""
    count: int
    """How often; of log lines, how many with the same template."""
    text: str = ""
    """A log line, or the name of what the event is about; see `event_log.KINDS`."""
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
    """Figure → its value in each sample; see `samples` and `figures`."""
    events: list[Event]
    """Oldest first."""


# users


class AskRecent(SurveyQuestion, frozen=True, tag="recent", gc=False):
    """Ask each node how the connections of a user ended, and what was refused to the user."""

    user: UserID


class Refusal(Struct, frozen=True, array_like=True):
    """A command that was refused."""

    time: float
    """Unix seconds, by the clock of the node."""
    command: str
    """Its method."""
    channel: ChannelName
    """"" if that is not known."""
    code: int
    message: str


class RecentAnswer(Struct, frozen=True, tag="recent", tag_field="answer"):
    """What one node remembers of a user."""

    node: str
    name: str
    ended_at: float
    """When the last connection ended, Unix seconds; 0 if the node knows of none."""
    code: int
    """What the client got; 0 if it went."""
    reason: str
    refusals: list[Refusal]
    """Oldest first."""


class AskUsers(SurveyQuestion, frozen=True, tag="users", gc=False):
    """Ask each node which users are connected whose ID begins so."""

    prefix: str
    limit: int
    """Users that it names, `MAX_USERS` at most."""


class UsersAnswer(Struct, frozen=True, tag="users", tag_field="answer"):
    """The users who are connected to one node and match."""

    node: str
    name: str
    users: dict[UserID, int]
    """The first of them → connections here."""
    total: int
    """How many match."""
