"""The connect endpoint. docs/protocol.md, 7.2."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

import realtime
from tests.live.configurations import (
    BAD_REQUEST,
    INVALID_TOKEN,
    NAMESPACE_NOT_FOUND,
    TOKEN_EXPIRED,
    Connect,
    Serve,
)
from tests.live.proxy.application import INTERNAL_ERROR, Application, proxied, refreshing
from tests.live.signing import sign

EXPIRED_ERROR = {"code": 110, "message": "expired"}


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


# the request


async def test_body_is_that_of_the_reference(
    serve: Serve, connect: Connect, application: Application
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    result = await client.result(
        "connect", {"data": {"lang": "de"}, "name": "js", "version": "1.0"}
    )
    assert application.only_request().body.decode() == (
        '{"client":"C","transport":"websocket","protocol":"json","encoding":"json",'
        '"data":{"lang":"de"},"name":"js","version":"1.0"}'
    ).replace("C", result["client"], 1)


@pytest.mark.parametrize("params", [None, {}, {"name": "", "version": ""}, {"token": ""}])
async def test_what_the_client_did_not_say_is_left_out(
    serve: Serve,
    connect: Connect,
    application: Application,
    format_name: str,
    params: dict[str, Any] | None,
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    await client.result("connect", params)
    assert list(application.only_request().json) == ["client", "transport", "protocol", "encoding"]


async def test_null_is_data(serve: Serve, connect: Connect, application: Application) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    await client.result("connect", {"data": None})
    body = application.only_request().json
    assert "data" in body
    assert body["data"] is None


@pytest.mark.parametrize("data", [b'{"lang": "de"}', b"\x00\xff no JSON"])
async def test_data_of_binary_encoding_travel_as_base64(
    serve: Serve, connect: Connect, application: Application, data: bytes
) -> None:
    client = await connect(
        serve(**proxied(application)),
        connected=False,
        format_name="protobuf",
        query="format=protobuf&encoding=binary",
    )

    await client.result("connect", {"data": data})

    body = application.only_request().json
    assert "data" not in body
    assert body["b64data"] == base64_of(data)


@pytest.mark.parametrize("token", ["valid", "expired", "invalid"])
async def test_client_with_a_token_is_judged_by_it_alone(
    serve: Serve, connect: Connect, application: Application, unique: str, token: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)

    match token:
        case "valid":
            await client.result("connect", {"token": sign({"sub": unique})})
        case "expired":
            error = await client.error("connect", {"token": sign({"sub": unique, "exp": 1})})
            assert error == TOKEN_EXPIRED
        case _:
            await client.send("connect", {"token": "no token"})
            assert await client.closed() == INVALID_TOKEN

    assert application.requests == []


# the answer


async def test_result_says_who_the_client_is(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    server = serve(**proxied(application))
    client = await connect(server, connected=False)
    answer = {
        "user": unique,
        "info": {"name": "Zoë <3"},
        "data": {"welcome": [1, None]},
        "channels": [f"present:{unique}", f"recover:{unique}", f"present:{unique}"],
    }
    application.answer("/connect", {"result": answer})

    result = await client.result("connect")

    client_id = result.pop("client")
    epoch = result["subs"][f"recover:{unique}"].pop("epoch")
    assert epoch
    assert result == {
        "version": realtime.__version__,
        "data": {"welcome": [1, None]},
        "subs": {f"present:{unique}": {}, f"recover:{unique}": {"recoverable": True}},
    }
    presence = server.api("presence", channel=f"present:{unique}")["result"]["presence"]
    assert presence == {
        client_id: {"user": unique, "client": client_id, "conn_info": {"name": "Zoë <3"}}
    }
    server.publish(f"present:{unique}", {"n": 1})
    assert (await client.publication())["data"] == {"n": 1}


NOBODY: dict[str, Any] = {
    "empty object": {},
    "result is null": {"result": None},
    "everything is null": {"result": None, "error": None, "disconnect": None},
    "something else": {"user": "17"},
}


@pytest.mark.parametrize("answer", NOBODY.values(), ids=NOBODY)
async def test_answer_without_a_result_is_no_credentials(
    serve: Serve, connect: Connect, application: Application, format_name: str, answer: Any
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    application.answer("/connect", answer)
    await client.send("connect")
    assert await client.closed() == BAD_REQUEST


@pytest.mark.parametrize("answer", NOBODY.values(), ids=NOBODY)
async def test_answer_without_a_result_makes_an_anonymous_client_where_that_is_allowed(
    serve: Serve, connect: Connect, application: Application, unique: str, answer: Any
) -> None:
    server = serve(**refreshing(application))  # client_anonymous is on
    client = await connect(server, connected=False)
    application.answer("/connect", answer)
    await client.result("connect")
    channel = f"anonymous:{unique}"
    await client.result("subscribe", {"channel": channel})
    (info,) = server.api("presence", channel=channel)["result"]["presence"].values()
    assert info["user"] == ""


@pytest.mark.parametrize("result", [{}, {"user": ""}, {"user": None, "channels": None}])
async def test_result_without_a_user_is_an_anonymous_client_anywhere(
    serve: Serve, connect: Connect, application: Application, result: dict[str, Any], unique: str
) -> None:
    server = serve(**proxied(application))  # client_anonymous is off
    client = await connect(server, connected=False)
    application.answer("/connect", {"result": result})
    await client.result("connect")
    channel = f"anonymous:{unique}"
    await client.result("subscribe", {"channel": channel})
    (info,) = server.api("presence", channel=channel)["result"]["presence"].values()
    assert info["user"] == ""


async def test_unknown_namespace_in_channels_is_error_102(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    application.answer("/connect", {"result": {"channels": [f"ns:{unique}", f"nope:{unique}"]}})
    assert await client.error("connect") == NAMESPACE_NOT_FOUND


@pytest.mark.parametrize("channel", ["$ns:{}", "ns:{}#18", "server_side:{}", "{}"])
async def test_rules_for_clients_do_not_hold_for_channels_of_the_result(
    serve: Serve, connect: Connect, application: Application, channel: str, unique: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    name = channel.format(unique)
    application.answer("/connect", {"result": {"user": "17", "channels": [name]}})
    assert (await client.result("connect"))["subs"] == {name: {}}


async def test_expire_at_in_the_future_is_told_in_the_reply(
    serve: Serve, connect: Connect, application: Application, format_name: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    application.answer("/connect", {"result": {"user": "17", "expire_at": int(time.time()) + 300}})
    result = await client.result("connect")
    assert result["expires"] is True
    assert 295 <= result["ttl"] <= 300


async def test_expire_at_is_not_told_where_the_server_refreshes(
    serve: Serve, connect: Connect, application: Application, format_name: str
) -> None:
    client = await connect(serve(**refreshing(application)), connected=False)
    application.answer("/connect", {"result": {"user": "17", "expire_at": int(time.time()) + 300}})
    assert set(await client.result("connect")) == {"client", "version"}


@pytest.mark.parametrize("result", [{"expire_at": 0}, {"expire_at": None}])
async def test_expire_at_0_is_never(
    serve: Serve, connect: Connect, application: Application, result: dict[str, Any]
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    application.answer("/connect", {"result": {"user": "17", **result}})
    assert set(await client.result("connect")) == {"client", "version"}


@pytest.mark.parametrize("expire_at", [1, -1, -(2**63), "a second ago"])
async def test_expire_at_in_the_past_is_error_110(
    serve: Serve,
    connect: Connect,
    application: Application,
    format_name: str,
    expire_at: int | str,
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    moment = int(time.time()) - 1 if isinstance(expire_at, str) else expire_at
    application.answer("/connect", {"result": {"user": "17", "expire_at": moment}})
    assert await client.error("connect") == EXPIRED_ERROR


async def test_refused_client_may_try_again(
    serve: Serve, connect: Connect, application: Application, format_name: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    refusals: list[dict[str, Any]] = [
        {"error": {"code": 1000, "message": "not yet"}},
        {"result": {"expire_at": 1}},
        {"result": {"channels": ["nope:a"]}},
    ]
    for answer in refusals:
        application.answer("/connect", answer)
        await client.error("connect")

    application.answer("/connect")

    await client.result("connect")
    assert len(application.requests) == 4


WRONG: dict[str, Any] = {
    "user is a number": {"user": 17},
    "expire_at is a string": {"expire_at": "1700000000"},
    "expire_at is a fraction": {"expire_at": 1700000000.5},
    "expire_at is too large": {"expire_at": 2**63},
    "channels is a string": {"channels": "ns:a"},
    "a channel is a number": {"channels": ["ns:a", 5]},
    "b64info is a number": {"b64info": 5},
    "b64data is an object": {"b64data": {}},
}


@pytest.mark.parametrize("result", WRONG.values(), ids=WRONG)
async def test_result_of_wrong_types_is_error_100(
    serve: Serve, connect: Connect, application: Application, result: Any
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    application.answer("/connect", {"result": result})
    assert await client.error("connect") == INTERNAL_ERROR


@pytest.mark.parametrize("value", [b"null", b"1.0", b'"text"', b"[1, 2]", b"{}"])
async def test_info_and_data_may_be_any_json(
    serve: Serve, connect: Connect, application: Application, value: bytes, unique: str
) -> None:
    client = await connect(serve(**proxied(application)), connected=False)
    channel = f"present:{unique}"
    application.answer(
        "/connect",
        b'{"result":{"info":%b,"data":%b,"channels":["%b"]}}' % (value, value, channel.encode()),
    )

    await client.result("connect")
    await client.result("presence", {"channel": channel})

    connected, presence = client.frames
    compact = value.decode().replace(" ", "")
    assert f'"data":{compact},"subs"' in str(connected)
    assert f'"conn_info":{compact}}}' in str(presence)
