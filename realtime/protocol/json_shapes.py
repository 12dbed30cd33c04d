"""Shapes of JSON output: those of every generation and of the server API.

The order of fields is that of keys, and what has its default is left out. The first generation
writes positions as `seq` and `gen`, unless an option says otherwise; the second has more fields.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from realtime.payload import Payload, escape
from realtime.protocol.messages import (
    ClientInfo,
    ConnectResult,
    PresenceResult,
    Publication,
    Result,
    RPCResult,
    SubscribeResult,
)

_encode = msgspec.json.Encoder().encode


class ClientInfoShape(Struct, omit_defaults=True, gc=False):
    """Client info, without the infos that it does not have."""

    user: str = msgspec.field()
    client: str = msgspec.field()
    conn_info: Raw | msgspec.UnsetType = msgspec.UNSET
    chan_info: Raw | msgspec.UnsetType = msgspec.UNSET


class PublicationShape(Struct, omit_defaults=True, kw_only=True, gc=False):
    """A publication."""

    seq: int = 0
    gen: int = 0
    uid: str = ""
    data: Raw
    info: ClientInfoShape | None = None
    offset: int = 0
    tags: dict[str, str] = {}
    key: str = ""
    removed: bool = False


class SubscribeShape(Struct, omit_defaults=True, kw_only=True, gc=False):
    """The result of subscribe, and what a push says of a subscription."""

    expires: bool = False
    ttl: int = 0
    recoverable: bool = False
    seq: int = 0
    gen: int = 0
    epoch: str = ""
    publications: list[PublicationShape] = []
    recovered: bool = False
    offset: int = 0
    positioned: bool = False
    data: Raw | None = None
    was_recovering: bool = False
    type: int = 0
    phase: int = 0
    cursor: str = ""
    state: list[PublicationShape] = []


class ConnectShape(Struct, omit_defaults=True, kw_only=True, gc=False):
    """The result of connect; in the first generation, of refresh, too."""

    client: str
    version: str
    expires: bool = False
    ttl: int = 0
    data: Raw | None = None
    subs: dict[str, SubscribeShape] = {}
    ping: int = 0
    pong: bool = False
    session: str = ""
    node: str = ""
    time: int = 0


class RPCShape(Struct, omit_defaults=True, gc=False):
    """The result of a remote procedure call."""

    data: Raw | None = None


def raw(payload: Payload) -> Raw:
    """Return a payload as msgspec splices it into JSON output."""
    return Raw(payload.json)


def quote(text: str) -> bytes:
    """Return a string as JSON that is safe inside HTML and JavaScript."""
    return escape(_encode(text))


def client_info(info: ClientInfo) -> ClientInfoShape:
    """Return client info in its JSON shape."""
    return ClientInfoShape(
        info.user,
        info.client,
        msgspec.UNSET if info.conn_info is None else raw(info.conn_info),
        msgspec.UNSET if info.chan_info is None else raw(info.chan_info),
    )


def optional(payload: Payload | None) -> Raw | None:
    """Return a payload that may be absent, as `raw` does."""
    return None if payload is None else raw(payload)


def publication(source: Publication) -> PublicationShape:
    """Return a publication in its JSON shape, without its position."""
    shape = PublicationShape(data=raw(source.data))
    if source.info is not None:
        shape.info = client_info(source.info)
    if source.tags:
        shape.tags = dict(sorted(source.tags.items()))
    return shape


def without_key(source: Publication) -> Publication:
    """Return a publication for readers that know no maps: the data of a change hold its key."""
    if not source.key:
        return source
    shown = source.data
    raw = _change(source, shown.raw)
    safe = raw if shown.raw is shown.json else _change(source, shown.json)
    data = Payload(raw, escape(safe))
    return msgspec.structs.replace(source, data=data, key="", removed=False)


def _change(source: Publication, data: bytes) -> bytes:
    rest = b'"removed":true' if source.removed else b'"data":%b' % data
    return b'{"key":%b,%b}' % (_encode(source.key), rest)


def connect(
    result: ConnectResult, subscribe: Callable[[SubscribeResult], SubscribeShape]
) -> ConnectShape:
    """Return a result of connect in its JSON shape, as far as every generation has it."""
    return ConnectShape(
        client=result.client,
        version=result.version,
        expires=result.expires,
        ttl=result.ttl,
        data=optional(result.data),
        subs={channel: subscribe(sub) for channel, sub in sorted((result.subs or {}).items())},
    )


def plain(result: Result) -> object:
    """Return a result that looks the same in every generation in its JSON shape."""
    match result:
        case PresenceResult(presence):
            return {"presence": {c: client_info(info) for c, info in sorted(presence.items())}}
        case RPCResult(data):
            return RPCShape(optional(data))
        case _:
            return result
