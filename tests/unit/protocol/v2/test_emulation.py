"""Requests to `/emulation`: a frame, and the session it belongs to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol.v2 import client_pb2
from realtime.protocol.v2.emulation import EmulationRequest, decode_emulation_request
from tests.unit.parts import quickly


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            rb'{"session":"S","node":"N","data":"{\"id\":1,\"rpc\":{}}\n{}"}',
            EmulationRequest("N", "S", b'{"id":1,"rpc":{}}\n{}'),
        ),
        (
            rb' {"Session":"S", "NODE":"N", "data":"{}", "new":1} ',
            EmulationRequest("N", "S", b"{}"),
        ),
        (rb'{"data":"\"\\ud83d\""}', EmulationRequest("", "", rb'"\ud83d"')),
        (rb'{"data":"\ud83d"}', EmulationRequest("", "", "\ufffd".encode())),
        (b'{"session":null,"node":null,"data":""}', EmulationRequest("", "", b"")),
        (b'{"session":"S","node":"N"}', EmulationRequest("N", "S", None)),
        (b'{"session":"S","node":"N","data":null}', EmulationRequest("N", "S", None)),
        (b'{"session":"S","node":"N","data":{"id":1}}', EmulationRequest("N", "S", None)),
        (b'{"session":"S","node":"N","data":5}', EmulationRequest("N", "S", None)),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_frame_in_json_is_a_string(body: bytes, expected: EmulationRequest) -> None:
    assert decode_emulation_request(body, binary=False) == expected


def test_frame_in_protobuf_is_bytes() -> None:
    message = client_pb2.EmulationRequest(node="N", session="S", data=b"\x00")
    read = decode_emulation_request(message.SerializeToString(), binary=True)
    assert read == EmulationRequest("N", "S", b"\x00")
    assert message.SerializeToString() == bytes.fromhex("0a014e 120153 1a0100")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"null",
        b"[]",
        b'{"session":5}',
        b'{"node":5,"data":""}',
        b'{"data":"}',
        b"{}{}",
    ],
)
def test_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not the expected object"):
        decode_emulation_request(body, binary=False)


@pytest.mark.parametrize("body", [b"\x0a\x05N", b"\xff", b"\x0a\x01\xff"])
def test_body_that_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text is that of the Protobuf library
        decode_emulation_request(body, binary=True)


@quickly
@given(st.text(), st.text(), st.text())
def test_frame_survives_the_way_through_a_request(node: str, session: str, frame: str) -> None:
    body = json.dumps({"node": node, "session": session, "data": frame}).encode()
    read = decode_emulation_request(body, binary=False)
    assert read == EmulationRequest(node, session, frame.encode())
