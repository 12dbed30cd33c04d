"""Methods of `POST /api/<method>`, the server API of newer libraries: one table.

docs/protocol.md, 6.8.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from realtime import payload
from realtime.channel_rules import check_channel
from realtime.cluster.control import RefreshSome, SubscribeSome
from realtime.cluster.member import NOTHING, Member, NewPublication
from realtime.config.options import ChannelOptions
from realtime.engine.base import Published
from realtime.engine.maps import KeyMode
from realtime.engine.nodes import NodeStatus
from realtime.engine.once import Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.errors import BadRequest, EngineUnavailable, Error, MethodNotFound, NotAvailable
from realtime.payload import Payload
from realtime.protocol.json_shapes import client_info
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import (
    ABSENT,
    UINT64_MAX,
    PresenceStatsResult,
    StreamPosition,
)
from realtime.server_api import operations, params_v2, results

P = TypeVar("P", bound=Struct)
R = TypeVar("R", bound=Struct)

encode = msgspec.json.Encoder().encode
_DONE = results.Done()

PAST = 1.0
"""Unix seconds of a moment that has passed, for every clock."""

PAGE = 100
"""Entries of a map in an answer, where the request has no limit."""
MAX_PATTERN = 255
"""Characters of a pattern of channel names."""


class Row(NamedTuple, Generic[P, R]):
    """One method: its name, the shape of its params, their decoder, its handler and its result."""

    name: str
    shape: type[P]
    decode: ObjectDecoder[P]
    run: Callable[[Member, P], Awaitable[R]]
    result: type[R]

    def of(self, shape: type[P]) -> Row[P, R]:
        """Return the same method with params that have another name in documents."""
        return self._replace(shape=shape, decode=ObjectDecoder(shape))


# publishing


async def _publish(member: Member, params: params_v2.Publish) -> results.Published:
    channel = params.channel or ""
    check_channel(channel, member.config)  # before the data
    published = await operations.publish(member, _new(channel, _data(params), params))
    return _published(published, params)


async def _broadcast(member: Member, params: params_v2.Broadcast) -> results.BroadcastResult:
    if not params.channels:
        raise BadRequest
    data = _data(params)
    refused: list[Error | None] = []
    ready: list[tuple[NewPublication, ChannelOptions]] = []
    for channel in params.channels:
        try:
            new = _new(channel, data, params)
            ready.append((new, operations.check_new(new, member.config)))
            refused.append(None)
        except Error as error:
            refused.append(error.with_traceback(None))
    published = iter(await member.publish_many(ready))
    outcomes = [error or next(published) for error in refused]
    return results.BroadcastResult([_reply(outcome, params) for outcome in outcomes])


def _reply(
    outcome: Published | EngineUnavailable | Error, params: params_v2.Data
) -> results.BroadcastReply:
    if isinstance(outcome, Error | EngineUnavailable):
        error = results.ErrorBody.of(operations.api_error(outcome))
        return results.BroadcastReply(error=error)
    return results.BroadcastReply(_published(outcome, params))


def _published(outcome: Published, params: params_v2.Data) -> results.Published:
    """Return the result of a publication; `kept` says something only to those who expect."""
    kept = outcome.kept or params.expect is None
    if outcome.position is None:
        return results.Published(kept=kept)
    return results.Published(outcome.position.offset, outcome.position.epoch, kept)


def _new(channel: str, data: Payload, params: params_v2.Data) -> NewPublication:
    return NewPublication(
        channel,
        data,
        params.tags or None,
        Once(params.idempotency_key) if params.idempotency_key else None,
        bool(params.skip_history),
        _version(params),
        None if params.expect is None else _stream_position(params.expect),
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


# maps


async def _map_publish(member: Member, params: params_v2.MapPublish) -> results.MapChangeResult:
    channel = params.channel or ""
    check_channel(channel, member.config)
    new = replace(
        _new(channel, _data(params), params),
        key=_key(params),
        key_mode=cast(KeyMode, params.key_mode or ""),
        ttl=params.ttl,
    )
    return results.MapChangeResult.of(await operations.publish(member, new))


async def _map_remove(member: Member, params: params_v2.MapRemove) -> results.MapChangeResult:
    new = NewPublication(
        params.channel or "",
        NOTHING,
        params.tags or None,
        Once(params.idempotency_key) if params.idempotency_key else None,
        expect=None if params.expect is None else _stream_position(params.expect),
        key=_key(params),
        removed=True,
    )
    return results.MapChangeResult.of(await operations.publish(member, new))


def _key(params: params_v2.MapPublish | params_v2.MapRemove) -> str:
    if not params.key:
        raise BadRequest
    return params.key


async def _map_read_state(
    member: Member, params: params_v2.MapReadState
) -> results.MapReadStateResult:
    channel = params.channel or ""
    if params.key:
        page = await operations.map_get(member, channel, params.key)
    else:
        limit = params.limit or PAGE
        page = await operations.map_page(member, channel, params.cursor or "", limit)
    entries = [results.KeptPublication.of(each) for each in page.entries]
    return results.MapReadStateResult(
        entries, page.position.offset, page.position.epoch, page.cursor
    )


async def _map_read_stream(
    member: Member, params: params_v2.MapReadStream
) -> results.MapReadStreamResult:
    channel = params.channel or ""
    if not check_channel(channel, member.config).map:
        raise NotAvailable
    since = None
    if params.since_offset or params.since_epoch:
        since = _stream_position(params_v2.Position(params.since_offset, params.since_epoch))
    found = await operations.history(
        member, channel, limit=params.limit or 0, since=since, reverse=bool(params.reverse)
    )
    assert found.position is not None
    entries = [results.KeptPublication.of(each) for each in found.publications]
    return results.MapReadStreamResult(entries, found.position.offset, found.position.epoch)


async def _map_stats(member: Member, params: params_v2.Channel) -> results.MapStatsResult:
    page = await operations.map_page(member, params.channel or "", limit=0)
    return results.MapStatsResult(page.size)


async def _map_clear(member: Member, params: params_v2.Channel) -> results.Done:
    await operations.map_clear(member, params.channel or "")
    return _DONE


# connections


async def _subscribe(member: Member, params: params_v2.Subscribe) -> results.Done:
    message = SubscribeSome(
        user=params.user or "",
        channel=params.channel or "",
        client=params.client or "",
        session=params.session or "",
        info=_text(_payload(params.info, params.b64info)),
        data=_text(_payload(params.data, params.b64data)),
        expires_at=params.expire_at or None,
        since=None if params.recover_since is None else _stream_position(params.recover_since),
        overrides=_overrides(params.override) or None,
    )
    await operations.subscribe(member, message)
    return _DONE


def _text(data: Payload | None) -> str | None:
    return None if data is None else data.raw.decode()


def _overrides(override: params_v2.Override | None) -> dict[str, bool] | None:
    """Return the options that are others; a switch without a value is off."""
    if override is None:
        return None
    switches = msgspec.structs.asdict(override)
    return {name: bool(switch.value) for name, switch in switches.items() if switch is not None}


async def _unsubscribe(member: Member, params: params_v2.Unsubscribe) -> results.Sent:
    missing = await operations.unsubscribe(
        member,
        params.user or "",
        params.channel or "",
        client=params.client or "",
        session=params.session or "",
        anonymous=True,
    )
    return results.Sent(missing)


async def _disconnect(member: Member, params: params_v2.DisconnectUser) -> results.Sent:
    code, reason = None, ""
    if params.disconnect is not None:
        code, reason = params.disconnect.code or 0, params.disconnect.reason or ""
    missing = await operations.disconnect(
        member,
        params.user or "",
        client=params.client or "",
        session=params.session or "",
        whitelist=params.whitelist or (),
        code=code,
        reason=reason,
        anonymous=True,
    )
    return results.Sent(missing)


async def _refresh(member: Member, params: params_v2.Refresh) -> results.Done:
    message = RefreshSome(
        user=params.user or "",
        client=params.client or "",
        session=params.session or "",
        expires_at=PAST if params.expired else params.expire_at or None,
        info=_text(_payload(params.info)),
    )
    await operations.refresh(member, message)
    return _DONE


async def _block_user(member: Member, params: params_v2.BlockUser) -> results.Sent:
    return results.Sent(
        await operations.block(member, params.user or "", float(params.expire_at or 0))
    )


async def _unblock_user(member: Member, params: params_v2.UnblockUser) -> results.Sent:
    return results.Sent(await operations.unblock(member, params.user or ""))


async def _blocked_users(member: Member, _: params_v2.BlockedUsers) -> results.BlockedUsersResult:
    ends = await operations.blocked(member)
    # a whole second later rather than before the block ends
    users = [results.BlockedUser(user, math.ceil(end)) for user, end in ends.items()]
    return results.BlockedUsersResult(users)


# queries


async def _presence(member: Member, params: params_v2.Channel) -> results.PresenceResult:
    present = (await operations.presence(member, params.channel or "")).presence
    return results.PresenceResult({c: client_info(info) for c, info in sorted(present.items())})


async def _presence_stats(member: Member, params: params_v2.Channel) -> PresenceStatsResult:
    return await operations.presence_stats(member, params.channel or "")


def _stream_position(position: params_v2.Position) -> StreamPosition:
    offset = position.offset or 0
    if offset > UINT64_MAX:
        raise BadRequest
    return StreamPosition(offset, position.epoch or "")


async def _history(member: Member, params: params_v2.History) -> results.HistoryResult:
    since = None if params.since is None else _stream_position(params.since)
    result = await operations.history(
        member,
        params.channel or "",
        limit=params.limit or 0,
        since=since,
        reverse=bool(params.reverse),
    )
    assert result.position is not None
    publications = [results.KeptPublication.of(each) for each in result.publications]
    return results.HistoryResult(publications, result.position.epoch, result.position.offset)


async def _history_remove(member: Member, params: params_v2.Channel) -> results.Done:
    await operations.history_remove(member, params.channel or "")
    return _DONE


async def _channels(member: Member, params: params_v2.Channels) -> results.ChannelsResult:
    pattern = params.pattern or "*"
    if len(pattern) > MAX_PATTERN:
        raise BadRequest
    listed, silent = await operations.channels(member)
    names = fnmatch.filter(listed, pattern)
    numbers, missing = await operations.numbers_of_subscribers(member, names)
    missing = sorted({*silent, *missing})
    channels = {name: results.ChannelNumbers(numbers.get(name, 0)) for name in names}
    return results.ChannelsResult(channels, missing)


async def _info(member: Member, _: params_v2.Info) -> results.InfoResult:
    nodes = [node for node in await operations.nodes(member) if node.alive]
    return results.InfoResult([_node(node) for node in nodes])


def _node(node: NodeStatus) -> results.Node:
    items = {
        "node.messages_delivered": node.messages_delivered,
        "node.messages_published": node.messages_published,
    }
    return results.Node(
        uid=node.uid,
        name=node.name,
        version=node.version,
        num_clients=node.num_clients,
        num_users=node.num_users,
        num_subs=node.num_subs,
        num_channels=node.num_channels,
        uptime=node.uptime,
        metrics=results.NodeMetrics(float(max(1, node.uptime)), items),
    )


async def _rpc(_: Member, params: params_v2.RPC) -> results.Done:
    if not params.method:
        raise BadRequest
    raise MethodNotFound


def row(
    name: str, shape: type[P], run: Callable[[Member, P], Awaitable[R]], result: type[R]
) -> Row[P, R]:
    """Return the row of a method; see `Row`."""
    return Row(name, shape, ObjectDecoder(shape), run, result)


METHODS: dict[str, Row[Any, Any]] = {
    each.name: each
    for each in (
        row("publish", params_v2.Publish, _publish, results.Published),
        row("broadcast", params_v2.Broadcast, _broadcast, results.BroadcastResult),
        row("map_publish", params_v2.MapPublish, _map_publish, results.MapChangeResult),
        row("map_remove", params_v2.MapRemove, _map_remove, results.MapChangeResult),
        row("map_read_state", params_v2.MapReadState, _map_read_state, results.MapReadStateResult),
        row(
            "map_read_stream",
            params_v2.MapReadStream,
            _map_read_stream,
            results.MapReadStreamResult,
        ),
        row("map_stats", params_v2.Channel, _map_stats, results.MapStatsResult),
        row("map_clear", params_v2.Channel, _map_clear, results.Done),
        row("subscribe", params_v2.Subscribe, _subscribe, results.Done),
        row("unsubscribe", params_v2.Unsubscribe, _unsubscribe, results.Sent),
        row("disconnect", params_v2.DisconnectUser, _disconnect, results.Sent),
        row("refresh", params_v2.Refresh, _refresh, results.Done),
        row("block_user", params_v2.BlockUser, _block_user, results.Sent),
        row("unblock_user", params_v2.UnblockUser, _unblock_user, results.Sent),
        row("blocked_users", params_v2.BlockedUsers, _blocked_users, results.BlockedUsersResult),
        row("presence", params_v2.Channel, _presence, results.PresenceResult),
        row("presence_stats", params_v2.Channel, _presence_stats, PresenceStatsResult),
        row("history", params_v2.History, _history, results.HistoryResult),
        row("history_remove", params_v2.Channel, _history_remove, results.Done),
        row("channels", params_v2.Channels, _channels, results.ChannelsResult),
        row("info", params_v2.Info, _info, results.InfoResult),
        row("rpc", params_v2.RPC, _rpc, results.Done),
    )
}

decode_batch = ObjectDecoder(params_v2.Batch)

BATCH = "batch"

NAMES: Sequence[str] = (*METHODS, BATCH)
"""The last part of the paths."""


async def run(member: Member, name: str, params: bytes) -> bytes:
    """Run one method of `METHODS`; see `methods.run`. Returns the result as JSON."""
    try:
        decoded = METHODS[name].decode(params)
    except Malformed:
        raise BadRequest from None
    return encode(await METHODS[name].run(member, decoded))


def encode_error(error: Error) -> bytes:
    """Encode the object that says why a command failed."""
    return payload.escape(encode(results.ErrorBody.of(error)))
