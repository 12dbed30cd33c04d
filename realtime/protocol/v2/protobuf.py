"""The Protobuf format: binary frames, in which each message follows its length, a varint.

docs/protocol.md, 15.2 to 15.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError, Message
from msgspec import Raw, Struct

from realtime.errors import Disconnect, DisconnectBadRequest, Error
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    ClientInfo,
    Command,
    ConnectRequest,
    ConnectResult,
    EmptyRequest,
    EmptyResult,
    FilterNode,
    HistoryRequest,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    Publication,
    PublishRequest,
    RefreshRequest,
    RefreshResult,
    Result,
    RPCRequest,
    RPCResult,
    SendRequest,
    StreamPosition,
    SubRefreshRequest,
    SubRefreshResult,
    SubscribeRequest,
    SubscribeResult,
)
from realtime.protocol.protobuf_frames import frame_message, split_frame
from realtime.protocol.v2 import client_pb2, codes
from realtime.protocol.v2.commands import (
    METHODS,
    PONG,
    SecondGeneration,
    check_delta,
    recovered_publications,
    subscribe_offset,
    to_command,
)

_METHODS = tuple((str(method), method) for method in METHODS.values())


def _reply(push: client_pb2.Push) -> bytes:
    return frame_message(client_pb2.Reply(push=push).SerializeToString())


def raw(payload: Payload | None) -> bytes:
    """Return a payload that may be absent, as messages have it."""
    return b"" if payload is None else payload.raw


# filling messages in place is faster than making their parts and copying them


def fill_connect(
    message: Any, result: ConnectResult, fill_subscribe: Callable[[Any, SubscribeResult], None]
) -> None:
    """Fill in what both generations have."""
    message.client, message.version = result.client, result.version
    message.expires, message.ttl = result.expires, result.ttl
    message.data = raw(result.data)
    for channel, sub in (result.subs or {}).items():
        fill_subscribe(message.subs[channel], sub)


def _fill_connect_result(message: client_pb2.ConnectResult, result: ConnectResult) -> None:
    fill_connect(message, result, _fill_subscribe_result)
    message.ping, message.pong = result.ping, result.pong
    message.session, message.node, message.time = result.session, result.node, result.time


def _fill_subscribe_result(message: client_pb2.SubscribeResult, result: SubscribeResult) -> None:
    message.expires, message.ttl = result.expires, result.ttl
    message.recoverable, message.positioned = result.recoverable, result.positioned
    message.was_recovering = result.was_recovering
    message.data = raw(result.data)
    if result.position is not None:
        message.epoch, message.offset = result.position.epoch, subscribe_offset(result)
        message.recovered = result.recovered
        for publication in recovered_publications(result):
            _fill_publication(message.publications.add(), publication)
    if result.type:
        message.type, message.phase, message.cursor = result.type, result.phase, result.cursor
        for entry in result.state:
            _fill_publication(message.state.add(), entry)


def _fill_publication(message: client_pb2.Publication, publication: Publication) -> None:
    message.data = publication.data.raw
    if publication.offset:
        message.offset = publication.offset
    if publication.info is not None:
        fill_info(message.info, publication.info)
    if publication.tags:
        message.tags.update(publication.tags)
    if publication.key:
        message.key, message.removed = publication.key, publication.removed


def fill_info(message: Any, info: ClientInfo) -> None:
    """Write client info into its message, in the schema of either generation."""
    message.user, message.client = info.user, info.client
    if info.conn_info is not None:
        message.conn_info = info.conn_info.raw
    if info.chan_info is not None:
        message.chan_info = info.chan_info.raw


def _fill_presence(message: client_pb2.PresenceResult, result: PresenceResult) -> None:
    for client_id, info in result.presence.items():
        fill_info(message.presence[client_id], info)


def _fill_fields(message: Message, result: Struct) -> None:
    """Copy a result into a message with fields of the same names."""
    for field in message.DESCRIPTOR.fields:
        setattr(message, field.name, getattr(result, field.name))


def _fill_history(message: client_pb2.HistoryResult, result: HistoryResult) -> None:
    for publication in result.publications:
        _fill_publication(message.publications.add(), publication)
    if result.position is not None:
        message.epoch, message.offset = result.position.epoch, result.position.offset


def _fill_rpc(message: client_pb2.RPCResult, result: RPCResult) -> None:
    message.data = raw(result.data)


FILL: Mapping[type[Struct], Callable[[Any, Any], None]] = {
    EmptyResult: _fill_fields,
    SubscribeResult: _fill_subscribe_result,
    ConnectResult: _fill_connect_result,
    RefreshResult: _fill_fields,
    SubRefreshResult: _fill_fields,
    PresenceResult: _fill_presence,
    PresenceStatsResult: _fill_fields,
    HistoryResult: _fill_history,
    RPCResult: _fill_rpc,
}
"""Result → what fills its message. Most results look the same in the first generation."""


# requests


def _command(text: bytes) -> Command:
    """Decode one command.

    Raises:
        DecodeError: the bytes are not a message.
        DisconnectBadRequest: it is not a command; see `to_command`.
    """
    message = client_pb2.Command.FromString(text)
    command_id = message.id
    if command_id == 0 and not message.HasField("send"):
        return PONG
    has_field = message.HasField
    for name, method in _METHODS:
        if has_field(name):
            return to_command(command_id, method, getattr(message, name))
    raise DisconnectBadRequest


def _connect_request(params: bytes) -> ConnectRequest:
    message = client_pb2.ConnectRequest.FromString(params)
    return ConnectRequest(
        message.token,
        Raw(message.data),
        {channel: _from_wire(sub) for channel, sub in message.subs.items()},
        message.name,
        message.version,
        dict(message.headers),
    )


def _subscribe_request(params: bytes) -> SubscribeRequest:
    return _from_wire(client_pb2.SubscribeRequest.FromString(params))


def _from_wire(message: client_pb2.SubscribeRequest) -> SubscribeRequest:
    check_delta(message.delta)
    position = StreamPosition(message.offset, message.epoch)
    return SubscribeRequest(
        message.channel,
        message.token,
        position if message.recover else None,
        Raw(message.data),
        message.positioned,
        message.recoverable,
        message.join_leave,
        _filter_node(message.tf) if message.HasField("tf") else None,
        message.flag,
        message.type,
        position if message.type else None,
        message.phase,
        message.cursor,
        message.limit,
    )


def _filter_node(message: client_pb2.FilterNode) -> FilterNode:
    return FilterNode(
        message.op,
        message.key,
        message.cmp,
        message.val,
        tuple(message.vals),
        tuple(map(_filter_node, message.nodes)),
    )


_PLAIN = ChannelRequest, RefreshRequest, SubRefreshRequest
"""Requests whose messages have their fields."""


def _decoder(shape: type[Struct]) -> Callable[[bytes], Struct]:
    parse = getattr(client_pb2, shape.__name__).FromString

    def request(params: bytes) -> Struct:
        message = parse(params)
        return shape(*[getattr(message, name) for name in shape.__struct_fields__])

    return request


def _publish_request(params: bytes) -> PublishRequest:
    message = client_pb2.PublishRequest.FromString(params)
    return PublishRequest(
        message.channel,
        Raw(message.data),
        message.type or None,
        message.key or None,
        message.removed or None,
    )


def _rpc_request(params: bytes) -> RPCRequest:
    message = client_pb2.RPCRequest.FromString(params)
    return RPCRequest(message.method, Raw(message.data))


def _history_request(params: bytes) -> HistoryRequest:
    message = client_pb2.HistoryRequest.FromString(params)
    since = None
    if message.HasField("since"):
        since = StreamPosition(message.since.offset, message.since.epoch)
    return HistoryRequest(message.channel, message.limit, since, message.reverse)


REQUESTS: Mapping[type[Struct], Callable[[bytes], Struct]] = {
    ConnectRequest: _connect_request,
    SubscribeRequest: _subscribe_request,
    **{shape: _decoder(shape) for shape in _PLAIN},
    PublishRequest: _publish_request,
    RPCRequest: _rpc_request,
    SendRequest: lambda params: SendRequest(Raw(client_pb2.SendRequest.FromString(params).data)),
    HistoryRequest: _history_request,
    EmptyRequest: lambda params: EmptyRequest(),
}
"""Request → decoder. But for connect, subscribe and history the first generation has the same."""


class ProtobufCodec(SecondGeneration):
    """See `codec.Codec`."""

    format = "protobuf"
    binary = True
    separator = b""
    requests = REQUESTS
    no_params = b""

    # receiving

    def decode(self, frame: bytes) -> Iterator[Command]:
        if not frame:
            raise DisconnectBadRequest
        try:
            for message in split_frame(frame):
                yield _command(message)
        except (ValueError, DecodeError):
            raise DisconnectBadRequest from None

    # replies

    def result(self, command: Command, result: Result) -> bytes:
        reply = client_pb2.Reply(id=command.id)
        part = getattr(reply, str(command.method))
        part.SetInParent()  # an empty result is present
        FILL[type(result)](part, result)
        return frame_message(reply.SerializeToString())

    def error(self, command: Command, error: Error) -> bytes:
        reply = client_pb2.Reply(id=command.id)
        reply.error.code = error.code
        reply.error.message = codes.message_of(error)
        reply.error.temporary = error.temporary
        return frame_message(reply.SerializeToString())

    # pushes

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        reply = client_pb2.Reply()
        push = reply.push
        push.channel = channel
        _fill_publication(push.pub, publication)
        return frame_message(reply.SerializeToString())

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        push = client_pb2.Push(channel=channel)
        fill_info(push.join.info, info)
        return _reply(push)

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        push = client_pb2.Push(channel=channel)
        fill_info(push.leave.info, info)
        return _reply(push)

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        subscribe = client_pb2.Subscribe(
            recoverable=result.recoverable, positioned=result.positioned, data=raw(result.data)
        )
        if result.position is not None:
            subscribe.epoch = result.position.epoch
            subscribe.offset = result.position.offset
        return _reply(client_pb2.Push(channel=channel, subscribe=subscribe))

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        ending = client_pb2.Unsubscribe(code=code, reason=reason)
        return _reply(client_pb2.Push(channel=channel, unsubscribe=ending))

    def refreshed(self, expires: bool, ttl: int) -> bytes:
        return _reply(client_pb2.Push(refresh=client_pb2.Refresh(expires=expires, ttl=ttl)))

    def ping(self) -> bytes:
        return b"\x00"

    # closing

    def disconnect(self, disconnect: Disconnect) -> bytes:
        code, reason = codes.closing(disconnect)
        ending = client_pb2.Disconnect(code=code, reason=reason)
        return _reply(client_pb2.Push(disconnect=ending))
