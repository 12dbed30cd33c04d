"""The connect endpoint. docs/protocol.md, 7.2."""

from __future__ import annotations

import time
from collections.abc import Callable
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
from tests.live.proxy.application import Application, proxied, refreshing
from tests.live.signing import sign
from tests.protocol_client import ProtocolClient
from tests.server import Server

EXPIRED_ERROR = {"code": 110, "message": "expired"}


@pytest.mark.parametrize("token", ["valid", "expired", "invalid"])
async def test_client_with_a_token_is_judged_by_it_alone(
    newcomer: ProtocolClient, application: Application, unique: str, token: str
) -> None:
    match token:
        case "valid":
            await newcomer.result("connect", {"token": sign({"sub": unique})})
        case "expired":
            error = await newcomer.error("connect", {"token": sign({"sub": unique, "exp": 1})})
            assert error == TOKEN_EXPIRED
        case _:
            await newcomer.send("connect", {"token": "no token"})
            assert await newcomer.closed() == INVALID_TOKEN

    assert application.requests == []


# the answer


async def test_result_says_who_the_client_is(
    server: Server,
    newcomer: ProtocolClient,
    connect: Connect,
    application: Application,
    format_name: str,
    unique: str,
) -> None:
    answer = {
        "user": unique,
        "info": {"name": "Zoë <3"},
        "data": {"welcome": [1, None]},
        "channels": [f"present:{unique}", f"recover:{unique}", f"present:{unique}"],
    }
    application.answer("/connect", {"result": answer})

    result = await newcomer.result("connect")

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
    assert (await newcomer.publication())["data"] == {"n": 1}


async def test_answer_without_a_result_is_no_credentials(
    newcomer: ProtocolClient, connect: Connect, application: Application, format_name: str
) -> None:
    application.answer("/connect", {})
    await newcomer.send("connect")
    assert await newcomer.closed() == BAD_REQUEST


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (refreshing, {}),  # client_anonymous is on
        (proxied, {"result": {}}),  # client_anonymous is off
    ],
    ids=["no result", "no user"],
)
async def test_answer_without_a_user_makes_an_anonymous_client(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    options: Callable[[Application], dict[str, Any]],
    answer: dict[str, Any],
) -> None:
    server = serve(**options(application))
    client = await connect(server, connected=False)
    application.answer("/connect", answer)
    await client.result("connect")
    channel = f"anonymous:{unique}"
    await client.result("subscribe", {"channel": channel})
    (info,) = server.api("presence", channel=channel)["result"]["presence"].values()
    assert info["user"] == ""


@pytest.mark.parametrize("channel", ["$ns:{}", "ns:{}#18", "server_side:{}", "{}"])
async def test_rules_for_clients_do_not_hold_for_channels_of_the_result(
    newcomer: ProtocolClient, connect: Connect, application: Application, channel: str, unique: str
) -> None:
    name = channel.format(unique)
    application.answer("/connect", {"result": {"user": "17", "channels": [name]}})
    assert (await newcomer.result("connect"))["subs"] == {name: {}}


async def test_expire_at_in_the_future_is_told_in_the_reply(
    newcomer: ProtocolClient, connect: Connect, application: Application, format_name: str
) -> None:
    application.answer("/connect", {"result": {"user": "17", "expire_at": int(time.time()) + 300}})
    result = await newcomer.result("connect")
    assert result["expires"] is True
    assert 295 <= result["ttl"] <= 300


async def test_expire_at_is_not_told_where_the_server_refreshes(
    serve: Serve, connect: Connect, application: Application, format_name: str
) -> None:
    client = await connect(serve(**refreshing(application)), connected=False)
    application.answer("/connect", {"result": {"user": "17", "expire_at": int(time.time()) + 300}})
    assert set(await client.result("connect")) == {"client", "version"}


@pytest.mark.parametrize("expire_at", [1, "a second ago"])
async def test_expire_at_in_the_past_is_error_110(
    newcomer: ProtocolClient,
    connect: Connect,
    application: Application,
    format_name: str,
    expire_at: int | str,
) -> None:
    moment = int(time.time()) - 1 if isinstance(expire_at, str) else expire_at
    application.answer("/connect", {"result": {"user": "17", "expire_at": moment}})
    assert await newcomer.error("connect") == EXPIRED_ERROR


async def test_refused_client_may_try_again(
    newcomer: ProtocolClient, connect: Connect, application: Application, format_name: str
) -> None:
    not_yet = {"code": 1000, "message": "not yet"}
    refusals: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"error": not_yet}, not_yet),
        ({"result": {"expire_at": 1}}, EXPIRED_ERROR),
        ({"result": {"channels": ["ns:a", "nope:a"]}}, NAMESPACE_NOT_FOUND),
    ]
    for answer, error in refusals:
        application.answer("/connect", answer)
        assert await newcomer.error("connect") == error

    application.answer("/connect")

    await newcomer.result("connect")
    assert len(application.requests) == 4


@pytest.mark.parametrize("value", [b"null", b"[1, 2]"])
async def test_info_and_data_may_be_any_json(
    newcomer: ProtocolClient, connect: Connect, application: Application, value: bytes, unique: str
) -> None:
    channel = f"present:{unique}"
    application.answer(
        "/connect",
        b'{"result":{"info":%b,"data":%b,"channels":["%b"]}}' % (value, value, channel.encode()),
    )

    await newcomer.result("connect")
    await newcomer.result("presence", {"channel": channel})

    connected, presence = newcomer.frames
    compact = value.decode().replace(" ", "")
    assert f'"data":{compact},"subs"' in str(connected)
    assert f'"conn_info":{compact}}}' in str(presence)
