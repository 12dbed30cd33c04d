"""Params of the methods of `POST /api/<method>`, as they stand in the body of a request.

`null` in a field means that the field is absent. Unknown fields are ignored. A field that is
`NEEDED` may be absent for the decoder, too: then the method answers with error 107.

docs/protocol.md, 6.8.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from realtime.engine.maps import MAX_TTL
from realtime.protocol.messages import ABSENT

NEEDED = Meta(extra_json_schema={"x-needed": True})
"""Marks fields without which a method refuses; see `tools.openapi`."""
Text = Annotated[str | None, NEEDED]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


def absent() -> Raw:
    """Return the default of a raw field. A plain default has no form in a schema; see `openapi`."""
    return ABSENT


class Position(Struct):
    """A place in a stream."""

    offset: Annotated[int, Meta(ge=0)] | None = None
    epoch: str | None = None


class Data(Struct, forbid_unknown_fields=True):
    """What publications carry. `b64data`: the same as `data`, in Base64. `expect`: the top of the
    channel, without which nothing is published; without an epoch, in whatever epoch."""

    data: Raw = field(default_factory=absent)
    b64data: str | None = None
    skip_history: bool | None = None
    tags: dict[str, str] | None = None
    idempotency_key: str | None = None
    delta: bool | None = None
    version: Annotated[int, Meta(ge=0)] | None = None
    version_epoch: str | None = None
    expect: Position | None = None


class Publish(Data, forbid_unknown_fields=True):
    """params of publish."""

    channel: Text = None


class Broadcast(Data, forbid_unknown_fields=True):
    """params of broadcast."""

    channels: Annotated[list[str] | None, NEEDED] = None


class MapPublish(Data, forbid_unknown_fields=True):
    """params of map_publish. `expect` and versions are about the key. `ttl`: seconds for which the
    entry lives; 0: forever."""

    channel: Text = None
    key: Text = None
    key_mode: Annotated[str, Meta(pattern="^(if_new|if_exists)?$(?!\n)")] | None = None
    ttl: Annotated[int, Meta(ge=0, le=MAX_TTL)] | None = None


class MapRemove(Struct, forbid_unknown_fields=True):
    """params of map_remove."""

    channel: Text = None
    key: Text = None
    tags: dict[str, str] | None = None
    idempotency_key: str | None = None
    expect: Position | None = None


class MapReadState(Struct, forbid_unknown_fields=True):
    """params of map_read_state. `limit`: 100 where it is absent, 1000 at most. `key`: only this
    one."""

    channel: Text = None
    cursor: str | None = None
    limit: Annotated[int, Meta(ge=0)] | None = None
    key: str | None = None


class MapReadStream(Struct, forbid_unknown_fields=True):
    """params of map_read_stream. `limit` as for history."""

    channel: Text = None
    limit: Int32 | None = None
    since_offset: Annotated[int, Meta(ge=0)] | None = None
    since_epoch: str | None = None
    reverse: bool | None = None


class User(Struct, forbid_unknown_fields=True):
    """Connections: those of a user; `client` and `session` narrow them to one."""

    user: str | None = None
    client: str | None = None
    session: str | None = None


class Switch(Struct):
    """An option of the channel."""

    value: bool | None = None


class Override(Struct):
    """Options of the channel that are others for one subscription."""

    presence: Switch | None = None
    join_leave: Switch | None = None
    force_push_join_leave: Switch | None = None
    force_recovery: Switch | None = None
    force_positioning: Switch | None = None


class Subscribe(User, forbid_unknown_fields=True):
    """params of subscribe. `expire_at`: Unix seconds; 0 and absent: never."""

    channel: Text = None
    info: Raw = field(default_factory=absent)
    b64info: str | None = None
    data: Raw = field(default_factory=absent)
    b64data: str | None = None
    expire_at: Int64 | None = None
    recover_since: Position | None = None
    override: Override | None = None


class Unsubscribe(User, forbid_unknown_fields=True):
    """params of unsubscribe."""

    channel: str | None = None


class DisconnectCode(Struct):
    """Code and reason of a disconnect."""

    code: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    reason: str | None = None


class DisconnectUser(User, forbid_unknown_fields=True):
    """params of disconnect. `whitelist`: IDs of clients that stay."""

    whitelist: list[str] | None = None
    disconnect: DisconnectCode | None = None


class Refresh(User, forbid_unknown_fields=True):
    """params of refresh. `expire_at`: Unix seconds; 0 and absent: never."""

    expired: bool | None = None
    expire_at: Int64 | None = None
    info: Raw = field(default_factory=absent)


class BlockUser(Struct, forbid_unknown_fields=True):
    """params of block_user. `expire_at`: Unix seconds, when the block ends."""

    user: Text = None
    expire_at: Annotated[Int64 | None, NEEDED] = None


class UnblockUser(Struct, forbid_unknown_fields=True):
    """params of unblock_user."""

    user: Text = None


class BlockedUsers(Struct, forbid_unknown_fields=True):
    """params of blocked_users."""


class Channel(Struct, forbid_unknown_fields=True):
    """params of presence, presence_stats, history_remove, map_stats and map_clear."""

    channel: Text = None


class History(Channel, forbid_unknown_fields=True):
    """params of history."""

    limit: Int32 | None = None
    since: Position | None = None
    reverse: bool | None = None


class Channels(Struct, forbid_unknown_fields=True):
    """params of channels."""

    pattern: str | None = None


class Info(Struct, forbid_unknown_fields=True):
    """params of info."""


class RPC(Struct, forbid_unknown_fields=True):
    """params of rpc."""

    method: Text = None
    params: Raw = field(default_factory=absent)


class Batch(Struct, forbid_unknown_fields=True):
    """params of batch. `parallel`: commands may run in any order; they run one after another."""

    commands: list[Raw] | None = None
    parallel: bool | None = None
