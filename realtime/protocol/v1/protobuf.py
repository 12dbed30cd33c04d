"""The Protobuf format: binary frames, in which each message follows its length, a varint.

docs/protocol.md, 2.4, 2.8 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from google.protobuf.message import DecodeError, Message
from msgspec import Raw

from realtime.errors import DisconnectBadRequest, Error
from realtime.protocol.json_shapes import without_key
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Command,
    ConnectRequest,
    ConnectResult,
    EmptyResult,
    HistoryRequest,
    HistoryResult,
    NoResult,
    Publication,
    Result,
    SubscribeRequest,
    SubscribeResult,
)
from realtime.protocol.protobuf_frames import frame_message, split_frame
from realtime.protocol.v1 import client_pb2
from realtime.protocol.v1.numbers import ALL, FirstGeneration, PushType, to_command, to_position
from realtime.protocol.v2.protobuf import FILL, REQUESTS, fill_connect, fill_info


def _connect_request(params: bytes) -> ConnectRequest:
    message = client_pb2.ConnectRequest.FromString(params)
    return ConnectRequest(
        message.token,
        Raw(message.data),
        {channel: _from_wire(sub) for channel, sub in message.subs.items()},
        message.name,
        message.version,
    )


def _subscribe_request(params: bytes) -> SubscribeRequest:
    return _from_wire(client_pb2.SubscribeRequest.FromString(params))


def _from_wire(message: client_pb2.SubscribeRequest) -> SubscribeRequest:
    since = to_position(message.offset, message.seq, message.gen, message.epoch)
    return SubscribeRequest(message.channel, message.token, since if message.recover else None)


def _history_request(params: bytes) -> HistoryRequest:
    return HistoryRequest(client_pb2.HistoryRequest.FromString(params).channel, limit=ALL)


class ProtobufCodec(FirstGeneration):
    """See `codec.Codec`."""

    format = "protobuf"
    binary = True
    no_params = b""
    requests: ClassVar = {
        **REQUESTS,
        ConnectRequest: _connect_request,
        SubscribeRequest: _subscribe_request,
        HistoryRequest: _history_request,
    }

    # receiving

    def decode(self, frame: bytes) -> Iterator[Command]:
        if not frame:
            raise DisconnectBadRequest
        try:
            for message in split_frame(frame):
                command = client_pb2.Command.FromString(message)
                yield to_command(command.id, command.method, command.params or None)
        except (ValueError, DecodeError):
            raise DisconnectBadRequest from None

    # replies

    def result(self, command: Command, result: Result) -> bytes:
        reply = client_pb2.Reply(id=command.id)
        if not isinstance(result, NoResult | EmptyResult):
            reply.result = self._result(result).SerializeToString()
        return frame_message(reply.SerializeToString())

    def error(self, command: Command, error: Error) -> bytes:
        reply = client_pb2.Reply(
            id=command.id, error=client_pb2.Error(code=error.code, message=error.message)
        )
        return frame_message(reply.SerializeToString())

    def _result(self, result: Result) -> Message:
        message: Any = getattr(client_pb2, type(result).__name__)()
        match result:
            case SubscribeResult():
                self._fill_subscribe_result(message, result)
            case ConnectResult():
                fill_connect(message, result, self._fill_subscribe_result)
            case HistoryResult(publications):
                message.publications.extend(map(self._kept, publications))
            case _:
                FILL[type(result)](message, result)
        return cast(Message, message)

    def _fill_subscribe_result(self, message: Any, result: SubscribeResult) -> None:
        message.expires, message.ttl = result.expires, result.ttl
        message.recoverable = result.recoverable
        self._set_recovery(message, result)

    def _publication(self, publication: Publication) -> client_pb2.Publication:
        publication = without_key(publication)
        message = client_pb2.Publication(data=publication.data.raw)
        if publication.info is not None:
            fill_info(message.info, publication.info)
        self._set_offset(message, publication.offset)
        return message

    # pushes

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        return _push(PushType.PUBLICATION, channel, self._publication(publication))

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return _presence_push(PushType.JOIN, channel, info)

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return _presence_push(PushType.LEAVE, channel, info)

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        message = client_pb2.Sub(recoverable=result.recoverable)
        self._set_position(message, result.position)
        return _push(PushType.SUB, channel, message)

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        return _push(PushType.UNSUB, channel, client_pb2.Unsub())


def _push(kind: PushType, channel: ChannelName, message: Message) -> bytes:
    push = client_pb2.Push(
        type=cast(client_pb2.PushType, int(kind)), channel=channel, data=message.SerializeToString()
    )
    return frame_message(client_pb2.Reply(result=push.SerializeToString()).SerializeToString())


def _presence_push(kind: PushType, channel: ChannelName, info: ClientInfo) -> bytes:
    message = client_pb2.Join()  # a leave has the same fields
    fill_info(message.info, info)
    return _push(kind, channel, message)
