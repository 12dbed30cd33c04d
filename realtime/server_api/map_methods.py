"""Methods of `POST /api/<method>` for maps; see `methods_v2`."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from realtime.channel_rules import check_channel
from realtime.cluster.member import NOTHING, Member, NewPublication
from realtime.engine.maps import KeyMode
from realtime.engine.once import Once
from realtime.errors import BadRequest, NotAvailable
from realtime.server_api import operations, params_v2, results
from realtime.server_api.params_read import data_of, new_of, position_of

PAGE = 100
"""Entries of a map in an answer, where the request has no limit."""


async def map_publish(member: Member, params: params_v2.MapPublish) -> results.MapChangeResult:
    channel = params.channel or ""
    check_channel(channel, member.config)
    new = replace(
        new_of(channel, data_of(params), params),
        key=_key(params),
        key_mode=cast(KeyMode, params.key_mode or ""),
        ttl=params.ttl,
    )
    return results.MapChangeResult.of(await operations.publish(member, new))


async def map_remove(member: Member, params: params_v2.MapRemove) -> results.MapChangeResult:
    new = NewPublication(
        params.channel or "",
        NOTHING,
        params.tags or None,
        Once(params.idempotency_key) if params.idempotency_key else None,
        expect=None if params.expect is None else position_of(params.expect),
        key=_key(params),
        removed=True,
    )
    return results.MapChangeResult.of(await operations.publish(member, new))


def _key(params: params_v2.MapPublish | params_v2.MapRemove) -> str:
    if not params.key:
        raise BadRequest
    return params.key


async def map_read_state(
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


async def map_read_stream(
    member: Member, params: params_v2.MapReadStream
) -> results.MapReadStreamResult:
    channel = params.channel or ""
    if not check_channel(channel, member.config).map:
        raise NotAvailable
    since = None
    if params.since_offset or params.since_epoch:
        since = position_of(params_v2.Position(params.since_offset, params.since_epoch))
    found = await operations.history(
        member, channel, limit=params.limit or 0, since=since, reverse=bool(params.reverse)
    )
    assert found.position is not None
    entries = [results.KeptPublication.of(each) for each in found.publications]
    return results.MapReadStreamResult(entries, found.position.offset, found.position.epoch)


async def map_stats(member: Member, params: params_v2.Channel) -> results.MapStatsResult:
    page = await operations.map_page(member, params.channel or "", limit=0)
    return results.MapStatsResult(page.size)


async def map_clear(member: Member, params: params_v2.Channel) -> results.Done:
    await operations.map_clear(member, params.channel or "")
    return results.Done()
