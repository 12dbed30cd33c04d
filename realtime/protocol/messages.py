"""Messages: commands with their requests and results, publications, client info.

They are the same for all formats and generations; the codecs map them to and from the wire. Where
a request looks the same on the wire, JSON is decoded straight into its struct. Such a struct
forbids unknown fields, so that the decoder can try again with folded keys (see `json_stream`).

docs/protocol.md, 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Raw, Struct

from realtime.payload import Payload

ChannelName: TypeAlias = str
ClientID: TypeAlias = str
UserID: TypeAlias = str

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1

UInt32 = Annotated[int, Meta(ge=0, le=UINT32_MAX)]

ABSENT = Raw(b"")
"""A raw field that is absent. JSON null is not absent: it is the four bytes `null`."""


class Method(StrEnum):
    """The client methods."""

    CONNECT = "connect"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    PUBLISH = "publish"
    PRESENCE = "presence"
    PRESENCE_STATS = "presence_stats"
    HISTORY = "history"
    PING = "ping"
    SEND = "send"
    RPC = "rpc"
    REFRESH = "refresh"
    SUB_REFRESH = "sub_refresh"
    PONG = "pong"
    """An empty command, the answer to a ping of the server. It has no ID, and no reply."""


class Command(Struct, frozen=True, gc=False):
    """One command of a client."""

    id: int
    """Chosen by the client; 0 for a command that has no reply."""
    method: Method | None
    """None: the client names a method that does not exist."""
    params: bytes | None
    """Still encoded; None when absent."""


# --- requests: the decoded params of a command ---


class FilterNode(Struct, frozen=True):
    """One node of a filter by tags: a comparison, or an operator over other nodes."""

    op: str = ""
    """The operator; "" for a comparison."""
    key: str = ""
    cmp: str = ""
    val: str = ""
    vals: tuple[str, ...] = ()
    nodes: tuple[FilterNode, ...] = ()


class SubscribeRequest(Struct):
    """params of subscribe; also each value of `subs` in connect."""

    channel: str | None = None
    token: str | None = None
    since: StreamPosition | None = None
    """Where the client wants to continue; None: it does not ask for recovery."""
    data: Raw = ABSENT
    positioned: bool = False
    """Whether the client wants to learn that it missed a publication."""
    recoverable: bool = False
    join_leave: bool = False
    """Whether the client wants the joins and leaves of others."""
    tags_filter: FilterNode | None = None
    flag: int = 0
    """Bits. 2: the client wants error 112 where its position cannot be recovered."""
    type: int = 0
    """0: a stream, 1: a map."""
    position: StreamPosition | None = None
    """Of a map, like all that follow. As `since`, also where the client asks for no recovery."""
    phase: int = 0
    """What the client asks for; see `clients.maps`."""
    cursor: str = ""
    """Where the page begins; "": the first page."""
    limit: int = 0
    """Entries of a page; 0: the service decides."""


class ConnectRequest(Struct):
    """params of connect. `data`, `name` and `version` are read by connect hooks only."""

    token: str | None = None
    data: Raw = ABSENT
    subs: dict[str, SubscribeRequest | None] | None = None
    name: str | None = None
    version: str | None = None
    headers: dict[str, str] | None = None
    """What stands in for HTTP headers, which browsers cannot set."""


class RefreshRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of refresh."""

    token: str | None = None


class SubRefreshRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of sub_refresh."""

    channel: str | None = None
    token: str | None = None


class ChannelRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of unsubscribe, presence and presence_stats."""

    channel: str | None = None


class HistoryRequest(Struct, gc=False):
    """params of history."""

    channel: str | None = None
    limit: int = 0
    """How many publications; 0: the position alone, negative: all."""
    since: StreamPosition | None = None
    """None: from the oldest one, or with `reverse` from the newest one."""
    reverse: bool = False
    """Whether the newest one comes first."""


class PublishRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of publish. JSON null is a payload; absent `data` is not.

    `type` 1: a change of a map, of its `key`; `removed`: the change removes the key.
    """

    channel: str | None = None
    data: Raw = ABSENT
    type: int | None = None
    key: str | None = None
    removed: bool | None = None


class RPCRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of rpc."""

    method: str | None = None
    data: Raw = ABSENT


class SendRequest(Struct, forbid_unknown_fields=True, gc=False):
    """params of send."""

    data: Raw = ABSENT


class EmptyRequest(Struct, gc=False):
    """params of ping: any object."""


Request: TypeAlias = (
    ConnectRequest
    | SubscribeRequest
    | ChannelRequest
    | HistoryRequest
    | PublishRequest
    | RPCRequest
    | SendRequest
    | RefreshRequest
    | SubRefreshRequest
    | EmptyRequest
)


# --- what a channel carries ---


class StreamPosition(Struct, frozen=True, gc=False):
    """A place in a channel's stream: `offset` counts publications from 1 within `epoch`."""

    offset: int
    epoch: str


class ClientInfo(Struct, frozen=True, gc=False):
    """What others see of a client: user ID ("" is anonymous), client ID, and the infos."""

    user: UserID
    client: ClientID
    conn_info: Payload | None = None
    chan_info: Payload | None = None


class Publication(Struct, frozen=True, gc=False):
    """Data published into a channel.

    In a channel without history, `offset` is 0 and `uid` is "". `info` is the publisher, if that is
    a client. `tags` are text of the publisher, for filters. `time` is when history kept it, by the
    clock of the engine: Unix time in milliseconds; 0 where it is unknown, as on the way to
    subscribers. `traceparent` is the span in which it was published; "" without traces.
    `key`: only in a map, the key that it changes; `removed`: the change removes the key, and `data`
    is null.
    """

    data: Payload
    info: ClientInfo | None = None
    offset: int = 0
    uid: str = ""
    tags: Mapping[str, str] | None = None
    time: int = 0
    traceparent: str = ""
    key: str = ""
    removed: bool = False


class UnsubscribeReason(NamedTuple):
    """Why the server ended a subscription. Clients of the second generation decide by the code.

    Below 2500 they stay unsubscribed; from 2500 on they subscribe again.
    """

    code: int
    reason: str


SERVER_UNSUBSCRIBE = UnsubscribeReason(2000, "server unsubscribe")
"""The server API, or the site."""
INSUFFICIENT_STATE = UnsubscribeReason(2500, "insufficient state")
"""A publication is missing that history cannot give. The client recovers."""
SUBSCRIPTION_EXPIRED = UnsubscribeReason(2501, "subscription expired")
"""The subscription was not refreshed in time. The client asks for a new token."""


# --- results: what a reply carries ---


class SubscribeResult(Struct, frozen=True):
    """result of subscribe.

    `position` and `publications` (oldest first, each with an offset) are for recoverable channels
    only. `ttl` in seconds.
    """

    expires: bool = False
    ttl: int = 0
    recoverable: bool = False
    position: StreamPosition | None = None
    publications: tuple[Publication, ...] = ()
    recovered: bool = False
    positioned: bool = False
    """Whether the client learns that it missed a publication."""
    was_recovering: bool = False
    """Whether the client asked for recovery."""
    data: Payload | None = None
    """For the client."""
    type: int = 0
    """1: of a map, and the following are there."""
    phase: int = 0
    """Of this part of the map; 0: the client is subscribed from now on."""
    cursor: str = ""
    """Where the next page begins; "": this is the last one."""
    state: tuple[Publication, ...] = ()
    """Entries of the map, by key."""


class ConnectResult(Struct, frozen=True):
    """result of connect. `ttl` in seconds."""

    client: ClientID
    version: str
    expires: bool = False
    ttl: int = 0
    subs: dict[ChannelName, SubscribeResult] | None = None
    """The results of server-side subscriptions, by channel."""
    data: Payload | None = None
    """From the connect hook or proxy, for the client."""
    ping: int = 0
    """Seconds between two pings of the server; 0: it sends none."""
    pong: bool = False
    """Whether the server wants an answer to its pings."""
    session: str = ""
    """Secret name of the connection, for requests beside it; "" where there are none."""
    node: str = ""
    """ID of the node that has the session."""
    time: int = 0
    """The time of the node, Unix milliseconds; 0 where it is left out."""


class RefreshResult(Struct, frozen=True, omit_defaults=True, gc=False):
    """result of refresh. `ttl` in seconds."""

    client: ClientID
    version: str
    expires: bool = False
    ttl: int = 0


class SubRefreshResult(Struct, frozen=True, omit_defaults=True, gc=False):
    """result of sub_refresh. `ttl` in seconds."""

    expires: bool = False
    ttl: int = 0


class PresenceResult(Struct, frozen=True):
    """result of presence: client ID → client info."""

    presence: dict[ClientID, ClientInfo]


class PresenceStatsResult(Struct, frozen=True, gc=False):
    """result of presence_stats: numbers of clients, and of their user IDs ("" counts as one)."""

    num_clients: int
    num_users: int

    @classmethod
    def of(cls, present: Mapping[ClientID, ClientInfo]) -> PresenceStatsResult:
        """Count the clients and the users in a presence."""
        return cls(len(present), len({info.user for info in present.values()}))


class HistoryResult(Struct, frozen=True):
    """result of history: publications in the order asked for, and the top of the stream."""

    publications: tuple[Publication, ...]
    position: StreamPosition | None = None


class RPCResult(Struct, frozen=True, gc=False):
    """result of rpc: what the hook returned; None for nothing."""

    data: Payload | None


class EmptyResult(Struct, frozen=True, gc=False):
    """result of unsubscribe and publish: an empty object."""


class NoResult(Struct, frozen=True, gc=False):
    """No result: the reply of ping has only an ID."""


Result: TypeAlias = (
    ConnectResult
    | SubscribeResult
    | RefreshResult
    | SubRefreshResult
    | PresenceResult
    | PresenceStatsResult
    | HistoryResult
    | RPCResult
    | EmptyResult
    | NoResult
)
