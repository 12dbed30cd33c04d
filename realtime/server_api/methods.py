"""Methods of the server API: one table of name, params and handler.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.cluster.member import Member, NewPublication
from realtime.errors import BadRequest, MethodNotFound
from realtime.payload import Payload
from realtime.protocol.json_shapes import client_info, raw
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, Publication
from realtime.server_api import operations

P = TypeVar("P", bound=Struct)

_encode = msgspec.json.Encoder().encode
_EMPTY = b"{}"


class _PublishParams(Struct, forbid_unknown_fields=True):
    channel: str | None = None
    data: Raw = ABSENT


class _BroadcastParams(Struct, forbid_unknown_fields=True):
    channels: list[str] | None = None
    data: Raw = ABSENT


class _UserParams(Struct, forbid_unknown_fields=True):
    user: str | None = None
    channel: str | None = None


class _ChannelParams(Struct, forbid_unknown_fields=True):
    channel: str | None = None


class _RPCParams(Struct, forbid_unknown_fields=True):
    method: str | None = None
    params: Raw = ABSENT


class _Publication(Struct, omit_defaults=True):
    uid: str
    data: Raw
    info: object = None


class Row(NamedTuple, Generic[P]):
    """One method: its name, the decoder of its params (None: it has none) and its handler."""

    name: str
    decode: ObjectDecoder[P] | None
    run: Callable[[Member, P], Awaitable[bytes]]


async def _publish(member: Member, params: _PublishParams) -> bytes:
    await operations.publish(member, NewPublication(_required(params.channel), _data(params.data)))
    return _EMPTY


async def _broadcast(member: Member, params: _BroadcastParams) -> bytes:
    if not params.channels:
        raise BadRequest
    await operations.broadcast(member, params.channels, _data(params.data))
    return _EMPTY


async def _unsubscribe(member: Member, params: _UserParams) -> bytes:
    return sent(await operations.unsubscribe(member, params.user or "", params.channel or ""))


async def _disconnect(member: Member, params: _UserParams) -> bytes:
    return sent(await operations.disconnect(member, params.user or ""))


def sent(missing: list[str]) -> bytes:
    """Return the result of a command that was sent to every node.

    Args:
        missing: the names of the nodes that are silent.
    """
    return _encode({"missing": missing}) if missing else _EMPTY


async def _presence(member: Member, params: _ChannelParams) -> bytes:
    present = (await operations.presence(member, params.channel or "")).presence
    return _encode({"presence": {c: client_info(info) for c, info in sorted(present.items())}})


async def _presence_stats(member: Member, params: _ChannelParams) -> bytes:
    return _encode(await operations.presence_stats(member, params.channel or ""))


async def _history(member: Member, params: _ChannelParams) -> bytes:
    result = await operations.history(member, params.channel or "")
    return _encode(
        {"publications": [_publication(publication) for publication in result.publications]}
    )


async def _history_remove(member: Member, params: _ChannelParams) -> bytes:
    await operations.history_remove(member, params.channel or "")
    return _EMPTY


async def _channels(member: Member, _: Struct) -> bytes:
    channels, missing = await operations.channels(member)
    return _encode({"channels": channels} | ({"missing": missing} if missing else {}))


async def _info(member: Member, _: Struct) -> bytes:
    nodes = [
        msgspec.structs.asdict(node) | {"metrics": None} for node in await operations.info(member)
    ]
    return _encode({"nodes": nodes})


async def _rpc(member: Member, params: _RPCParams) -> bytes:
    if not params.method:
        raise BadRequest
    raise MethodNotFound


def _required(channel: str | None) -> str:
    if not channel:
        raise BadRequest
    return channel


def _data(data: Raw) -> Payload:
    try:
        return payload.check(bytes(data))
    except ValueError:
        raise BadRequest from None


def _publication(publication: Publication) -> _Publication:
    result = _Publication(publication.uid, raw(publication.data))
    if publication.info is not None:
        result.info = client_info(publication.info)
    return result


METHODS: tuple[Row[Any], ...] = (
    Row("publish", ObjectDecoder(_PublishParams), _publish),
    Row("broadcast", ObjectDecoder(_BroadcastParams), _broadcast),
    Row("unsubscribe", ObjectDecoder(_UserParams), _unsubscribe),
    Row("disconnect", ObjectDecoder(_UserParams), _disconnect),
    Row("presence", ObjectDecoder(_ChannelParams), _presence),
    Row("presence_stats", ObjectDecoder(_ChannelParams), _presence_stats),
    Row("history", ObjectDecoder(_ChannelParams), _history),
    Row("history_remove", ObjectDecoder(_ChannelParams), _history_remove),
    Row("channels", None, _channels),
    Row("info", None, _info),
    Row("rpc", ObjectDecoder(_RPCParams), _rpc),
)
"""The number of a method is its index in this table."""

METHOD_NUMBERS = {row.name: number for number, row in enumerate(METHODS)}

PUBLISH = METHOD_NUMBERS["publish"]
"""The one method that can be pipelined: the engine keeps the order of single publications."""


async def run(member: Member, method: int, params: bytes) -> bytes:
    """Run one command.

    Args:
        member: the member of the service that runs it.
        method: the number of the method.
        params: JSON, or nothing.

    Returns:
        The result as JSON.

    Raises:
        MethodNotFound: no method has this number.
        BadRequest: the params have another shape.
        Error: the method refuses.
        EngineUnavailable: Redis refused the command, or did not answer in time.
    """
    if not 0 <= method < len(METHODS):
        raise MethodNotFound
    row = METHODS[method]
    if row.decode is None:
        return await row.run(member, Struct())
    if params in (b"", b"null"):
        raise BadRequest
    try:
        decoded = row.decode(params)
    except Malformed:
        raise BadRequest from None
    return await row.run(member, decoded)
