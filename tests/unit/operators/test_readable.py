"""Frames as text for operators: no secrets, bounded, and nothing that cannot be read."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from realtime.operators.readable import MAX_BYTES, MAX_LENGTH, readable, readable_data
from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v2 import client_pb2

SECRET = "s3cr3t"
JSON = JSONCodec(use_offset=True)


class Protobuf:
    """What `readable` looks at of a codec."""

    format = "protobuf"

    def __init__(self, generation: int) -> None:
        self.generation = generation


def show(frame: bytes, *, masked: bool = False) -> str:
    return readable(JSON, frame, from_client=True, masked=masked)


@pytest.mark.parametrize(
    "value",
    [
        {"params": {"token": SECRET}},
        {"connect": {"token": SECRET, "headers": {"Authorization": SECRET, "cookie": SECRET}}},
        {"subs": {"a": {"Token": SECRET}}},
        {"result": {"session": SECRET}},
        {"rpc": {"data": [{"user": {"PASSWORD": SECRET, "newPassword2": SECRET}}]}},
        {"data": {"api_key": SECRET, "apiKey": SECRET, "access-token": {"value": SECRET}}},
        {"data": {"client_secret": [SECRET], "csrfmiddlewaretoken": SECRET, "jwt": SECRET}},
        {"data": {"pwd": SECRET, "accessKey": SECRET, "private_key": SECRET, "bearer": SECRET}},
        {"connect": {"headers": {"X-Of-The-Site": SECRET}}},
        {"data": json.dumps({"token": SECRET})},
        {"data": [" " + json.dumps({"in": json.dumps([{"password": SECRET}])})]},
        {"data": f"go to /?login=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{SECRET}#top"},
        {"data": f"eyJhbGciOiJkaXIifQ.eyJzdWIiOiIxIn0.{SECRET}"},
    ],
)
def test_secrets_are_not_shown(value: object) -> None:
    shown = show(json.dumps(value).encode())
    assert SECRET not in shown
    assert "***" in shown


@pytest.mark.parametrize("text", ["{hello", "[1, 2", "eyJ.eyJ.", "the author"])
def test_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert json.loads(show(json.dumps({"data": text}).encode())) == {"data": text}


def test_bytes_that_are_no_json_are_not_shown() -> None:
    encoded = base64.b64encode(b'{"token":"s3cr3t"} and more').decode()
    push = client_pb2.Push(channel="chat")
    push.pub.data = base64.b64decode(encoded)
    frame = frame_message(client_pb2.Reply(push=push).SerializeToString())

    as_json = show(json.dumps({"push": {"pub": {"b64data": encoded}}}).encode())
    as_protobuf = readable(
        Protobuf(2),  # type: ignore[arg-type]
        frame,
        from_client=False,
        masked=False,
    )

    assert json.loads(as_json) == {
        "push": {"pub": {"b64data": f"({len(encoded)} characters of base64)"}}
    }
    assert json.loads(as_protobuf) == {"push": {"channel": "chat", "pub": {"data": "(27 bytes)"}}}


def test_payloads_are_not_shown_if_they_are_masked() -> None:
    values: list[dict[str, Any]] = [
        {"id": 1, "params": {"channel": "chat", "data": {"text": SECRET}}},
        {"result": {"channel": "chat", "data": {"data": SECRET, "info": {"user": SECRET}}}},
        {"push": {"channel": "chat", "join": {"info": {"conn_info": {"name": SECRET}}}}},
        {"push": {"channel": "chat", "pub": {"tags": {"name": SECRET}}}},
    ]
    frame = "\n".join(map(json.dumps, values)).encode()
    shown = show(frame, masked=True)
    assert SECRET not in shown
    assert shown.count("chat") == 4
    assert '{"id":1,"params":{"channel":"chat","data":"(17 bytes)"}}' in shown


@pytest.mark.parametrize(
    "frame",
    [
        b'{"token":"s3cr3t"',
        b"s3cr3t",
        b'{"id":1} s3cr3t',
        b"\xff\xfes3cr3t",
        b"[" * 50_000,
        b'{"data":"' + b"x" * MAX_BYTES + b'"}',
        b'{"n":' + b"9" * 5000 + b"}",
    ],
    ids=["cut", "text", "rest", "bytes", "deep", "large", "number"],
)
def test_of_what_cannot_be_read_only_the_size_is_shown(frame: bytes) -> None:
    assert show(frame) == f"({len(frame)} bytes)"
    assert readable_data(frame, masked=False) == f"({len(frame)} bytes)"


def test_long_text_is_cut() -> None:
    shown = show(json.dumps({"data": "x" * (MAX_LENGTH + 1)}).encode())
    assert (len(shown), shown[-1]) == (MAX_LENGTH, "…")


def test_half_a_surrogate_pair_is_shown_as_something_that_can_be_sent() -> None:
    assert show(b'{"data":"\\ud83d"}') == '{"data":"?"}'


def test_protobuf_of_the_second_generation_is_shown_as_json() -> None:
    request = client_pb2.ConnectRequest(token=SECRET, data=b'{"a":1}')
    request.subs["chat"].recover = True
    command = client_pb2.Command(id=7, connect=request.SerializeToString())
    reply = client_pb2.Reply(push=client_pb2.Push(channel="chat"))
    reply.push.pub.data = b"\xff"

    sent = readable(
        Protobuf(2),  # type: ignore[arg-type]
        frame_message(command.SerializeToString()),
        from_client=True,
        masked=False,
    )
    received = readable(
        Protobuf(2),  # type: ignore[arg-type]
        frame_message(reply.SerializeToString()),
        from_client=False,
        masked=False,
    )

    assert json.loads(sent) == {
        "id": 7,
        "connect": {"token": "***", "data": {"a": 1}, "subs": {"chat": {"recover": True}}},
    }
    assert json.loads(received) == {"push": {"channel": "chat", "pub": {"data": "(1 bytes)"}}}


@pytest.mark.parametrize("generation", [1, 2])
def test_protobuf_that_is_not_understood_is_not_shown(generation: int) -> None:
    frame = frame_message(b"\xff\xff" + SECRET.encode())
    shown = readable(
        Protobuf(generation),  # type: ignore[arg-type]
        frame,
        from_client=True,
        masked=False,
    )
    assert SECRET not in shown
    assert "bytes" in shown
