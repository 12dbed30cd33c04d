"""Malformed frames and illegal commands: each has its documented outcome.

docs/protocol.md, 2.6 and 2.7.
"""

from __future__ import annotations

import pytest

from tests.conftest import connection_token
from tests.live.configurations import BAD_REQUEST, INSECURE, MAIN, Connect, Serve
from tests.protocol_client import METHODS, command, delimit

# section 2.7, malformed input on a connected connection

MALFORMED = [
    "",
    "{}",
    "null",
    "5",
    '"x"',
    "[]",
    '[{"id":5,"method":7}]',
    "hello",
    "{",
    '{"id":5,"method":7}}',
    '{"id":5,"method":7',
    '{"id":5,"method":"nope"}',
    '{"id":5,"method":""}',
    '{"id":5,"method":"7"}',
    '{"id":5,"method":null}',
    '{"id":5,"method":true}',
    '{"id":5,"method":7.0}',
    '{"method":7}',
    '{"id":0,"method":7}',
    '{"id":"5","method":7}',
    '{"id":-5,"method":7}',
    '{"id":5.5,"method":7}',
    '{"id":4294967296,"method":7}',
    '{"id":5,"method":7,"params":"x"}',
    '{"id":5,"method":7,"params":5}',
    '{"id":5,"method":7,"params":[]}',
    '{"id":5,"method":1,"params":{"channel":5}}',
    '{"id":5,"method":1,"params":{"channel":"a","recover":1}}',
    '{"id":5,"method":1,"params":{"channel":"a","seq":-1}}',
    '{"id":5,"method":1,"params":{"channel":"a","seq":4294967296}}',
    '{"id":5,"method":1,"params":{"channel":"a","offset":18446744073709551616}}',
    '{"id":5,"method":1,"params":[]}',
    '{"id":5,"method":0,"params":{"token":"x"}}',
    "[" * 20000,
    '{"id":5,"method":1,"params":' + '{"a":' * 10000 + "1" + "}" * 10001,
]


def short(frame: str) -> str:
    return frame[:60] or "zero-length"


@pytest.mark.parametrize("frame", MALFORMED, ids=short)
async def test_malformed_json_is_a_bad_request(serve: Serve, connect: Connect, frame: str) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(frame)
    assert await client.closed() == BAD_REQUEST


MALFORMED_PROTOBUF = {
    "zero-length frame": b"",
    "zero-length message": b"\x00",
    "length beyond the frame": b"\x10\x08\x05\x10\x07",
    "length that does not end": b"\xff" * 11,
    "length of a gigabyte": b"\x80\x80\x80\x80\x04abc",
    "text": b"hello",
    "truncated field": b"\x02\x08\x80",
    "wrong wire type": b"\x04\x0a\x01\x05\x10",
    "no id": delimit(command(method=7)),
    "undecodable params": delimit(command(id=5, method=1, params=b"\xff\xff")),
    "string that is not UTF-8": delimit(command(id=5, method=1, params=b"\x0a\x01\xff")),
    "second connect": delimit(command(id=5, method=0)),
}


@pytest.mark.parametrize("frame", MALFORMED_PROTOBUF.values(), ids=MALFORMED_PROTOBUF.keys())
async def test_malformed_protobuf_is_a_bad_request(
    serve: Serve, connect: Connect, frame: bytes
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    await client.send_raw(frame)
    assert await client.closed() == BAD_REQUEST


async def test_null_params_of_ping_are_accepted(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw('{"id":5,"method":7,"params":null}')
    assert await client.reply() == {"id": 5}


@pytest.mark.parametrize(
    "frame", ['{"method":8,"params":5}', '{"method":8}', '{"id":5,"method":8,"params":null}']
)
async def test_send_is_silently_ignored(serve: Serve, connect: Connect, frame: str) -> None:
    client = await connect(serve(**MAIN))
    client.received.clear()
    await client.send_raw(frame)
    await client.send_raw('{"id":102,"method":7}')
    await client.reply(102)
    assert client.received == [{"id": 102}]


# section 2.6, command level rules in order


@pytest.mark.parametrize("method", [method for method in METHODS if method != "connect"])
async def test_every_method_but_connect_before_connect_is_a_bad_request(
    serve: Serve, connect: Connect, unique: str, format_name: str, method: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    params = {"channel": unique, "data": 1, "token": connection_token("17")}
    accepted = {field.name for field in METHODS[method][1].DESCRIPTOR.fields}
    await client.send(method, {name: value for name, value in params.items() if name in accepted})
    assert await client.closed() == BAD_REQUEST


async def test_unknown_method_before_connect_is_a_bad_request(
    serve: Serve, connect: Connect
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    await client.send_raw('{"id":1,"method":77}')
    assert await client.closed() == BAD_REQUEST


async def test_unknown_method_without_id_is_a_bad_request(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw('{"method":77}')
    assert await client.closed() == BAD_REQUEST


@pytest.mark.parametrize("command_id", ["", '"id":0,'])
async def test_connect_without_id_is_a_bad_request(
    serve: Serve, connect: Connect, command_id: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    token = connection_token("17")
    await client.send_raw(f'{{{command_id}"method":0,"params":{{"token":"{token}"}}}}')
    assert await client.closed() == BAD_REQUEST


NEED_PARAMS = [m for m in METHODS if m not in ("connect", "ping", "rpc", "send")]


@pytest.mark.parametrize("params", ["", ',"params":null'], ids=["absent", "null"])
@pytest.mark.parametrize("method", NEED_PARAMS)
async def test_missing_params_are_a_bad_request(
    serve: Serve, connect: Connect, method: str, params: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.send_raw(f'{{"id":5,"method":"{method}"{params}}}')
    assert await client.closed() == BAD_REQUEST


@pytest.mark.parametrize("method", NEED_PARAMS)
async def test_missing_protobuf_params_are_a_bad_request(
    serve: Serve, connect: Connect, method: str
) -> None:
    client = await connect(serve(**MAIN), format_name="protobuf")
    await client.send(method)
    assert await client.closed() == BAD_REQUEST


async def test_rpc_accepts_missing_params(serve: Serve, connect: Connect, format_name: str) -> None:
    client = await connect(serve(**MAIN))
    assert await client.error("rpc") == {"code": 108, "message": "not available"}


async def test_connect_accepts_missing_params(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**INSECURE), connected=False)
    assert set(await client.result("connect")) == {"client", "version"}


@pytest.mark.parametrize("command_id", [4294967295, 1, 77])
async def test_id_is_echoed_whatever_came_before(
    serve: Serve, connect: Connect, command_id: int
) -> None:
    client = await connect(serve(**MAIN))
    for _ in range(2):
        await client.send_raw(f'{{"id":{command_id},"method":7}}')
        assert await client.reply() == {"id": command_id}
