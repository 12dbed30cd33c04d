from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MethodType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONNECT: _ClassVar[MethodType]
    SUBSCRIBE: _ClassVar[MethodType]
    UNSUBSCRIBE: _ClassVar[MethodType]
    PUBLISH: _ClassVar[MethodType]
    PRESENCE: _ClassVar[MethodType]
    PRESENCE_STATS: _ClassVar[MethodType]
    HISTORY: _ClassVar[MethodType]
    PING: _ClassVar[MethodType]
    SEND: _ClassVar[MethodType]
    RPC: _ClassVar[MethodType]
    REFRESH: _ClassVar[MethodType]
    SUB_REFRESH: _ClassVar[MethodType]

class PushType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUBLICATION: _ClassVar[PushType]
    JOIN: _ClassVar[PushType]
    LEAVE: _ClassVar[PushType]
    UNSUB: _ClassVar[PushType]
    MESSAGE: _ClassVar[PushType]
    SUB: _ClassVar[PushType]
CONNECT: MethodType
SUBSCRIBE: MethodType
UNSUBSCRIBE: MethodType
PUBLISH: MethodType
PRESENCE: MethodType
PRESENCE_STATS: MethodType
HISTORY: MethodType
PING: MethodType
SEND: MethodType
RPC: MethodType
REFRESH: MethodType
SUB_REFRESH: MethodType
PUBLICATION: PushType
JOIN: PushType
LEAVE: PushType
UNSUB: PushType
MESSAGE: PushType
SUB: PushType

class Error(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("id", "method", "params")
    ID_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    id: int
    method: MethodType
    params: bytes
    def __init__(self, id: _Optional[int] = ..., method: _Optional[_Union[MethodType, str]] = ..., params: _Optional[bytes] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "error", "result")
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    id: int
    error: Error
    result: bytes
    def __init__(self, id: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., result: _Optional[bytes] = ...) -> None: ...

class Push(_message.Message):
    __slots__ = ("type", "channel", "data")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    type: PushType
    channel: str
    data: bytes
    def __init__(self, type: _Optional[_Union[PushType, str]] = ..., channel: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class ClientInfo(_message.Message):
    __slots__ = ("user", "client", "conn_info", "chan_info")
    USER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    CONN_INFO_FIELD_NUMBER: _ClassVar[int]
    CHAN_INFO_FIELD_NUMBER: _ClassVar[int]
    user: str
    client: str
    conn_info: bytes
    chan_info: bytes
    def __init__(self, user: _Optional[str] = ..., client: _Optional[str] = ..., conn_info: _Optional[bytes] = ..., chan_info: _Optional[bytes] = ...) -> None: ...

class Publication(_message.Message):
    __slots__ = ("seq", "gen", "uid", "data", "info", "offset")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    GEN_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    seq: int
    gen: int
    uid: str
    data: bytes
    info: ClientInfo
    offset: int
    def __init__(self, seq: _Optional[int] = ..., gen: _Optional[int] = ..., uid: _Optional[str] = ..., data: _Optional[bytes] = ..., info: _Optional[_Union[ClientInfo, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("info",)
    INFO_FIELD_NUMBER: _ClassVar[int]
    info: ClientInfo
    def __init__(self, info: _Optional[_Union[ClientInfo, _Mapping]] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ("info",)
    INFO_FIELD_NUMBER: _ClassVar[int]
    info: ClientInfo
    def __init__(self, info: _Optional[_Union[ClientInfo, _Mapping]] = ...) -> None: ...

class Unsub(_message.Message):
    __slots__ = ("resubscribe",)
    RESUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    resubscribe: bool
    def __init__(self, resubscribe: bool = ...) -> None: ...

class Sub(_message.Message):
    __slots__ = ("recoverable", "seq", "gen", "epoch", "offset")
    RECOVERABLE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    GEN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    recoverable: bool
    seq: int
    gen: int
    epoch: str
    offset: int
    def __init__(self, recoverable: bool = ..., seq: _Optional[int] = ..., gen: _Optional[int] = ..., epoch: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ConnectRequest(_message.Message):
    __slots__ = ("token", "data", "subs", "name", "version")
    class SubsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: SubscribeRequest
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[SubscribeRequest, _Mapping]] = ...) -> None: ...
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUBS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    token: str
    data: bytes
    subs: _containers.MessageMap[str, SubscribeRequest]
    name: str
    version: str
    def __init__(self, token: _Optional[str] = ..., data: _Optional[bytes] = ..., subs: _Optional[_Mapping[str, SubscribeRequest]] = ..., name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class ConnectResult(_message.Message):
    __slots__ = ("client", "version", "expires", "ttl", "data", "subs")
    class SubsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: SubscribeResult
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[SubscribeResult, _Mapping]] = ...) -> None: ...
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUBS_FIELD_NUMBER: _ClassVar[int]
    client: str
    version: str
    expires: bool
    ttl: int
    data: bytes
    subs: _containers.MessageMap[str, SubscribeResult]
    def __init__(self, client: _Optional[str] = ..., version: _Optional[str] = ..., expires: bool = ..., ttl: _Optional[int] = ..., data: _Optional[bytes] = ..., subs: _Optional[_Mapping[str, SubscribeResult]] = ...) -> None: ...

class RefreshRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class RefreshResult(_message.Message):
    __slots__ = ("client", "version", "expires", "ttl")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    client: str
    version: str
    expires: bool
    ttl: int
    def __init__(self, client: _Optional[str] = ..., version: _Optional[str] = ..., expires: bool = ..., ttl: _Optional[int] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("channel", "token", "recover", "seq", "gen", "epoch", "offset")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    RECOVER_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    GEN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    channel: str
    token: str
    recover: bool
    seq: int
    gen: int
    epoch: str
    offset: int
    def __init__(self, channel: _Optional[str] = ..., token: _Optional[str] = ..., recover: bool = ..., seq: _Optional[int] = ..., gen: _Optional[int] = ..., epoch: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class SubscribeResult(_message.Message):
    __slots__ = ("expires", "ttl", "recoverable", "seq", "gen", "epoch", "publications", "recovered", "offset")
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    RECOVERABLE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    GEN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PUBLICATIONS_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    expires: bool
    ttl: int
    recoverable: bool
    seq: int
    gen: int
    epoch: str
    publications: _containers.RepeatedCompositeFieldContainer[Publication]
    recovered: bool
    offset: int
    def __init__(self, expires: bool = ..., ttl: _Optional[int] = ..., recoverable: bool = ..., seq: _Optional[int] = ..., gen: _Optional[int] = ..., epoch: _Optional[str] = ..., publications: _Optional[_Iterable[_Union[Publication, _Mapping]]] = ..., recovered: bool = ..., offset: _Optional[int] = ...) -> None: ...

class SubRefreshRequest(_message.Message):
    __slots__ = ("channel", "token")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    channel: str
    token: str
    def __init__(self, channel: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class SubRefreshResult(_message.Message):
    __slots__ = ("expires", "ttl")
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    expires: bool
    ttl: int
    def __init__(self, expires: bool = ..., ttl: _Optional[int] = ...) -> None: ...

class UnsubscribeRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class UnsubscribeResult(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("channel", "data")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    channel: str
    data: bytes
    def __init__(self, channel: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class PublishResult(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PresenceRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class PresenceResult(_message.Message):
    __slots__ = ("presence",)
    class PresenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ClientInfo
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ClientInfo, _Mapping]] = ...) -> None: ...
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    presence: _containers.MessageMap[str, ClientInfo]
    def __init__(self, presence: _Optional[_Mapping[str, ClientInfo]] = ...) -> None: ...

class PresenceStatsRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class PresenceStatsResult(_message.Message):
    __slots__ = ("num_clients", "num_users")
    NUM_CLIENTS_FIELD_NUMBER: _ClassVar[int]
    NUM_USERS_FIELD_NUMBER: _ClassVar[int]
    num_clients: int
    num_users: int
    def __init__(self, num_clients: _Optional[int] = ..., num_users: _Optional[int] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class HistoryResult(_message.Message):
    __slots__ = ("publications",)
    PUBLICATIONS_FIELD_NUMBER: _ClassVar[int]
    publications: _containers.RepeatedCompositeFieldContainer[Publication]
    def __init__(self, publications: _Optional[_Iterable[_Union[Publication, _Mapping]]] = ...) -> None: ...

class PingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PingResult(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RPCRequest(_message.Message):
    __slots__ = ("data", "method")
    DATA_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    method: str
    def __init__(self, data: _Optional[bytes] = ..., method: _Optional[str] = ...) -> None: ...

class RPCResult(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class SendRequest(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
