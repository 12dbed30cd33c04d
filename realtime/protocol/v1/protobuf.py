"""The Protobuf format: binary frames, in which each message follows its length, a varint.

docs/protocol.md, 2.4, 2.8 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, cast

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
    HistoryRequest,
    HistoryResult,
    NoResult,
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
    SubRefreshRequest,
    SubRefreshResult,
    SubscribeRequest,
    SubscribeResult,
)
from realtime.protocol.protobuf_frames import frame_message, split_frame
from realtime.protocol.v1 import client_pb2
from realtime.protocol.v1.numbers import (
    ALL,
    PushType,
    empty_request,
    split_offset,
    to_command,
    to_since,
)

R = TypeVar("R", bound=Struct)


class ProtobufCodec:
    """See `codec.Codec`."""

    generation = 1
    format = "protobuf"
    binary = True
    server_pings = False
    unidirectional = False
    separator = b""

    def __init__(self, use_offset: bool) -> None:
        """
        Args:
            use_offset: write positions as `offset`, and not as `seq` and `gen`.
        """
        self._use_offset = use_offset

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

    def params(self, command: Command, shape: type[R]) -> R:
        if command.params is None:
            return empty_request(shape)
        try:
            request = _decode_request(command.params, shape)
        except DecodeError:
            raise DisconnectBadRequest from None
        return cast(R, request)

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
        match result:
            case SubscribeResult():
                return self._subscribe_result(result)
            case ConnectResult(client, version, expires, ttl, subs, data):
                connected = client_pb2.ConnectResult(
                    client=client, version=version, expires=expires, ttl=ttl
                )
                if data is not None:
                    connected.data = data.raw
                for channel, sub in (subs or {}).items():
                    connected.subs[channel].CopyFrom(self._subscribe_result(sub))
                return connected
            case RefreshResult(client, version, expires, ttl):
                return client_pb2.RefreshResult(
                    client=client, version=version, expires=expires, ttl=ttl
                )
            case SubRefreshResult(expires, ttl):
                return client_pb2.SubRefreshResult(expires=expires, ttl=ttl)
            case PresenceResult(presence):
                entries = client_pb2.PresenceResult()
                for client_id, info in presence.items():
                    entries.presence[client_id].CopyFrom(_client_info(info))
                return entries
            case PresenceStatsResult(num_clients, num_users):
                return client_pb2.PresenceStatsResult(num_clients=num_clients, num_users=num_users)
            case HistoryResult(publications):
                return client_pb2.HistoryResult(publications=[self._kept(p) for p in publications])
            case RPCResult(data):
                return client_pb2.RPCResult(data=b"" if data is None else data.raw)
            case EmptyResult() | NoResult():
                return client_pb2.PingResult()

    def _subscribe_result(self, result: SubscribeResult) -> client_pb2.SubscribeResult:
        message = client_pb2.SubscribeResult(
            expires=result.expires, ttl=result.ttl, recoverable=result.recoverable
        )
        if result.position is not None:
            message.epoch = result.position.epoch
            message.recovered = result.recovered
            publications = [self._publication(p) for p in result.publications]
            if self._use_offset:
                message.offset = result.position.offset
            else:
                # clients that know seq and gen expect the newest publication first
                publications.reverse()
                message.seq, message.gen = split_offset(result.position.offset)
            message.publications.extend(publications)
        return message

    def _publication(self, publication: Publication) -> client_pb2.Publication:
        message = client_pb2.Publication(data=publication.data.raw)
        if publication.info is not None:
            message.info.CopyFrom(_client_info(publication.info))
        if self._use_offset:
            message.offset = publication.offset
        else:
            message.seq, message.gen = split_offset(publication.offset)
        return message

    def _kept(self, publication: Publication) -> client_pb2.Publication:
        """Return a publication of a history result: with UID, and always with the offset."""
        message = self._publication(publication)
        message.uid = publication.uid
        message.offset = publication.offset
        return message

    # pushes

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        return _push(PushType.PUBLICATION, channel, self._publication(publication))

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return _push(PushType.JOIN, channel, client_pb2.Join(info=_client_info(info)))

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        return _push(PushType.LEAVE, channel, client_pb2.Leave(info=_client_info(info)))

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        message = client_pb2.Sub(recoverable=result.recoverable)
        if result.position is not None:
            message.epoch = result.position.epoch
            if self._use_offset:
                message.offset = result.position.offset
            else:
                message.seq, message.gen = split_offset(result.position.offset)
        return _push(PushType.SUB, channel, message)

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        return _push(PushType.UNSUB, channel, client_pb2.Unsub())

    def refreshed(self, expires: bool, ttl: int) -> None:
        return None

    def ping(self) -> bytes:
        raise NotImplementedError("clients of the first generation send the pings")

    # closing

    def disconnect(self, disconnect: Disconnect) -> None:
        return None

    def closing(self, disconnect: Disconnect) -> tuple[int, str]:
        return disconnect.code, disconnect.advice


def _push(kind: PushType, channel: ChannelName, message: Message) -> bytes:
    push = client_pb2.Push(
        type=cast(client_pb2.PushType, int(kind)), channel=channel, data=message.SerializeToString()
    )
    return frame_message(client_pb2.Reply(result=push.SerializeToString()).SerializeToString())


def _client_info(info: ClientInfo) -> client_pb2.ClientInfo:
    return client_pb2.ClientInfo(
        user=info.user,
        client=info.client,
        conn_info=_raw(info.conn_info),
        chan_info=_raw(info.chan_info),
    )


def _raw(payload: Payload | None) -> bytes:
    return b"" if payload is None else payload.raw


def _decode_request(params: bytes, shape: type[Struct]) -> Struct:
    """Decode params into the request struct `shape`.

    Raises:
        DecodeError: the params are not such a message.
    """
    if shape is ChannelRequest:
        return ChannelRequest(client_pb2.UnsubscribeRequest.FromString(params).channel)
    if shape is HistoryRequest:
        return HistoryRequest(client_pb2.HistoryRequest.FromString(params).channel, limit=ALL)
    if shape is PublishRequest:
        publish = client_pb2.PublishRequest.FromString(params)
        return PublishRequest(publish.channel, Raw(publish.data))
    if shape is SubscribeRequest:
        return _subscribe_request(client_pb2.SubscribeRequest.FromString(params))
    if shape is ConnectRequest:
        connect = client_pb2.ConnectRequest.FromString(params)
        return ConnectRequest(
            token=connect.token,
            data=Raw(connect.data),
            subs={channel: _subscribe_request(sub) for channel, sub in connect.subs.items()},
            name=connect.name,
            version=connect.version,
        )
    if shape is RefreshRequest:
        return RefreshRequest(client_pb2.RefreshRequest.FromString(params).token)
    if shape is SubRefreshRequest:
        refresh = client_pb2.SubRefreshRequest.FromString(params)
        return SubRefreshRequest(refresh.channel, refresh.token)
    if shape is RPCRequest:
        rpc = client_pb2.RPCRequest.FromString(params)
        return RPCRequest(rpc.method, Raw(rpc.data))
    if shape is SendRequest:
        return SendRequest(Raw(client_pb2.SendRequest.FromString(params).data))
    if shape is EmptyRequest:
        return EmptyRequest()
    raise TypeError(f"{shape.__name__} has no Protobuf form")


def _subscribe_request(message: client_pb2.SubscribeRequest) -> SubscribeRequest:
    since = to_since(message.recover, message.offset, message.seq, message.gen, message.epoch)
    return SubscribeRequest(message.channel, message.token, since)
