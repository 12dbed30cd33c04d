"""Frames: how a frame is read, the field `method`, replies, sizes.

docs/protocol.md, 2.2 to 2.5, 2.8 and 2.9.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.protocol.v1 import client_pb2
from tests.conftest import connection_token
from tests.live.configurations import (
    BAD_REQUEST,
    MAIN,
    METHOD_NOT_FOUND,
    TOO_BIG,
    Connect,
    Serve,
)
from tests.protocol_client import METHODS, ProtocolClient, command, delimit

SIZE_LIMIT = 65536

# section 2.3, the JSON stream

STREAMS = {
    "line break": '{"id":101,"method":7}\n{"id":102,"method":7}',
    "trailing line break": '{"id":101,"method":7}\n{"id":102,"method":7}\n',
    "nothing": '{"id":101,"method":7}{"id":102,"method":7}',
    "blanks": '{"id":101,"method":7} \t {"id":102,"method":7}',
    "blank lines": '\n\n{"id":101,"method":7}\r\n\r\n{"id":102,"method":7}\n\n',
    "over several lines": '{"id":101,\n"method":7}\n{\n"id":102,"method":\n7}',
}


@pytest.mark.parametrize("frame", STREAMS.values(), ids=STREAMS.keys())
async def test_values_of_a_json_stream_may_be_separated_by(
    serve: Serve, connect: Connect, frame: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(frame)
    assert [await client.reply(), await client.reply()] == [{"id": 101}, {"id": 102}]


@pytest.mark.parametrize("frame", ["\n", " ", "\n\n \t\r\n"], ids=ascii)
async def test_frame_of_white_space_does_nothing(
    serve: Serve, connect: Connect, frame: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(frame)
    await client.send_raw('{"id":101,"method":7}')
    assert await client.reply() == {"id": 101}


async def test_keys_are_matched_without_regard_to_case(
    serve: Serve, connect: Connect, unique: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(f'{{"ID":101,"METHOD":1,"Params":{{"CHANNEL":"{unique}"}}}}')
    assert await client.reply() == {"id": 101, "result": {}}


async def test_unknown_keys_are_ignored(serve: Serve, connect: Connect, unique: str) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(
        f'{{"id":101,"more":[1],"method":1,"params":{{"channel":"{unique}","since":{{}}}}}}'
    )
    assert await client.reply() == {"id": 101, "result": {}}


async def test_unknown_protobuf_fields_are_ignored(
    serve: Serve, connect: Connect, unique: str
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    unknown = bytes([15 << 3 | 2, 3]) + b"abc"
    params = client_pb2.SubscribeRequest(channel=unique).SerializeToString() + unknown
    message = command(id=101, method=1, params=params).SerializeToString() + unknown
    await client.send_raw(bytes([len(message)]) + message)
    assert await client.reply() == {"id": 101, "result": {}}


# section 2.2, opcodes


async def test_json_is_accepted_in_a_binary_frame(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(b'{"id":101,"method":7}')
    assert await client.reply() == {"id": 101}


async def test_protobuf_is_accepted_in_a_text_frame(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    frame = delimit(command(id=101, method=7))
    await client.socket.send(frame, text=True)
    assert (await client.reply())["id"] == 101


# section 2.5, the field `method`


async def outcome(client: ProtocolClient, method: str, spelling: Any, channel: str) -> Any:
    """Send a command with this spelling of the method; return the outcome."""
    params = {"channel": channel, "data": 5, "token": ""}
    if method == "refresh":
        params["token"] = connection_token("17")
    await client.send_raw(json.dumps({"id": 101, "method": spelling, "params": params}))
    await client.send_raw('{"id":102,"method":7}')
    await client.reply(102)
    return [message for message in client.received if message.get("id") in (None, 101)]


SPELLINGS = {
    "number": lambda method: METHODS[method][0],
    "lower": str.lower,
    "upper": str.upper,
    "mixed": lambda method: method.title().swapcase(),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("method", [method for method in METHODS if method != "connect"])
async def test_method_is_a_number_or_a_name_in_any_case(
    serve: Serve, connect: Connect, unique: str, method: str, spelling: Any
) -> None:
    channel = f"recover:{unique}"
    client = await connect(serve(**MAIN), user="17")
    await client.result("subscribe", {"channel": channel})
    client.received.clear()
    info = {"user": "17", "client": client.client}
    expected: dict[str, Any] = {
        "subscribe": {"error": {"code": 105, "message": "already subscribed"}},
        "unsubscribe": {"result": {}},
        "publish": {"result": {}},
        "presence": {"result": {"presence": {client.client: info}}},
        "presence_stats": {"result": {"num_clients": 1, "num_users": 1}},
        "history": {"result": {"publications": []}},
        "ping": {},
        "rpc": {"error": {"code": 108, "message": "not available"}},
        "sub_refresh": {"error": {"code": 107, "message": "bad request"}},
    }

    messages = await outcome(client, method, spelling(method), channel)

    if method == "send":
        assert messages == []
    elif method == "refresh":
        [reply] = messages
        assert reply["result"]["client"] == client.client
    elif method == "publish":
        push = {"channel": channel, "data": {"seq": 1, "data": 5, "info": info}}
        assert messages == [{"result": push}, {"id": 101, "result": {}}]
    else:
        assert messages == [{"id": 101} | expected[method]]


@pytest.mark.parametrize(
    "method", ["", '"method":0,', '"method":"connect",', '"method":"CONNECT",']
)
async def test_connect_is_method_0_and_what_an_absent_method_means(
    serve: Serve, connect: Connect, method: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    token = connection_token("17")
    await client.send_raw(f'{{{method}"params":{{"token":"{token}"}},"id":1}}')
    assert set((await client.reply(1))["result"]) == {"client", "version"}


@pytest.mark.parametrize("method", [12, 77, -1, 2**31 - 1])
async def test_method_number_outside_the_table_is_error_104(
    serve: Serve, connect: Connect, method: int
) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(f'{{"id":5,"method":{method}}}')
    assert await client.reply() == {"id": 5, "error": METHOD_NOT_FOUND}


@pytest.mark.parametrize("method", [12, 77, -1])
async def test_method_number_outside_the_protobuf_enumeration_is_error_104(
    serve: Serve, connect: Connect, method: int
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    await client.send_raw(delimit(command(id=5, method=method)))
    assert await client.reply() == {"id": 5, "error": METHOD_NOT_FOUND}


# several commands and replies


async def test_commands_of_one_frame_are_answered_in_order_and_together(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frames = len(client.frames)

    ids = await client.send_together(
        ("subscribe", {"channel": unique}),
        ("ping", None),
        ("presence", {"channel": unique}),
        ("unsubscribe", {"channel": unique}),
        ("ping", None),
    )

    assert [(await client.reply())["id"] for _ in ids] == ids
    assert len(client.frames) - frames < len(ids)


async def test_commands_of_many_frames_are_answered_in_order(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    ids = []
    for number in range(50):
        ids.append(await client.send("subscribe", {"channel": f"{unique}{number}"}))
        ids.append(await client.send("ping"))
    assert [(await client.reply())["id"] for _ in ids] == ids


@pytest.mark.parametrize("separator", ["\n", ""], ids=["lines", "nothing"])
async def test_json_commands_before_a_broken_one_are_answered_before_the_close(
    serve: Serve, connect: Connect, unique: str, separator: str
) -> None:
    client = await connect(serve(**MAIN))
    good = [
        f'{{"id":101,"method":1,"params":{{"channel":"{unique}"}}}}',
        '{"id":102,"method":7}',
    ]

    await client.send_raw(separator.join([*good, '{"id":', '{"id":103,"method":7}']))

    assert [await client.reply(), await client.reply()] == [
        {"id": 101, "result": {}},
        {"id": 102},
    ]
    assert await client.closed() == BAD_REQUEST
    assert 103 not in [message["id"] for message in client.received]


async def test_protobuf_commands_before_a_broken_one_are_answered_before_the_close(
    serve: Serve, connect: Connect
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    good = delimit(command(id=101, method=7)) + delimit(command(id=102, method=7))
    await client.send_raw(good + b"\x20abc")
    assert [(await client.reply())["id"], (await client.reply())["id"]] == [101, 102]
    assert await client.closed() == BAD_REQUEST


async def test_connect_and_subscribe_may_come_in_one_frame(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    first, second = await client.send_together(
        ("connect", {"token": connection_token("17")}), ("subscribe", {"channel": unique})
    )
    assert "client" in (await client.reply(first))["result"]
    assert await client.reply(second) == {"id": second, "result": {}}


# section 2.9, sizes


def frame_of_size(client: ProtocolClient, size: int) -> str | bytes:
    """Build a frame of exactly `size` bytes that holds one `send`."""
    padding = size - len(client.encode(1, "send", {"data": ""}))
    frame = client.encode(1, "send", {"data": "x" * padding})
    return client.encode(1, "send", {"data": "x" * (padding - (len(frame) - size))})


async def test_frame_of_65536_bytes_is_accepted(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frame = frame_of_size(client, SIZE_LIMIT)
    assert len(frame) == SIZE_LIMIT
    await client.send_raw(frame)
    await client.result("ping")


async def test_frame_of_65537_bytes_is_closed_with_1009_and_no_reason(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frame = frame_of_size(client, SIZE_LIMIT + 1)
    assert len(frame) == SIZE_LIMIT + 1
    await client.send_raw(frame)
    assert await client.closed() == TOO_BIG


async def test_command_in_several_fragments_is_one_frame(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frame = client.encode(101, "ping", None)
    await client.socket.send([frame[:3], frame[3:5], frame[5:]])
    assert (await client.reply())["id"] == 101


async def test_fragments_count_together_towards_the_size_limit(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frame = frame_of_size(client, SIZE_LIMIT + 1)
    await client.socket.send([frame[:40000], frame[40000:]])
    assert await client.closed() == TOO_BIG
