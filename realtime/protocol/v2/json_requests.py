"""Commands and requests in JSON, as clients of the second generation send them.

A key may be spelt in any letter case, unknown keys are ignored, and `null` means absent.

docs/protocol.md, 15.2 and 15.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta, Raw, Struct

from realtime.errors import DisconnectBadRequest
from realtime.payload import replace_lone_surrogates
from realtime.protocol.json_history import (
    Int32,
    UInt64,
    checked_offset,
    history_request,
    is_given,
)
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import (
    ABSENT,
    Command,
    ConnectRequest,
    EmptyRequest,
    FilterNode,
    HistoryRequest,
    Request,
    StreamPosition,
    SubscribeRequest,
    UInt32,
)
from realtime.protocol.v2.commands import MAX_FILTER_DEPTH, METHODS, PONG, check_delta, to_command

R = TypeVar("R", bound=Struct)

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

_METHODS = tuple((str(method), method) for method in METHODS.values())


class _Command(Struct, forbid_unknown_fields=True, gc=False):
    id: UInt32 | None = None
    connect: Raw = ABSENT
    subscribe: Raw = ABSENT
    unsubscribe: Raw = ABSENT
    publish: Raw = ABSENT
    presence: Raw = ABSENT
    presence_stats: Raw = ABSENT
    history: Raw = ABSENT
    ping: Raw = ABSENT
    send: Raw = ABSENT
    rpc: Raw = ABSENT
    refresh: Raw = ABSENT
    sub_refresh: Raw = ABSENT


class _SubscribeRequest(Struct, forbid_unknown_fields=True, gc=False):
    channel: str | None = None
    token: str | None = None
    recover: bool | None = None
    epoch: str | None = None
    offset: UInt64 | None = None
    data: Raw = ABSENT
    positioned: bool | None = None
    recoverable: bool | None = None
    join_leave: bool | None = None
    delta: str | None = None
    tf: Raw = ABSENT
    flag: Int64 | None = None
    type: Int32 | None = None
    phase: Int32 | None = None
    cursor: str | None = None
    limit: Int32 | None = None


class _ConnectRequest(Struct, forbid_unknown_fields=True):
    token: str | None = None
    data: Raw = ABSENT
    subs: dict[str, _SubscribeRequest | None] | None = None
    name: str | None = None
    version: str | None = None
    headers: dict[str, str | None] | None = None


_decode_command = ObjectDecoder(_Command)
_decode_connect = ObjectDecoder(_ConnectRequest, subs=_SubscribeRequest)
_decode_subscribe = ObjectDecoder(_SubscribeRequest)


def decode_command(text: bytes) -> Command:
    """Decode one command.

    Raises:
        Malformed: it is not JSON, not an object, or its ID is not one.
        DisconnectBadRequest: it is not a command; see `to_command`.
    """
    wire = _decode_command(text)
    if not wire.id and not is_given(wire.send):
        return PONG
    for name, method in _METHODS:
        params: Raw = getattr(wire, name)
        if is_given(params):
            return to_command(wire.id or 0, method, bytes(params))
    raise DisconnectBadRequest


def decode_request(text: bytes, shape: type[R]) -> R:
    """Decode the request of a command.

    Raises:
        Malformed: it is not such a request.
        DisconnectBadRequest: a value in it does not exist in the protocol.
    """
    return cast(R, REQUESTS[shape](text))


def _connect_request(text: bytes) -> ConnectRequest:
    wire = _decode_connect(text)
    subs: dict[str, SubscribeRequest | None] | None = None
    if wire.subs is not None:
        subs = {name: None if sub is None else _from_wire(sub) for name, sub in wire.subs.items()}
    headers = None
    if wire.headers is not None:
        headers = {name: value for name, value in wire.headers.items() if value is not None}
    return ConnectRequest(wire.token, wire.data, subs, wire.name, wire.version, headers)


def _subscribe_request(text: bytes) -> SubscribeRequest:
    return _from_wire(_decode_subscribe(text))


def _from_wire(sub: _SubscribeRequest) -> SubscribeRequest:
    check_delta(sub.delta)
    position = StreamPosition(checked_offset(sub.offset), sub.epoch or "")
    return SubscribeRequest(
        sub.channel,
        sub.token,
        position if sub.recover else None,
        sub.data,
        bool(sub.positioned),
        bool(sub.recoverable),
        bool(sub.join_leave),
        _tags_filter(bytes(sub.tf)) if is_given(sub.tf) else None,
        sub.flag or 0,
        sub.type or 0,
        position if sub.type else None,
        sub.phase or 0,
        sub.cursor or "",
        sub.limit or 0,
    )


def _empty_request(text: bytes) -> EmptyRequest:
    return EmptyRequest()


_LOOK_DIFFERENT = (EmptyRequest, ConnectRequest, SubscribeRequest, HistoryRequest)
REQUESTS: Mapping[type[Struct], Callable[[bytes], Struct]] = {
    **{shape: ObjectDecoder(shape) for shape in Request.__args__ if shape not in _LOOK_DIFFERENT},
    ConnectRequest: _connect_request,
    SubscribeRequest: _subscribe_request,
    HistoryRequest: history_request,
    EmptyRequest: _empty_request,
}
"""Request → decoder."""


# filters by tags hold only strings, so they can be read without care for the spelling of numbers


def _tags_filter(text: bytes) -> FilterNode:
    try:
        value = msgspec.json.decode(replace_lone_surrogates(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Malformed("filter is not JSON") from None
    return _filter_node(value, MAX_FILTER_DEPTH)


def _filter_node(value: Any, depth: int) -> FilterNode:
    if not isinstance(value, dict) or depth == 0:
        raise Malformed("filter is not an object, or nested too deeply")
    given = {key.lower(): part for key, part in value.items() if part is not None}
    return FilterNode(
        op=_text(given.get("op", "")),
        key=_text(given.get("key", "")),
        cmp=_text(given.get("cmp", "")),
        val=_text(given.get("val", "")),
        vals=tuple(map(_text, _list(given.get("vals")))),
        nodes=tuple(_filter_node(node, depth - 1) for node in _list(given.get("nodes"))),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("not a string")
    return value


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed("not an array")
    return value
