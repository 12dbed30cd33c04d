"""The JSON format: text frames, compact objects with a line break between them.

Keys come in the order of the schema, and fields that are zero or empty are left out, as clients
expect. Payloads are spliced in, never parsed.

docs/protocol.md, 15.2 to 15.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from realtime.errors import Disconnect, DisconnectBadRequest, Error
from realtime.payload import escape
from realtime.protocol import json_shapes
from realtime.protocol.json_shapes import (
    PublicationShape,
    SubscribeShape,
    client_info,
    optional,
    quote,
)
from realtime.protocol.json_stream import Malformed, decode_stream
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Command,
    ConnectResult,
    EmptyResult,
    HistoryResult,
    Method,
    Publication,
    RefreshResult,
    Result,
    StreamPosition,
    SubRefreshResult,
    SubscribeResult,
)
from realtime.protocol.v2 import codes
from realtime.protocol.v2.commands import (
    SecondGeneration,
    recovered_publications,
    subscribe_offset,
)
from realtime.protocol.v2.json_requests import REQUESTS, decode_command

_encode = msgspec.json.Encoder().encode
_KEYS: Mapping[Method | None, bytes] = {method: _encode(str(method)) for method in Method}
_EMPTY = b"{}"
_DATA = b',"pub":{"data":'
_NOWHERE = StreamPosition(0, "")


# The shapes on the wire. The order of fields is that of keys.


class _Ending(Struct, omit_defaults=True, gc=False):
    code: int = msgspec.field()
    reason: str = ""


class _Error(Struct, omit_defaults=True, gc=False):
    code: int = msgspec.field()
    message: str = ""
    temporary: bool = False


class JSONCodec(SecondGeneration):
    """See `codec.Codec`."""

    format = "json"
    binary = False
    separator = b"\n"
    requests = REQUESTS
    no_params = _EMPTY

    _open, _close = b'{"push":{', b"}}"
    """What stands around the fields of a push."""

    def __init__(self) -> None:
        self._open_channel = self._open + b'"channel":'
        self._close_publication = b"}" + self._close

    # receiving

    def decode(self, frame: bytes) -> Iterator[Command]:
        empty = True
        try:
            for command in decode_stream(frame, decode_command):
                empty = False
                yield command
        except Malformed:
            raise DisconnectBadRequest from None
        if empty:
            raise DisconnectBadRequest

    # replies

    def result(self, command: Command, result: Result) -> bytes:
        body = _EMPTY if isinstance(result, EmptyResult) else escape(_encode(_result(result)))
        return b'{"id":%d,%b:%b}' % (command.id, _KEYS[command.method], body)

    def error(self, command: Command, error: Error) -> bytes:
        shape = _Error(error.code, codes.message_of(error), error.temporary)
        return b'{"id":%d,"error":%b}' % (command.id, escape(_encode(shape)))

    # pushes

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        # joined, because that takes half the time of a format
        key = publication.key
        if publication.offset == 0 and publication.info is None and not (publication.tags or key):
            return b"".join(
                (
                    self._open_channel,
                    quote(channel),
                    _DATA,
                    publication.data.json,
                    self._close_publication,
                )
            )
        # as `PublicationShape`, without a look at the data
        info, offset, tags = publication.info, publication.offset, publication.tags
        return b"".join(
            (
                self._open_channel,
                quote(channel),
                _DATA,
                publication.data.json,
                b',"info":%b' % escape(_encode(client_info(info))) if info is not None else b"",
                b',"offset":%d' % offset if offset else b"",
                b',"tags":%b' % escape(_encode(dict(sorted(tags.items())))) if tags else b"",
                b',"key":%b' % quote(key) if key else b"",
                b',"removed":true' if publication.removed else b"",
                self._close_publication,
            )
        )

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return self._encode_push(b"join", channel, {"info": client_info(info)})

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return self._encode_push(b"leave", channel, {"info": client_info(info)})

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        shape = SubscribeShape(
            recoverable=result.recoverable, positioned=result.positioned, data=optional(result.data)
        )
        if result.position is not None:
            shape.epoch, shape.offset = result.position.epoch, result.position.offset
        return self._encode_push(b"subscribe", channel, shape)

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        return self._encode_push(b"unsubscribe", channel, _Ending(code, reason))

    def refreshed(self, expires: bool, ttl: int) -> bytes:
        return self._encode_push(b"refresh", None, SubRefreshResult(expires, ttl))

    def ping(self) -> bytes:
        return b"{}"

    def _encode_push(self, kind: bytes, channel: ChannelName | None, shape: object) -> bytes:
        """Encode a push; those that concern the whole connection have no channel."""
        where = b"" if channel is None else b'"channel":%b,' % quote(channel)
        body = escape(_encode(shape))
        return b'%b%b"%b":%b%b' % (self._open, where, kind, body, self._close)

    # closing

    def disconnect(self, disconnect: Disconnect) -> bytes:
        return self._encode_push(b"disconnect", None, _Ending(*codes.closing(disconnect)))


class UnidirectionalJSONCodec(JSONCodec):
    """The JSON of connections that only go down: pushes stand alone, and there are no replies.

    The only frame of a client is the request of connect.
    """

    unidirectional = True
    _open, _close = b"{", b"}"

    def decode(self, frame: bytes) -> Iterator[Command]:
        yield Command(1, Method.CONNECT, frame)

    def result(self, command: Command, result: Result) -> bytes:
        """Encode the push that stands for the reply of connect."""
        return self._encode_push(b"connect", None, _result(result))

    def error(self, command: Command, error: Error) -> bytes:
        """
        Raises:
            Disconnect: always; no reply can tell the client why it failed.
        """
        raise codes.refusal(error)


def _result(result: Result) -> object:
    match result:
        case SubscribeResult():
            return _subscribe_result(result)
        case ConnectResult():
            shape = json_shapes.connect(result, _subscribe_result)
            shape.ping, shape.pong = result.ping, result.pong
            shape.session, shape.node, shape.time = result.session, result.node, result.time
            return shape
        case HistoryResult(publications, position):
            position = position or _NOWHERE
            return {
                "publications": [_publication(p) for p in publications],
                "epoch": position.epoch,
                "offset": position.offset,
            }
        case RefreshResult(_, _, expires, ttl):
            return SubRefreshResult(expires, ttl)
        case _:
            return json_shapes.plain(result)


def _subscribe_result(result: SubscribeResult) -> SubscribeShape:
    shape = SubscribeShape(
        expires=result.expires,
        ttl=result.ttl,
        recoverable=result.recoverable,
        positioned=result.positioned,
        data=optional(result.data),
        was_recovering=result.was_recovering,
        type=result.type,
        phase=result.phase,
        cursor=result.cursor,
        state=[_publication(entry) for entry in result.state],
    )
    if result.position is not None:
        shape.epoch = result.position.epoch
        shape.recovered = result.recovered
        shape.offset = subscribe_offset(result)
        shape.publications = [_publication(p) for p in recovered_publications(result)]
    return shape


def _publication(publication: Publication) -> PublicationShape:
    shape = json_shapes.publication(publication)
    shape.offset = publication.offset
    shape.key, shape.removed = publication.key, publication.removed
    return shape
