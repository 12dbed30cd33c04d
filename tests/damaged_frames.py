"""Frames of both generations, damaged at random: input for long runs against the protocol."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from google.protobuf.message import Message

from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v1 import client_pb2 as pb_1
from realtime.protocol.v2 import client_pb2 as pb

JSON_SEEDS: Mapping[int, list[bytes]] = {
    1: [
        b'{"params":{"token":"t","subs":{"a":{"seq":1,"gen":2,"recover":true}}},"id":1}\n'
        b'{"id":2,"method":3,"params":{"channel":"a","data":{"n":1}}}{"id":3,"method":"PING"}',
        b'{"id":4,"method":1,"params":{"channel":"a","recover":true,"offset":3,"epoch":"E"}}\n'
        b'{"id":5,"method":4,"params":{"channel":"a"}}{"id":6,"method":6,"params":{"channel":"a"}}',
        b'{"id":7,"method":"publish","params":{"channel":"a","data":"\\ud83d\\ude00 \xc3\xa9"}}',
        b'{"id":8,"method":9,"params":{"method":"m","data":[1,2.5e3,null]}}{"method":8}',
        b'{"id":9,"method":10,"params":{"token":"t"}}',
        b'{"id":10,"method":11,"params":{"channel":"a","token":"t"}}\n'
        b'{"id":11,"method":2,"params":{"channel":"a"}}',
    ],
    2: [
        b'{"connect":{"token":"t","name":"js","data":{"a":[1,2.5e3,null]},"headers":{"X":"1"},'
        b'"subs":{"a":{"recover":true,"offset":3,"epoch":"E"},"b":null}},"id":1}\n'
        b'{"subscribe":{"channel":"a","flag":1},"id":2}\n{}',
        b'{"id":3,"subscribe":{"channel":"a","delta":"fossil","tf":{"op":"and","nodes":'
        b'[{"key":"k","cmp":"in","vals":["a","b"]},{"op":"not","nodes":[{"key":"x"}]}]}}}',
        b'{"history":{"channel":"a","limit":-1,"since":{"offset":2,"epoch":"E"},"reverse":true},'
        b'"id":4}{"publish":{"channel":"a","data":"\\ud83d\\ude00 \xc3\xa9"},"id":4294967295}'
        b'{"send":{}}',
        b'{"id":5,"presence":{"channel":"a"}}\n{"id":6,"presence_stats":{"channel":"a"}}\n'
        b'{"id":7,"unsubscribe":{"channel":"a"}}',
        b'{"id":8,"rpc":{"method":"m","data":{}}}',
        b'{"id":9,"refresh":{"token":"t"}}',
        b'{"id":10,"sub_refresh":{"channel":"a","token":"t"}}',
    ],
}
EMULATED_JSON = b'{"session":"S","node":"N","data":"{\\"id\\":1,\\"rpc\\":{}}\\n{}"}'
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
OLD_SUBSCRIBE = pb_1.SubscribeRequest(channel="a", recover=True, offset=3, epoch="E")


def frame_of(*commands: Message) -> bytes:
    return b"".join(frame_message(command.SerializeToString()) for command in commands)


PROTOBUF_SEEDS: Mapping[int, list[bytes]] = {
    1: [
        frame_of(
            pb_1.Command(id=1, params=OLD_CONNECT.SerializeToString()),
            pb_1.Command(id=2, method=pb_1.PUBLISH, params=b"\x0a\x01a\x12\x011"),
            pb_1.Command(id=3, method=pb_1.PING),
        ),
        frame_of(
            pb_1.Command(id=4, method=pb_1.SUBSCRIBE, params=OLD_SUBSCRIBE.SerializeToString()),
            pb_1.Command(id=5, method=pb_1.PRESENCE, params=b"\x0a\x01a"),
            pb_1.Command(id=6, method=pb_1.HISTORY, params=b"\x0a\x01a"),
            pb_1.Command(id=7, method=pb_1.UNSUBSCRIBE, params=b"\x0a\x01a"),
        ),
        frame_of(
            pb_1.Command(id=8, method=pb_1.RPC, params=b"\x0a\x02[]\x12\x01m"),
            pb_1.Command(method=pb_1.SEND),
        ),
        frame_of(pb_1.Command(id=9, method=pb_1.REFRESH, params=b"\x0a\x01t")),
        frame_of(pb_1.Command(id=10, method=pb_1.SUB_REFRESH, params=b"\x0a\x01a\x12\x01t")),
    ],
    2: [
        frame_of(
            pb.Command(id=1, connect=CONNECT.SerializeToString()),
            pb.Command(id=2, subscribe=SUBSCRIBE.SerializeToString()),
            pb.Command(),
        ),
        frame_of(
            pb.Command(id=3, subscribe=SUBSCRIBE.SerializeToString()),
            pb.Command(id=4, history=HISTORY.SerializeToString()),
            pb.Command(id=2**32 - 1, publish=b"\x0a\x01a\x12\x011"),
            pb.Command(send=b""),
        ),
        frame_of(
            pb.Command(id=5, presence=b"\x0a\x01a"),
            pb.Command(id=6, presence_stats=b"\x0a\x01a"),
            pb.Command(id=7, unsubscribe=b"\x0a\x01a"),
            pb.Command(id=8, rpc=b"\x0a\x02{}\x12\x01m"),
        ),
        frame_of(pb.Command(id=9, refresh=b"\x0a\x01t")),
        frame_of(pb.Command(id=10, sub_refresh=b"\x0a\x01a\x12\x01t")),
    ],
}
EMULATED_PROTOBUF = pb.EmulationRequest(node="N", session="S", data=b"\x00").SerializeToString()
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
