"""Encodings of what the connect endpoint answers. docs/protocol.md, 7.1 and 7.2."""

from __future__ import annotations

import base64

import pytest

from realtime.protocol.v1 import client_pb2
from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import INTERNAL_ERROR, Application, proxied
from tests.protocol_client import undelimit


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


async def test_base64_is_ignored_in_json_encoding(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    server = serve(**proxied(application))
    client = await connect(server, connected=False)
    application.answer(
        "/connect",
        {
            "result": {
                "channels": [f"present:{unique}"],
                "b64info": base64_of(b'"b64"'),
                "b64data": base64_of(b'"b64"'),
            }
        },
    )

    assert "data" not in await client.result("connect")

    (info,) = server.api("presence", channel=f"present:{unique}")["result"]["presence"].values()
    assert "conn_info" not in info


@pytest.mark.parametrize("query", ["encoding=binary", "encoding=binary&format=protobuf"])
async def test_only_base64_counts_in_binary_encoding(
    serve: Serve, connect: Connect, application: Application, query: str, unique: str
) -> None:
    server = serve(**proxied(application))
    format_name = "protobuf" if "protobuf" in query else "json"
    client = await connect(server, connected=False, query=query, format_name=format_name)
    application.answer(
        "/connect",
        {
            "result": {
                "channels": [f"present:{unique}"],
                "info": "plain",
                "data": "plain",
                "b64info": base64_of(b'{"from": "b64info"}'),
                "b64data": base64_of(b'{"from": "b64data"}'),
            }
        },
    )

    assert (await client.result("connect"))["data"] == {"from": "b64data"}

    (info,) = server.api("presence", channel=f"present:{unique}")["result"]["presence"].values()
    assert info["conn_info"] == {"from": "b64info"}


async def test_binary_data_reach_a_protobuf_client_as_they_are(
    serve: Serve, connect: Connect, application: Application
) -> None:
    query = "encoding=binary&format=protobuf"
    client = await connect(
        serve(**proxied(application)), connected=False, query=query, format_name="protobuf"
    )
    raw = b"\x00\xff no JSON"
    application.answer("/connect", {"result": {"b64data": base64_of(raw)}})

    await client.send("connect")
    (reply,) = undelimit(await client.socket.recv(decode=False))

    assert (
        client_pb2.ConnectResult.FromString(client_pb2.Reply.FromString(reply).result).data == raw
    )


@pytest.mark.parametrize("name", ["b64info", "b64data"])
@pytest.mark.parametrize("value", ["???", "YQ", base64_of(b"no JSON")])
async def test_base64_that_cannot_be_used_is_error_100(
    serve: Serve, connect: Connect, application: Application, name: str, value: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False, query="encoding=binary")
    application.answer("/connect", {"result": {name: value}})
    assert await client.error("connect") == INTERNAL_ERROR
