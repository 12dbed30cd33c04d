"""Results of the methods of the server API, as they stand in the body of a response.

A field with a default is left out where it has it. The names of those of `POST /api` begin with
`Command`, where the other dialect has another shape.

docs/protocol.md, 6.4 and 6.8.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from realtime.engine import base
from realtime.engine.nodes import NodeInfo
from realtime.errors import Error
from realtime.protocol.json_shapes import ClientInfoShape, client_info, raw
from realtime.protocol.messages import Publication


class ErrorBody(Struct):
    """Why a command failed."""

    code: int
    message: str

    @classmethod
    def of(cls, error: Error) -> ErrorBody:
        """Return the body of an error."""
        return cls(error.code, error.message)


class Done(Struct):
    """Nothing: the command was run."""


class Sent(Struct, omit_defaults=True):
    """`missing`: the names of nodes that are silent; they do it when they are back."""

    missing: list[str] = []


class Published(Struct, omit_defaults=True):
    """The position of the publication; nothing without history.

    `kept`: false where `expect` is not the top of the channel. Then nothing was published, and the
    position is the top.
    """

    offset: int = 0
    epoch: str = ""
    kept: bool = True


class BroadcastReply(Struct, omit_defaults=True):
    """`result` or `error`: of the publication into one channel."""

    result: Published | None = None
    error: ErrorBody | None = None


class BroadcastResult(Struct):
    """`responses`: one for each channel, in their order."""

    responses: list[BroadcastReply]


class PresenceResult(Struct):
    """`presence`: client ID → client info."""

    presence: dict[str, ClientInfoShape]


class KeptPublication(Struct, omit_defaults=True):
    """A publication in a history, or an entry of a map. `time`: Unix milliseconds."""

    data: Raw
    info: ClientInfoShape | None = None
    offset: int = 0
    tags: dict[str, str] | None = None
    time: int = 0
    key: str = ""
    removed: bool = False

    @classmethod
    def of(cls, new: Publication) -> KeptPublication:
        """Return the shape of a publication."""
        tags = dict(sorted(new.tags.items())) if new.tags else None
        return cls(raw(new.data), _info(new), new.offset, tags, new.time, new.key, new.removed)


class MapChangeResult(Struct, omit_defaults=True):
    """What became of a change of a map. `current`: where it was not made, the entry of the key."""

    offset: int = 0
    epoch: str = ""
    suppressed: bool = False
    suppress_reason: str = ""
    current: KeptPublication | None = None

    @classmethod
    def of(cls, change: base.Published) -> MapChangeResult:
        """Return the shape of a change."""
        position = change.position
        offset, epoch = (0, "") if position is None else (position.offset, position.epoch)
        current = None if change.current is None else KeptPublication.of(change.current)
        return cls(offset, epoch, not change.kept, change.reason, current)


class MapReadStateResult(Struct, omit_defaults=True):
    """A page of entries, and the position at which they were read. `cursor`: of the next page;
    absent after the last one."""

    entries: list[KeptPublication]
    offset: int = 0
    epoch: str = ""
    cursor: str = ""


class MapReadStreamResult(Struct):
    """Changes of a map, and the top position of its stream."""

    entries: list[KeptPublication]
    offset: int
    epoch: str


class MapStatsResult(Struct):
    """`num_keys`: keys in the map."""

    num_keys: int


class HistoryResult(Struct):
    """Publications, and the top position of the stream."""

    publications: list[KeptPublication]
    epoch: str
    offset: int


class CommandPublication(Struct, omit_defaults=True):
    """A publication in a history."""

    uid: str
    data: Raw
    info: ClientInfoShape | None = None
    key: str = ""
    removed: bool = False

    @classmethod
    def of(cls, new: Publication) -> CommandPublication:
        """Return the shape of a publication."""
        return cls(new.uid, raw(new.data), _info(new), new.key, new.removed)


class CommandHistoryResult(Struct):
    """`publications`: the oldest first."""

    publications: list[CommandPublication]


class ChannelNumbers(Struct):
    """What is known of a channel."""

    num_clients: int


class ChannelsResult(Struct, omit_defaults=True):
    """`missing`: the names of nodes that are silent, or did not answer."""

    channels: dict[str, ChannelNumbers]
    missing: list[str] = []


class CommandChannelsResult(Struct, omit_defaults=True):
    """`missing`: the names of nodes that are silent."""

    channels: list[str]
    missing: list[str] = []


class NodeMetrics(Struct):
    """What a node has counted in `interval` seconds."""

    interval: float
    items: dict[str, int]


class Node(Struct):
    """A node. `uptime`: seconds."""

    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_subs: int
    num_channels: int
    uptime: int
    metrics: NodeMetrics


class InfoResult(Struct):
    """The nodes of the service."""

    nodes: list[Node]


class CommandNode(NodeInfo, frozen=True, gc=False):
    """A node. `uptime`: seconds."""

    metrics: None = None


class CommandInfoResult(Struct):
    """The nodes of the service."""

    nodes: list[CommandNode]


class BlockedUser(Struct):
    """`expire_at`: Unix seconds, when the block ends."""

    user: str
    expire_at: int


class BlockedUsersResult(Struct):
    """Users who are blocked; those whose block ends first come first."""

    users: list[BlockedUser]


def _info(publication: Publication) -> ClientInfoShape | None:
    return None if publication.info is None else client_info(publication.info)
