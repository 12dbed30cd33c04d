"""Methods of the server API: one table of name, params and handler.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from realtime import payload
from realtime.cluster.member import Member, NewPublication
from realtime.errors import BadRequest, MethodNotFound
from realtime.payload import Payload
from realtime.protocol.json_shapes import client_info
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import PresenceStatsResult
from realtime.server_api import operations, results
from realtime.server_api.params_v2 import NEEDED, Text, absent

P = TypeVar("P", bound=Struct)
R = TypeVar("R", bound=Struct)

_encode = msgspec.json.Encoder().encode
_DONE = results.Done()


class PublishParams(Struct, forbid_unknown_fields=True):
    """params of publish."""

    channel: Text = None
    data: Annotated[Raw, NEEDED] = field(default_factory=absent)


class BroadcastParams(Struct, forbid_unknown_fields=True):
    """params of broadcast."""

    channels: Annotated[list[str] | None, NEEDED] = None
    data: Annotated[Raw, NEEDED] = field(default_factory=absent)


class UnsubscribeParams(Struct, forbid_unknown_fields=True):
    """params of unsubscribe. Without a channel: from all."""

    user: Text = None
    channel: str | None = None


class DisconnectParams(Struct, forbid_unknown_fields=True):
    """params of disconnect."""

    user: Text = None


class ChannelParams(Struct, forbid_unknown_fields=True):
    """params of presence, presence_stats, history and history_remove."""

    channel: Text = None


class RPCParams(Struct, forbid_unknown_fields=True):
    """params of rpc."""

    method: Text = None
    params: Raw = field(default_factory=absent)


class Row(NamedTuple, Generic[P, R]):
    """One method: its name, its params (None: it has none), their decoder, handler and result."""

    name: str
    shape: type[P] | None
    decode: ObjectDecoder[P] | None
    run: Callable[[Member, P], Awaitable[R]]
    result: type[R]


async def _publish(member: Member, params: PublishParams) -> results.Done:
    await operations.publish(member, NewPublication(_required(params.channel), _data(params.data)))
    return _DONE


async def _broadcast(member: Member, params: BroadcastParams) -> results.Done:
    if not params.channels:
        raise BadRequest
    await operations.broadcast(member, params.channels, _data(params.data))
    return _DONE


async def _unsubscribe(member: Member, params: UnsubscribeParams) -> results.Sent:
    return results.Sent(
        await operations.unsubscribe(member, params.user or "", params.channel or "")
    )


async def _disconnect(member: Member, params: DisconnectParams) -> results.Sent:
    return results.Sent(await operations.disconnect(member, params.user or ""))


async def _presence(member: Member, params: ChannelParams) -> results.PresenceResult:
    present = (await operations.presence(member, params.channel or "")).presence
    return results.PresenceResult({c: client_info(info) for c, info in sorted(present.items())})


async def _presence_stats(member: Member, params: ChannelParams) -> PresenceStatsResult:
    return await operations.presence_stats(member, params.channel or "")


async def _history(member: Member, params: ChannelParams) -> results.CommandHistoryResult:
    result = await operations.history(member, params.channel or "")
    publications = [results.CommandPublication.of(each) for each in result.publications]
    return results.CommandHistoryResult(publications)


async def _history_remove(member: Member, params: ChannelParams) -> results.Done:
    await operations.history_remove(member, params.channel or "")
    return _DONE


async def _channels(member: Member, _: Struct) -> results.CommandChannelsResult:
    channels, missing = await operations.channels(member)
    return results.CommandChannelsResult(channels, missing)


async def _info(member: Member, _: Struct) -> results.CommandInfoResult:
    nodes = await operations.info(member)
    return results.CommandInfoResult(
        [results.CommandNode(**msgspec.structs.asdict(node)) for node in nodes]
    )


async def _rpc(member: Member, params: RPCParams) -> results.Done:
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


def _row(
    name: str, shape: type[P] | None, run: Callable[[Member, P], Awaitable[R]], result: type[R]
) -> Row[P, R]:
    return Row(name, shape, None if shape is None else ObjectDecoder(shape), run, result)


METHODS: tuple[Row[Any, Any], ...] = (
    _row("publish", PublishParams, _publish, results.Done),
    _row("broadcast", BroadcastParams, _broadcast, results.Done),
    _row("unsubscribe", UnsubscribeParams, _unsubscribe, results.Sent),
    _row("disconnect", DisconnectParams, _disconnect, results.Sent),
    _row("presence", ChannelParams, _presence, results.PresenceResult),
    _row("presence_stats", ChannelParams, _presence_stats, PresenceStatsResult),
    _row("history", ChannelParams, _history, results.CommandHistoryResult),
    _row("history_remove", ChannelParams, _history_remove, results.Done),
    _row("channels", None, _channels, results.CommandChannelsResult),
    _row("info", None, _info, results.CommandInfoResult),
    _row("rpc", RPCParams, _rpc, results.Done),
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
        return _encode(await row.run(member, Struct()))
    if params in (b"", b"null"):
        raise BadRequest
    try:
        decoded = row.decode(params)
    except Malformed:
        raise BadRequest from None
    return _encode(await row.run(member, decoded))
