"""Methods of `POST /api/<method>`, the server API of newer libraries: one table.

docs/protocol.md, 6.8.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import fnmatch
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.channel_rules import check_channel
from realtime.cluster.member import Member, NewPublication
from realtime.config.options import ChannelOptions
from realtime.engine.base import Published
from realtime.engine.nodes import NodeStatus
from realtime.engine.once import Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.errors import BadRequest, EngineUnavailable, Error, MethodNotFound
from realtime.payload import Payload
from realtime.protocol.json_shapes import ClientInfoShape, client_info, raw
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, UINT64_MAX, Publication, StreamPosition
from realtime.server_api import operations, params_v2
from realtime.server_api.methods import sent

P = TypeVar("P", bound=Struct)

_encode = msgspec.json.Encoder().encode
_EMPTY = b"{}"

PAST = 1.0
"""Unix seconds of a moment that has passed, for every clock."""

MAX_PATTERN = 255
"""Characters of a pattern of channel names."""


class _Position(Struct, omit_defaults=True):
    offset: int = 0
    epoch: str = ""


class _Publication(Struct, omit_defaults=True):
    data: Raw = msgspec.field()
    info: ClientInfoShape | None = None
    offset: int = 0
    tags: Any = None
    time: int = 0


class Row(NamedTuple, Generic[P]):
    """One method: its name, the shape of its params, their decoder, and its handler."""

    name: str
    shape: type[P]
    decode: ObjectDecoder[P]
    run: Callable[[Member, P], Awaitable[bytes]]


# publishing


async def _publish(member: Member, params: params_v2.Publish) -> bytes:
    channel = params.channel or ""
    check_channel(channel, member.config)  # before the data
    position = await operations.publish(member, _new(channel, _data(params), params))
    return _encode(_position(position))


async def _broadcast(member: Member, params: params_v2.Broadcast) -> bytes:
    if not params.channels:
        raise BadRequest
    data = _data(params)
    outcomes: list[Published | Error] = []
    ready: list[tuple[NewPublication, ChannelOptions]] = []
    for channel in params.channels:
        try:
            new = _new(channel, data, params)
            ready.append((new, operations.check_new(new, member.config)))
            outcomes.append(None)
        except Error as error:
            outcomes.append(error.with_traceback(None))
    results = iter(await member.publish_many(ready))
    responses = [outcome if isinstance(outcome, Error) else next(results) for outcome in outcomes]
    return b'{"responses":[%b]}' % b",".join(_response(response) for response in responses)


def _response(outcome: Published | Error) -> bytes:
    if isinstance(outcome, Error | EngineUnavailable):
        return b'{"error":%b}' % encode_error(operations.api_error(outcome))
    return b'{"result":%b}' % _encode(_position(outcome))


def _position(position: StreamPosition | None) -> _Position:
    return _Position() if position is None else _Position(position.offset, position.epoch)


def _new(channel: str, data: Payload, params: params_v2.Data) -> NewPublication:
    once = Once(params.idempotency_key) if params.idempotency_key else None
    return NewPublication(
        channel, data, params.tags or None, once, bool(params.skip_history), _version(params)
    )


def _version(params: params_v2.Data) -> Version | None:
    number, epoch = params.version or 0, params.version_epoch or ""
    if number > UINT64_MAX or len(epoch) > MAX_EPOCH_LENGTH:
        raise BadRequest
    return Version(number, epoch) if number else None


def _data(params: params_v2.Data) -> Payload:
    """Return the data to publish.

    Raises:
        BadRequest: they are absent or not JSON.
    """
    data = _payload(params.data, params.b64data)
    if data is None:
        raise BadRequest
    return data


def _payload(value: Raw, base64_value: str | None = None) -> Payload | None:
    """Return a value as a payload; None where it is absent. The one in Base64 comes first.

    Raises:
        BadRequest: it is not JSON, or not Base64.
    """
    try:
        if base64_value:
            return payload.check(base64.b64decode(base64_value, validate=True))
        return None if value == ABSENT else payload.check(bytes(value))
    except (ValueError, binascii.Error):
        raise BadRequest from None


# connections


async def _subscribe(member: Member, params: params_v2.Subscribe) -> bytes:
    await operations.subscribe(
        member,
        params.user or "",
        params.channel or "",
        client=params.client or "",
        session=params.session or "",
        info=_payload(params.info, params.b64info),
        data=_payload(params.data, params.b64data),
        expires_at=params.expire_at or None,
        since=None if params.recover_since is None else _stream_position(params.recover_since),
        overrides=_overrides(params.override),
    )
    return _EMPTY


def _overrides(override: params_v2.Override | None) -> dict[str, bool] | None:
    """Return the options that are others; a switch without a value is off."""
    if override is None:
        return None
    switches = msgspec.structs.asdict(override)
    return {name: bool(switch.value) for name, switch in switches.items() if switch is not None}


async def _unsubscribe(member: Member, params: params_v2.Unsubscribe) -> bytes:
    missing = await operations.unsubscribe(
        member,
        params.user or "",
        params.channel or "",
        client=params.client or "",
        session=params.session or "",
        anonymous=True,
    )
    return sent(missing)


async def _disconnect(member: Member, params: params_v2.Disconnect) -> bytes:
    code = reason = None
    if params.disconnect is not None:
        code, reason = params.disconnect.code or 0, params.disconnect.reason or ""
    missing = await operations.disconnect(
        member,
        params.user or "",
        client=params.client or "",
        session=params.session or "",
        whitelist=params.whitelist or (),
        code=code,
        reason=reason or "",
        anonymous=True,
    )
    return sent(missing)


async def _refresh(member: Member, params: params_v2.Refresh) -> bytes:
    expires_at: float | None = params.expire_at or None
    if params.expired:
        expires_at = PAST
    await operations.refresh(
        member,
        params.user or "",
        client=params.client or "",
        session=params.session or "",
        expires_at=expires_at,
        info=_payload(params.info),
    )
    return _EMPTY


async def _block_user(member: Member, params: params_v2.BlockUser) -> bytes:
    return sent(await operations.block(member, params.user or "", float(params.expire_at or 0)))


async def _unblock_user(member: Member, params: params_v2.UnblockUser) -> bytes:
    return sent(await operations.unblock(member, params.user or ""))


async def _blocked_users(member: Member, _: params_v2.BlockedUsers) -> bytes:
    ends = await operations.blocked(member)
    # a whole second later rather than before the block ends
    users = [{"user": user, "expire_at": math.ceil(end)} for user, end in ends.items()]
    return _encode({"users": users})


# queries


async def _presence(member: Member, params: params_v2.Channel) -> bytes:
    present = (await operations.presence(member, params.channel or "")).presence
    return _encode({"presence": {c: client_info(info) for c, info in sorted(present.items())}})


async def _presence_stats(member: Member, params: params_v2.Channel) -> bytes:
    return _encode(await operations.presence_stats(member, params.channel or ""))


def _stream_position(position: params_v2.Position) -> StreamPosition:
    offset = position.offset or 0
    if offset > UINT64_MAX:
        raise BadRequest
    return StreamPosition(offset, position.epoch or "")


async def _history(member: Member, params: params_v2.History) -> bytes:
    since = None if params.since is None else _stream_position(params.since)
    result = await operations.history(
        member,
        params.channel or "",
        limit=params.limit or 0,
        since=since,
        reverse=bool(params.reverse),
    )
    assert result.position is not None
    return _encode(
        {
            "publications": [_publication(publication) for publication in result.publications],
            "epoch": result.position.epoch,
            "offset": result.position.offset,
        }
    )


def _publication(publication: Publication) -> _Publication:
    info = None if publication.info is None else client_info(publication.info)
    tags = dict(sorted(publication.tags.items())) if publication.tags else None
    return _Publication(raw(publication.data), info, publication.offset, tags, publication.time)


async def _history_remove(member: Member, params: params_v2.Channel) -> bytes:
    await operations.history_remove(member, params.channel or "")
    return _EMPTY


async def _channels(member: Member, params: params_v2.Channels) -> bytes:
    pattern = params.pattern or "*"
    if len(pattern) > MAX_PATTERN:
        raise BadRequest
    listed, silent = await operations.channels(member)
    names = fnmatch.filter(listed, pattern)
    numbers, missing = await operations.numbers_of_subscribers(member, names)
    missing = sorted({*silent, *missing})
    return _encode(
        {"channels": {name: {"num_clients": numbers.get(name, 0)} for name in names}}
        | ({"missing": missing} if missing else {})
    )


_NODE = (
    *("uid", "name", "version"),
    *("num_clients", "num_users", "num_subs", "num_channels"),
    "uptime",
)
"""What `info` says of a node."""


async def _info(member: Member, _: params_v2.Info) -> bytes:
    nodes = [node for node in await operations.nodes(member) if node.alive]
    return _encode(
        {
            "nodes": [
                {name: getattr(node, name) for name in _NODE} | {"metrics": _metrics(node)}
                for node in nodes
            ]
        }
    )


def _metrics(node: NodeStatus) -> dict[str, object]:
    """Return what a node has counted, and in how many seconds."""
    return {
        "interval": float(max(1, node.uptime)),
        "items": {
            "node.messages_delivered": node.messages_delivered,
            "node.messages_published": node.messages_published,
        },
    }


async def _rpc(_: Member, params: params_v2.RPC) -> bytes:
    if not params.method:
        raise BadRequest
    raise MethodNotFound


def _row(name: str, shape: type[P], run: Callable[[Member, P], Awaitable[bytes]]) -> Row[P]:
    return Row(name, shape, ObjectDecoder(shape), run)


METHODS: dict[str, Row[Any]] = {
    row.name: row
    for row in (
        _row("publish", params_v2.Publish, _publish),
        _row("broadcast", params_v2.Broadcast, _broadcast),
        _row("subscribe", params_v2.Subscribe, _subscribe),
        _row("unsubscribe", params_v2.Unsubscribe, _unsubscribe),
        _row("disconnect", params_v2.Disconnect, _disconnect),
        _row("refresh", params_v2.Refresh, _refresh),
        _row("block_user", params_v2.BlockUser, _block_user),
        _row("unblock_user", params_v2.UnblockUser, _unblock_user),
        _row("blocked_users", params_v2.BlockedUsers, _blocked_users),
        _row("presence", params_v2.Channel, _presence),
        _row("presence_stats", params_v2.Channel, _presence_stats),
        _row("history", params_v2.History, _history),
        _row("history_remove", params_v2.Channel, _history_remove),
        _row("channels", params_v2.Channels, _channels),
        _row("info", params_v2.Info, _info),
        _row("rpc", params_v2.RPC, _rpc),
    )
}

decode_batch = ObjectDecoder(params_v2.Batch)

BATCH = "batch"

NAMES: Sequence[str] = (*METHODS, BATCH)
"""The last part of the paths."""


async def run(member: Member, name: str, params: bytes) -> bytes:
    """Run one method of `METHODS`; see `methods.run`. Returns the result as JSON."""
    row = METHODS[name]
    try:
        decoded = row.decode(params)
    except Malformed:
        raise BadRequest from None
    return await row.run(member, decoded)


async def pause() -> None:
    """Give the event loop a turn."""
    await asyncio.sleep(0)


def encode_error(error: Error) -> bytes:
    """Encode the object that says why a command failed."""
    return payload.escape(_encode({"code": error.code, "message": error.message}))
