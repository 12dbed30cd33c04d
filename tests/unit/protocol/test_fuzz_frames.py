"""Malformed frames of both generations: each gives commands or a bad request, and nothing else.

Frames that clients send are damaged at random, with a fixed seed. For a long run:

    FUZZ_FRAMES=1000000 python -m pytest --timeout 0 tests/unit/protocol/test_fuzz_frames.py
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping

import pytest
from google.protobuf.message import Message

from realtime.errors import DisconnectBadRequest
from realtime.protocol import messages
from realtime.protocol.codec import Codec
from realtime.protocol.messages import Command, Method, Request
from realtime.protocol.negotiation import Codecs, generation_of
from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v1 import client_pb2 as pb_1
from realtime.protocol.v2 import client_pb2 as pb
from realtime.protocol.v2.emulation import EmulationRequest, decode_emulation_request

FRAMES = int(os.environ.get("FUZZ_FRAMES", "4000"))

CODECS = Codecs(use_offset=True)

REQUESTS: Mapping[Method, type[Request]] = {
    Method.CONNECT: messages.ConnectRequest,
    Method.SUBSCRIBE: messages.SubscribeRequest,
    Method.UNSUBSCRIBE: messages.ChannelRequest,
    Method.PUBLISH: messages.PublishRequest,
    Method.PRESENCE: messages.ChannelRequest,
    Method.PRESENCE_STATS: messages.ChannelRequest,
    Method.HISTORY: messages.HistoryRequest,
    Method.PING: messages.EmptyRequest,
    Method.SEND: messages.SendRequest,
    Method.RPC: messages.RPCRequest,
    Method.REFRESH: messages.RefreshRequest,
    Method.SUB_REFRESH: messages.SubRefreshRequest,
    Method.PONG: messages.EmptyRequest,
}

JSON_SEEDS = [
    b'{"connect":{"token":"t","name":"js","data":{"a":[1,2.5e3,null]},"headers":{"X":"1"},'
    b'"subs":{"a":{"recover":true,"offset":3,"epoch":"E"},"b":null}},"id":1}\n'
    b'{"subscribe":{"channel":"a","flag":1},"id":2}\n{}',
    b'{"id":3,"subscribe":{"channel":"a","delta":"fossil","tf":{"op":"and","nodes":'
    b'[{"key":"k","cmp":"in","vals":["a","b"]},{"op":"not","nodes":[{"key":"x"}]}]}}}',
    b'{"history":{"channel":"a","limit":-1,"since":{"offset":2,"epoch":"E"},"reverse":true},"id":4}'
    b'{"publish":{"channel":"a","data":"\\ud83d\\ude00 \xc3\xa9"},"id":4294967295}{"send":{}}',
    b'{"params":{"token":"t","subs":{"a":{"seq":1,"gen":2,"recover":true}}},"id":1}\n'
    b'{"id":2,"method":3,"params":{"channel":"a","data":{"n":1}}}{"id":3,"method":"PING"}',
    b'{"session":"S","node":"N","data":"{\\"id\\":1,\\"rpc\\":{}}\\n{}"}',
]
JSON_PIECES = [
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"true",
    b"\n",
    b"\\ud800",
    b'"id":',
    b'"rpc":',
    b"[" * 2000,
    b"\xff",
    b'{"nodes":[' * 200,
]

CONNECT = pb.ConnectRequest(
    token="t",
    name="js",
    data=b"[1]",
    headers={"X": "1"},
    subs={"a": pb.SubscribeRequest(recover=True, offset=3, epoch="E")},
)
SUBSCRIBE = pb.SubscribeRequest(
    channel="a",
    delta="fossil",
    flag=1,
    tf=pb.FilterNode(op="and", nodes=[pb.FilterNode(key="k", cmp="in", vals=["a", "b"])]),
)
HISTORY = pb.HistoryRequest(
    channel="a", limit=-1, since=pb.StreamPosition(offset=2, epoch="E"), reverse=True
)
OLD_CONNECT = pb_1.ConnectRequest(
    token="t", subs={"a": pb_1.SubscribeRequest(recover=True, seq=1, gen=2)}
)


def frame_of(*commands: Message) -> bytes:
    return b"".join(frame_message(command.SerializeToString()) for command in commands)


PROTOBUF_SEEDS = [
    frame_of(
        pb.Command(id=1, connect=CONNECT.SerializeToString()),
        pb.Command(id=2, subscribe=SUBSCRIBE.SerializeToString()),
        pb.Command(),
    ),
    frame_of(
        pb.Command(id=4, history=HISTORY.SerializeToString()),
        pb.Command(id=2**32 - 1, publish=b"\x0a\x01a\x12\x011"),
        pb.Command(send=b""),
    ),
    frame_of(
        pb_1.Command(id=1, params=OLD_CONNECT.SerializeToString()),
        pb_1.Command(id=2, method=pb_1.PUBLISH, params=b"\x0a\x01a\x12\x011"),
        pb_1.Command(id=3, method=pb_1.PING),
    ),
    pb.EmulationRequest(node="N", session="S", data=b"\x00").SerializeToString(),
]
PROTOBUF_PIECES = [
    b"\x00",
    b"\xff" * 10,
    b"\x80\x01",
    b"\x0b",
    b"\x0c",
    b"\x22\x00",
    b"\x2a\x7f",
    b"\x11\x00\x00",
    b"\xfa\x01\x02ab",
    b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x32\x02" * 100,
]


def damaged(
    seeds: list[bytes], pieces: list[bytes], count: int, chance: random.Random
) -> Iterator[bytes]:
    """Frames with one to four damages: a piece put in, a part cut out, a byte changed, a splice."""
    for _ in range(count):
        frame = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(frame) + 1)
            match chance.randrange(5):
                case 0:
                    frame[start:start] = chance.choice(pieces)
                case 1:
                    del frame[start : start + chance.randrange(1, 12)]
                case 2:
                    frame[start : start + 1] = chance.randbytes(1)
                case 3:
                    frame[start:] = chance.choice(seeds)[chance.randrange(12) :]
                case 4:
                    end = start + chance.randrange(1, 12)
                    frame[start:end] = frame[start:end] * 2
        yield bytes(frame)


def feed(codec: Codec, frame: bytes) -> int:
    """Decode all that a frame holds; returns how many requests it held."""
    requests = 0
    with contextlib.suppress(DisconnectBadRequest):
        for command in codec.decode(frame):
            assert isinstance(command, Command)
            assert 0 <= command.id < 2**32
            if command.method is None:
                assert codec.generation == 1
                continue
            with contextlib.suppress(DisconnectBadRequest):
                shape = REQUESTS[command.method]
                assert isinstance(codec.params(command, shape), shape)
                requests += 1
    return requests


@pytest.mark.parametrize("binary", [False, True], ids=["json", "protobuf"])
def test_damaged_frames_give_commands_or_a_bad_request(binary: bool) -> None:
    seeds, pieces = (PROTOBUF_SEEDS, PROTOBUF_PIECES) if binary else (JSON_SEEDS, JSON_PIECES)
    codecs = [CODECS.of(generation, binary) for generation in (1, 2)]
    requests = {1: 0, 2: 0}
    recognised = {1: 0, 2: 0}

    for frame in damaged(seeds, pieces, FRAMES, random.Random(15)):
        recognised[generation_of(frame, binary)] += 1
        for codec in codecs:
            requests[codec.generation] += feed(codec, frame)
        with contextlib.suppress(ValueError):
            assert isinstance(decode_emulation_request(frame, binary=binary), EmulationRequest)

    # the damage leaves enough whole for both to be reached
    assert all(requests.values())
    assert all(recognised.values())
