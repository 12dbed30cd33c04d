"""The rpc endpoint. docs/protocol.md, 7.6."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from realtime.protocol.v1 import client_pb2
from tests.live.configurations import BAD_REQUEST, Connect, Serve
from tests.live.proxy.application import INTERNAL_ERROR, Application, proxied
from tests.protocol_client import undelimit

BINARY_PROTOBUF = {"query": "encoding=binary&format=protobuf", "format_name": "protobuf"}


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


async def test_body_says_user_method_and_data(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    client = await connect(serve(**proxied(application)), user=unique)
    await client.result("rpc", {"method": "sum", "data": [1, 2]})
    assert application.only_request().body.decode() == (
        f'{{"client":"{client.client}","transport":"websocket","protocol":"{format_name}",'
        f'"encoding":"json","user":"{unique}","method":"sum","data":[1,2]}}'
    )


@pytest.mark.parametrize(
    ("params", "keys"),
    [
        (None, []),
        ({}, []),
        ({"method": ""}, []),
        ({"method": "m"}, ["method"]),
        ({"data": b"1"}, ["data"]),
        ({"data": b"null"}, ["data"]),
        ({"data": b"1", "method": "m"}, ["method", "data"]),
    ],
)
async def test_what_the_client_did_not_say_is_left_out(
    serve: Serve,
    connect: Connect,
    application: Application,
    format_name: str,
    params: dict[str, Any] | None,
    keys: list[str],
) -> None:
    client = await connect(serve(**proxied(application)))
    await client.result("rpc", params)
    common = ["client", "transport", "protocol", "encoding"]
    assert list(application.only_request().json) == [*common, "user", *keys]


async def test_user_of_an_anonymous_client_is_empty(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)), user="")
    await client.result("rpc", {"method": "m"})
    assert application.only_request().json["user"] == ""


@pytest.mark.parametrize("data", [b'{"a": 1}', b"\x00\xff no JSON"])
async def test_data_of_binary_encoding_travel_as_base64(
    serve: Serve, connect: Connect, application: Application, data: bytes
) -> None:
    client = await connect(serve(**proxied(application)), **BINARY_PROTOBUF)
    await client.result("rpc", {"method": "m", "data": data})
    body = application.only_request().json
    assert list(body)[4:] == ["user", "method", "b64data"]
    assert base64.b64decode(body["b64data"]) == data


RESULTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "empty object": ({}, {}),
    "result is null": ({"result": None}, {}),
    "empty result": ({"result": {}}, {}),
    "object": ({"result": {"data": {"sum": 3}}}, {"data": {"sum": 3}}),
    "null": ({"result": {"data": None}}, {"data": None}),
    "false": ({"result": {"data": False}}, {"data": False}),
    "text": ({"result": {"data": "Zoë <3"}}, {"data": "Zoë <3"}),
    "base64 is ignored": ({"result": {"b64data": base64_of(b"1")}}, {}),
    "base64 that is none": ({"result": {"b64data": "???"}}, {}),
    "both": ({"result": {"data": 1, "b64data": base64_of(b"2")}}, {"data": 1}),
}
"""Answer → result, with encoding json."""


@pytest.mark.parametrize(("answer", "expected"), RESULTS.values(), ids=RESULTS)
async def test_data_of_the_answer_are_the_result(
    serve: Serve,
    connect: Connect,
    application: Application,
    format_name: str,
    answer: Any,
    expected: dict[str, Any],
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", answer)
    assert await client.result("rpc", {"method": "m"}) == expected


BINARY_RESULTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "empty result": ({"result": {}}, {}),
    "plain data are ignored": ({"result": {"data": 1}}, {}),
    "base64": ({"result": {"b64data": base64_of(b'{"sum": 3}')}}, {"data": {"sum": 3}}),
    "both": ({"result": {"data": 1, "b64data": base64_of(b"2")}}, {"data": 2}),
    "empty base64": ({"result": {"b64data": ""}}, {}),
}
"""Answer → result, with encoding binary."""


@pytest.mark.parametrize(("answer", "expected"), BINARY_RESULTS.values(), ids=BINARY_RESULTS)
@pytest.mark.parametrize("options", [{"query": "encoding=binary"}, BINARY_PROTOBUF])
async def test_base64_of_the_answer_is_the_result_in_binary_encoding(
    serve: Serve,
    connect: Connect,
    application: Application,
    options: dict[str, str],
    answer: Any,
    expected: dict[str, Any],
) -> None:
    client = await connect(serve(**proxied(application)), **options)
    application.answer("/rpc", answer)
    assert await client.result("rpc", {"method": "m"}) == expected


async def test_binary_result_reaches_a_protobuf_client_as_it_is(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)), **BINARY_PROTOBUF)
    raw = b"\x00\xff no JSON"
    application.answer("/rpc", {"result": {"b64data": base64_of(raw)}})
    await client.send("rpc", {"method": "m"})
    (reply,) = undelimit(await client.socket.recv(decode=False))
    assert client_pb2.RPCResult.FromString(client_pb2.Reply.FromString(reply).result).data == raw


@pytest.mark.parametrize(
    "value", ["???", base64_of(b"no JSON"), base64_of(b"1 2")], ids=["no base64", "text", "two"]
)
async def test_base64_that_is_no_json_is_error_100_for_a_json_client(
    serve: Serve, connect: Connect, application: Application, value: str
) -> None:
    client = await connect(serve(**proxied(application)), query="encoding=binary")
    application.answer("/rpc", {"result": {"b64data": value}})
    assert await client.error("rpc", {"method": "m"}) == INTERNAL_ERROR


async def test_spelling_of_the_result_is_kept(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", b'{"result": {"data": {"b": 1.0, "a": 1E5, "b": "<"} }}')
    await client.result("rpc", {"method": "m"})
    # without white space and with `<` escaped, as all output (section 2.11)
    reply = '{"id":2,"result":{"data":{"b":1.0,"a":1E5,"b":"\\u003c"}}}\n'
    assert client.frames[-1] == reply


async def test_protobuf_client_gets_the_original_bytes(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)), format_name="protobuf")
    application.answer("/rpc", b'{"result": {"data": {"b":  1.0} }}')
    await client.send("rpc", {"method": "m"})
    (reply,) = undelimit(await client.socket.recv(decode=False))
    assert (
        client_pb2.RPCResult.FromString(client_pb2.Reply.FromString(reply).result).data
        == b'{"b":  1.0}'
    )


@pytest.mark.parametrize("params", [b'{"method": 5}', b"[]"])
async def test_params_that_cannot_be_decoded_disconnect_without_asking(
    serve: Serve, connect: Connect, application: Application, params: bytes
) -> None:
    client = await connect(serve(**proxied(application)))
    await client.send_params("rpc", params)
    assert await client.closed() == BAD_REQUEST
    assert application.requests == []


async def test_send_is_not_passed_on(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)))
    await client.send("send", {"data": 1})
    await client.quiet()
    assert application.requests == []
