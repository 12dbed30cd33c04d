"""Malformed frames of both generations: each gives commands or a bad request, and nothing else.

Frames that clients send are damaged at random, with a fixed seed. For a long run:

    FUZZ_FRAMES=1000000 python -m pytest --timeout 0 tests/unit/protocol/test_fuzz_frames.py
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Mapping

import pytest

from realtime.errors import DisconnectBadRequest
from realtime.protocol import messages
from realtime.protocol.codec import Codec
from realtime.protocol.messages import Command, Method, Request
from realtime.protocol.negotiation import Codecs, generation_of
from realtime.protocol.v2.emulation import EmulationRequest, decode_emulation_request
from tests.damaged_frames import (
    EMULATED_JSON,
    EMULATED_PROTOBUF,
    JSON_PIECES,
    JSON_SEEDS,
    PROTOBUF_PIECES,
    PROTOBUF_SEEDS,
    damaged,
)

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
    seeds = [
        *(
            seed
            for of_one in (PROTOBUF_SEEDS if binary else JSON_SEEDS).values()
            for seed in of_one
        ),
        EMULATED_PROTOBUF if binary else EMULATED_JSON,
    ]
    pieces = PROTOBUF_PIECES if binary else JSON_PIECES
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
