"""Frames: how a frame is read, the field `method`, replies, sizes.

docs/protocol.md, 2.2 to 2.5, 2.8 and 2.9.
"""

from __future__ import annotations

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
from tests.protocol_client import ProtocolClient, command, delimit

SIZE_LIMIT = 65536


async def test_json_is_a_stream_of_values(serve: Serve, connect: Connect, unique: str) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw('\n\n{"id":101,"method":7}\r\n{"id":102,"method":"PING"}\n\n \t')
    await client.send_raw(" ")
    subscribe = f'{{"ID":103,"METHOD":1,"Params":{{"CHANNEL":"{unique}","since":{{}}}},"more":[1]}}'
    await client.send_raw(f'{subscribe}{{"id":104,\n"method":77}}'.encode())
    await client.send_raw('{"method":8,"params":5}{"id":104,"method":7,"params":null}')
    assert [await client.reply() for _ in range(5)] == [
        {"id": 101},
        {"id": 102},
        {"id": 103, "result": {}},
        {"id": 104, "error": METHOD_NOT_FOUND},
        {"id": 104},
    ]


async def test_protobuf_has_fields_and_methods_of_newer_clients(
    serve: Serve, connect: Connect, unique: str
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    unknown = bytes([15 << 3 | 2, 3]) + b"abc"
    params = client_pb2.SubscribeRequest(channel=unique).SerializeToString() + unknown
    message = command(id=101, method=1, params=params).SerializeToString() + unknown
    await client.send_raw(bytes([len(message)]) + message)
    await client.send_raw(delimit(command(id=102, method=-1)))
    await client.socket.send(delimit(command(id=103, method=7)), text=True)
    assert await client.reply() == {"id": 101, "result": {}}
    assert await client.reply() == {"id": 102, "error": METHOD_NOT_FOUND}
    assert (await client.reply())["id"] == 103


@pytest.mark.parametrize(
    ("is_connected", "format_name", "frame"),
    [
        *((True, "json", frame) for frame in ("", "hello", '{"method":7}', '{"id":5,"method":0}')),
        (True, "json", '{"id":5,"method":1,"params":' + '{"a":' * 10000 + "1" + "}" * 10001),
        *((True, "protobuf", frame) for frame in (b"", b"hello", b"\x80\x80\x80\x80\x04abc")),
        (True, "protobuf", delimit(command(method=7))),
        *((False, "json", f'{{"id":1,"method":{method}}}') for method in (1, 7, 8, 77)),
        (False, "json", '{"method":0,"params":{}}'),
        (False, "protobuf", delimit(command(id=1, method=7))),
    ],
    ids=repr,
)
async def test_frame_is_a_bad_request(
    serve: Serve, connect: Connect, is_connected: bool, format_name: str, frame: str | bytes
) -> None:
    """All that codecs refuse is in `tests/unit/protocol`."""
    client = await connect(serve(**MAIN), connected=is_connected, format_name=format_name)
    await client.send_raw(frame)
    assert await client.closed() == BAD_REQUEST


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


@pytest.mark.parametrize("format_name", ["json", "protobuf"])
async def test_commands_before_a_broken_one_are_answered_before_the_close(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    frames: dict[str, str | bytes] = {
        "json": '{"id":101,"method":7}{"id":102,"method":7}{"id":{"id":103,"method":7}',
        "protobuf": b"".join(delimit(command(id=n, method=7)) for n in (101, 102)) + b"\x20abc",
    }
    client = await connect(serve(**MAIN), format_name=format_name)
    await client.send_raw(frames[format_name])
    assert [(await client.reply())["id"], (await client.reply())["id"]] == [101, 102]
    assert await client.closed() == BAD_REQUEST
    assert 103 not in [message["id"] for message in client.received]


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


async def test_frame_may_have_65536_bytes_in_any_number_of_fragments(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    frame, large = (frame_of_size(client, SIZE_LIMIT + more) for more in (0, 1))
    assert (len(frame), len(large)) == (SIZE_LIMIT, SIZE_LIMIT + 1)
    await client.send_raw(frame)
    ping = client.encode(101, "ping", None)
    await client.socket.send([ping[:3], ping[3:5], ping[5:]])
    assert (await client.reply())["id"] == 101
    await client.socket.send([large[:40000], large[40000:]])
    assert await client.closed() == TOO_BIG
    client = await connect(serve(**MAIN))
    await client.send_raw(large)
    assert await client.closed() == TOO_BIG
