"""The JSON format: text frames, one compact object per line.

Keys come in the order of the schema, and fields that are zero or empty are left out, as clients
expect. Payloads are spliced in, never parsed.

docs/protocol.md, 2.3, 2.8, 2.11 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import Raw, Struct

from realtime.errors import DisconnectBadRequest, Error
from realtime.payload import escape
from realtime.protocol import json_shapes
from realtime.protocol.json_history import Int32, UInt64, checked_offset, first_history_request
from realtime.protocol.json_shapes import (
    PublicationShape,
    SubscribeShape,
    client_info,
    quote,
    without_key,
)
from realtime.protocol.json_stream import Malformed, ObjectDecoder, decode_stream, method_number
from realtime.protocol.messages import (
    ABSENT,
    ChannelName,
    ClientInfo,
    Command,
    ConnectRequest,
    ConnectResult,
    EmptyRequest,
    EmptyResult,
    HistoryRequest,
    HistoryResult,
    NoResult,
    Publication,
    Result,
    SubscribeRequest,
    SubscribeResult,
    UInt32,
)
from realtime.protocol.v1.numbers import (
    ALL,
    METHOD_NUMBERS,
    FirstGeneration,
    PushType,
    to_command,
    to_position,
)
from realtime.protocol.v2 import json_requests

_encode = msgspec.json.Encoder().encode
_EMPTY = b"{}"


# The shapes on the wire, where they differ from `messages`. The order of fields is that of keys.


class _Command(Struct, forbid_unknown_fields=True, gc=False):
    id: UInt32 | None = None
    method: int | str = 0
    params: Raw = Raw(b"")


class _SubscribeRequest(Struct, forbid_unknown_fields=True, gc=False):
    channel: str | None = None
    token: str | None = None
    recover: bool | None = None
    seq: UInt32 | None = None
    gen: UInt32 | None = None
    epoch: str | None = None
    offset: UInt64 | None = None
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


_decode_command = ObjectDecoder(_Command)
_decode_connect = ObjectDecoder(_ConnectRequest, subs=_SubscribeRequest)
_decode_subscribe = ObjectDecoder(_SubscribeRequest)


def _connect_request(params: bytes) -> ConnectRequest:
    wire = _decode_connect(params)
    subs: dict[str, SubscribeRequest | None] | None = None
    if wire.subs is not None:
        subs = {name: None if sub is None else _from_wire(sub) for name, sub in wire.subs.items()}
    return ConnectRequest(wire.token, wire.data, subs, wire.name, wire.version)


def _subscribe_request(params: bytes) -> SubscribeRequest:
    return _from_wire(_decode_subscribe(params))


def _from_wire(sub: _SubscribeRequest) -> SubscribeRequest:
    position = to_position(checked_offset(sub.offset), sub.seq, sub.gen, sub.epoch)
    return SubscribeRequest(
        sub.channel,
        sub.token,
        position if sub.recover else None,
        type=sub.type or 0,
        position=position if sub.type else None,
        phase=sub.phase or 0,
        cursor=sub.cursor or "",
        limit=sub.limit or 0,
    )


def _empty_request(params: bytes) -> EmptyRequest:
    if not params.startswith(b"{"):
        raise Malformed("not an object")
    return EmptyRequest()


class JSONCodec(FirstGeneration):
    """See `codec.Codec`."""

    format = "json"
    binary = False
    no_params = _EMPTY
    requests: ClassVar = {
        **json_requests.REQUESTS,
        ConnectRequest: _connect_request,
        SubscribeRequest: _subscribe_request,
        HistoryRequest: partial(first_history_request, limit=ALL),
        EmptyRequest: _empty_request,
    }

    # receiving

    def decode(self, frame: bytes) -> Iterator[Command]:
        if not frame:
            raise DisconnectBadRequest
        try:
            for command in decode_stream(frame, _decode_command):
                params = bytes(command.params)
                yield to_command(
                    command.id or 0,
                    method_number(command.method, METHOD_NUMBERS),
                    None if params in (b"", b"null") else params,
                )
        except Malformed:
            raise DisconnectBadRequest from None

    # replies

    def result(self, command: Command, result: Result) -> bytes:
        if isinstance(result, NoResult):
            return b'{"id":%d}\n' % command.id
        return b'{"id":%d,"result":%b}\n' % (command.id, self._result(result))

    def error(self, command: Command, error: Error) -> bytes:
        body = escape(_encode({"code": error.code, "message": error.message}))
        return b'{"id":%d,"error":%b}\n' % (command.id, body)

    def _result(self, result: Result) -> bytes:
        match result:
            case EmptyResult() | NoResult():
                return _EMPTY
            case SubscribeResult():
                shape: object = self._subscribe_result(result)
            case ConnectResult():
                shape = json_shapes.connect(result, self._subscribe_result)
            case HistoryResult(publications):
                shape = {"publications": [self._kept(publication) for publication in publications]}
            case _:
                shape = json_shapes.plain(result)
        return escape(_encode(shape))

    def _subscribe_result(self, result: SubscribeResult) -> SubscribeShape:
        shape = SubscribeShape(
            expires=result.expires,
            ttl=result.ttl,
            recoverable=result.recoverable,
            type=result.type,
            phase=result.phase,
            cursor=result.cursor,
            state=[self._publication(entry) for entry in result.state],
        )
        self._set_recovery(shape, result)
        return shape

    def _publication(self, publication: Publication) -> PublicationShape:
        shape = json_shapes.publication(without_key(publication))
        self._set_offset(shape, publication.offset)
        return shape

    # pushes

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        publication = without_key(publication)
        if publication.offset == 0 and publication.info is None and not publication.tags:
            return b'{"result":{"channel":%b,"data":{"data":%b}}}\n' % (
                quote(channel),
                publication.data.json,
            )
        data = escape(_encode(self._publication(publication)))
        return b'{"result":{"channel":%b,"data":%b}}\n' % (quote(channel), data)

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return self._presence_push(PushType.JOIN, channel, info)

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return self._presence_push(PushType.LEAVE, channel, info)

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        shape = SubscribeShape(recoverable=result.recoverable)
        self._set_position(shape, result.position)
        return _push(PushType.SUB, channel, escape(_encode(shape)))

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        return _push(PushType.UNSUB, channel, _EMPTY)

    def _presence_push(self, kind: PushType, channel: ChannelName, info: ClientInfo) -> bytes:
        return _push(kind, channel, b'{"info":%b}' % escape(_encode(client_info(info))))


def _push(kind: PushType, channel: ChannelName, data: bytes) -> bytes:
    return b'{"result":{"type":%d,"channel":%b,"data":%b}}\n' % (kind, quote(channel), data)
