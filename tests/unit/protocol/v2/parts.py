"""Parts of the tests of the second generation: both codecs, and people."""

from __future__ import annotations

from google.protobuf.internal.decoder import _DecodeVarint  # type: ignore[attr-defined]

from realtime.protocol.codec import Codec
from realtime.protocol.messages import ClientInfo
from realtime.protocol.v2 import client_pb2
from realtime.protocol.v2.json import JSONCodec
from realtime.protocol.v2.protobuf import ProtobufCodec
from tests.unit.parts import data

JSON = JSONCodec()
PROTOBUF = ProtobufCodec()
CODECS: list[Codec] = [JSON, PROTOBUF]

RAW = b'{ "a" : 1.0 }'
PERSON = ClientInfo("17", "C")
FULL = ClientInfo("17", "C", data(RAW), data('"x"'))
PERSON_TEXT = '{"user":"17","client":"C"}'
FULL_TEXT = '{"user":"17","client":"C","conn_info":{"a":1.0},"chan_info":"x"}'
PB_PERSON = client_pb2.ClientInfo(user="17", client="C")
PB_FULL = client_pb2.ClientInfo(user="17", client="C", conn_info=RAW, chan_info=b'"x"')


def reply_of(message: bytes) -> client_pb2.Reply:
    """Read a framed reply with the length reader of the Protobuf library."""
    length, start = _DecodeVarint(message, 0)
    assert len(message) == start + length
    return client_pb2.Reply.FromString(message[start:])
