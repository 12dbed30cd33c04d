"""Methods of the server API: one table of name, params and handler.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Raw, Struct, field

from realtime import payload
from realtime.cluster.member import Member, NewPublication
from realtime.errors import BadRequest, MethodNotFound
from realtime.payload import Payload
from realtime.protocol.json_stream import Malformed
from realtime.server_api import methods_v2, operations, params_v2, results
from realtime.server_api.methods_v2 import Row, encode, row
from realtime.server_api.params_v2 import NEEDED, Text, absent

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


class ChannelParams(params_v2.Channel, forbid_unknown_fields=True):
    """params of presence, presence_stats, history and history_remove."""


class RPCParams(params_v2.RPC, forbid_unknown_fields=True):
    """params of rpc."""


class NoParams(Struct):
    """Of channels and info, which ignore what is there."""


async def _publish(member: Member, params: PublishParams) -> results.Done:
    await operations.publish(member, NewPublication(_required(params.channel), _data(params.data)))
    return _DONE


async def _broadcast(member: Member, params: BroadcastParams) -> results.Done:
    if not params.channels:
        raise BadRequest
    data = _data(params.data)
    await operations.publish_many(member, [NewPublication(each, data) for each in params.channels])
    return _DONE


async def _unsubscribe(member: Member, params: UnsubscribeParams) -> results.Sent:
    return results.Sent(
        await operations.unsubscribe(member, params.user or "", params.channel or "")
    )


async def _disconnect(member: Member, params: DisconnectParams) -> results.Sent:
    return results.Sent(await operations.disconnect(member, params.user or ""))


async def _history(member: Member, params: ChannelParams) -> results.CommandHistoryResult:
    result = await operations.history(member, params.channel or "")
    publications = [results.CommandPublication.of(each) for each in result.publications]
    return results.CommandHistoryResult(publications)


async def _channels(member: Member, _: NoParams) -> results.CommandChannelsResult:
    channels, missing = await operations.channels(member)
    return results.CommandChannelsResult(channels, missing)


async def _info(member: Member, _: NoParams) -> results.CommandInfoResult:
    nodes = await operations.info(member)
    return results.CommandInfoResult(
        [results.CommandNode(**msgspec.structs.asdict(node)) for node in nodes]
    )


def _required(channel: str | None) -> str:
    if not channel:
        raise BadRequest
    return channel


def _data(data: Raw) -> Payload:
    try:
        return payload.check(bytes(data))
    except ValueError:
        raise BadRequest from None


METHODS: tuple[Row[Any, Any], ...] = (
    row("publish", PublishParams, _publish, results.Done),
    row("broadcast", BroadcastParams, _broadcast, results.Done),
    row("unsubscribe", UnsubscribeParams, _unsubscribe, results.Sent),
    row("disconnect", DisconnectParams, _disconnect, results.Sent),
    methods_v2.METHODS["presence"].of(ChannelParams),
    methods_v2.METHODS["presence_stats"].of(ChannelParams),
    row("history", ChannelParams, _history, results.CommandHistoryResult),
    methods_v2.METHODS["history_remove"].of(ChannelParams),
    row("channels", NoParams, _channels, results.CommandChannelsResult),
    row("info", NoParams, _info, results.CommandInfoResult),
    methods_v2.METHODS["rpc"].of(RPCParams),
)
"""The number of a method is its index in this table."""

METHOD_NUMBERS = {row.name: number for number, row in enumerate(METHODS)}

PUBLISH = METHOD_NUMBERS["publish"]
"""The one method that can be pipelined: the engine keeps the order of single publications."""


def read(method: int, params: bytes) -> tuple[Row[Any, Any], Struct]:
    """Return the row of a method and its decoded params, which are JSON, or nothing.

    Raises:
        MethodNotFound: no method has this number.
        BadRequest: the params have another shape.
    """
    if not 0 <= method < len(METHODS):
        raise MethodNotFound
    row = METHODS[method]
    if row.shape is NoParams:
        return row, NoParams()
    if params in (b"", b"null"):
        raise BadRequest
    try:
        return row, row.decode(params)
    except Malformed:
        raise BadRequest from None


async def run(member: Member, method: int, params: bytes) -> bytes:
    """Run the method with a number, and return its result as JSON.

    Raises:
        Error: the method refuses, or `read` does.
        EngineUnavailable: The engine refused the command, or did not answer in time.
    """
    row, decoded = read(method, params)
    return encode(await row.run(member, decoded))
