"""The rpc endpoint. docs/protocol.md, 7.6."""

from __future__ import annotations

import base64

import pytest

from realtime.protocol.v1 import client_pb2
from tests.live.configurations import BAD_REQUEST, Connect
from tests.live.proxy.application import Application
from tests.protocol_client import ProtocolClient, undelimit
from tests.server import Server

BINARY_PROTOBUF = {"query": "encoding=binary&format=protobuf", "format_name": "protobuf"}


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


async def test_binary_result_reaches_a_protobuf_client_as_it_is(
    server: Server, connect: Connect, application: Application
) -> None:
    client = await connect(server, **BINARY_PROTOBUF)
    raw = b"\x00\xff no JSON"
    application.answer("/rpc", {"result": {"b64data": base64_of(raw)}})
    await client.send("rpc", {"method": "m"})
    (reply,) = undelimit(await client.socket.recv(decode=False))
    assert client_pb2.RPCResult.FromString(client_pb2.Reply.FromString(reply).result).data == raw


async def test_data_of_the_answer_are_the_result(
    client: ProtocolClient, application: Application, format_name: str
) -> None:
    application.answer("/rpc", {"result": {"data": {"sum": "Zoë <3"}}})
    result = await client.result("rpc", {"method": "sum", "data": [1, 2]})
    assert result == {"data": {"sum": "Zoë <3"}}


async def test_spelling_of_the_result_is_kept(
    client: ProtocolClient, application: Application
) -> None:
    application.answer("/rpc", b'{"result": {"data": {"b": 1.0, "a": 1E5, "b": "<"} }}')
    await client.result("rpc", {"method": "m"})
    # without white space and with `<` escaped, as all output (section 2.11)
    reply = '{"id":2,"result":{"data":{"b":1.0,"a":1E5,"b":"\\u003c"}}}\n'
    assert client.frames[-1] == reply


async def test_protobuf_client_gets_the_original_bytes(
    server: Server, connect: Connect, application: Application
) -> None:
    client = await connect(server, format_name="protobuf")
    application.answer("/rpc", b'{"result": {"data": {"b":  1.0} }}')
    await client.send("rpc", {"method": "m"})
    (reply,) = undelimit(await client.socket.recv(decode=False))
    assert (
        client_pb2.RPCResult.FromString(client_pb2.Reply.FromString(reply).result).data
        == b'{"b":  1.0}'
    )


@pytest.mark.parametrize("params", [b'{"method": 5}', b"[]"])
async def test_params_that_cannot_be_decoded_disconnect_without_asking(
    client: ProtocolClient, application: Application, params: bytes
) -> None:
    await client.send_params("rpc", params)
    assert await client.closed() == BAD_REQUEST
    assert application.requests == []


async def test_send_is_not_passed_on(client: ProtocolClient, application: Application) -> None:
    await client.send("send", {"data": 1})
    await client.quiet()
    assert application.requests == []
