"""The publish endpoint. docs/protocol.md, 7.5; order of checks, 3.15."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.live.configurations import (
    BAD_REQUEST,
    NAMESPACE_NOT_FOUND,
    PERMISSION_DENIED,
    Connect,
    Serve,
    info_of,
)
from tests.live.proxy.application import INTERNAL_ERROR, Application, proxied
from tests.protocol_client import ProtocolClient

DATA = {"text": "original"}


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


async def published(witness: ProtocolClient) -> Any:
    """The data of the next publication that a client sees."""
    return (await witness.publication())["data"]


async def test_body_says_user_channel_and_data(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    client = await connect(serve(**proxied(application)), user=unique)
    channel = f"proxied_publish:{unique}"
    await client.result("publish", {"channel": channel, "data": b'{"b": 1.0, "a": [ "x" ]}'})
    assert application.only_request().body.decode() == (
        f'{{"client":"{client.client}","transport":"websocket","protocol":"{format_name}",'
        f'"encoding":"json","user":"{unique}","channel":"{channel}",'
        '"data":{"b":1.0,"a":["x"]}}'
    )


@pytest.mark.parametrize("query", ["encoding=binary", "encoding=binary&format=protobuf"])
async def test_data_of_binary_encoding_travel_as_base64(
    serve: Serve, connect: Connect, application: Application, query: str, unique: str
) -> None:
    format_name = "protobuf" if "protobuf" in query else "json"
    client = await connect(serve(**proxied(application)), query=query, format_name=format_name)
    text = b'{"text": "with  spaces"}'
    await client.result("publish", {"channel": f"proxied_publish:{unique}", "data": text})
    body = application.only_request().json
    assert list(body)[4:] == ["user", "channel", "b64data"]
    assert base64.b64decode(body["b64data"]) == text


PUBLISHED: dict[str, tuple[Any, Any]] = {
    "empty object": ({}, DATA),
    "empty result": ({"result": {}}, DATA),
    "result is null": ({"result": None}, DATA),
    "empty b64data": ({"result": {"b64data": ""}}, DATA),
    "data": ({"result": {"data": {"text": "new"}}}, {"text": "new"}),
    "data that are null": ({"result": {"data": None}}, None),
    "data that are false": ({"result": {"data": False}}, False),
    "data that are empty": ({"result": {"data": ""}}, ""),
    "b64data": ({"result": {"b64data": base64_of(b'{"from": "b64"}')}}, {"from": "b64"}),
    "both": ({"result": {"data": 1, "b64data": base64_of(b"2")}}, 1),
    "null and b64data": ({"result": {"data": None, "b64data": base64_of(b"2")}}, None),
}
"""Answer → what is published."""


@pytest.mark.parametrize(("answer", "expected"), PUBLISHED.values(), ids=PUBLISHED)
@pytest.mark.parametrize("query", ["", "encoding=binary"])
async def test_answer_decides_what_is_published_whatever_the_encoding(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    query: str,
    answer: Any,
    expected: Any,
) -> None:
    server = serve(**proxied(application))
    channel = f"proxied_publish:{unique}"
    client, witness = await connect(server, query=query), await connect(server)
    await witness.result("subscribe", {"channel": channel})
    application.answer("/publish", answer)
    assert await client.result("publish", {"channel": channel, "data": DATA}) == {}
    publication = await witness.publication()
    assert publication == {"data": expected, "info": info_of(client)}


async def test_replaced_data_keep_their_spelling(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    server = serve(**proxied(application))
    channel = f"proxied_publish:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    application.answer("/publish", b'{"result":{"data": {"b": 1.0, "a": 123456789012345678901} }}')
    await client.result("publish", {"channel": channel, "data": DATA})
    assert '"data":{"b":1.0,"a":123456789012345678901}' in str(client.frames)


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": 1001, "message": "no"}, "result": {"data": 1}},
        {"result": {"b64data": "???"}},
        {"result": {"b64data": base64_of(b"no JSON")}},
        {"result": {"b64data": 5}},
        {"result": {"b64data": {}, "data": 1}},
        {"result": "yes"},
    ],
    ids=json.dumps,
)
async def test_nothing_is_published_when_the_answer_refuses_or_cannot_be_used(
    serve: Serve, connect: Connect, application: Application, unique: str, answer: dict[str, Any]
) -> None:
    server = serve(**proxied(application))
    channel = f"proxied_publish:{unique}"
    client, witness = await connect(server), await connect(server)
    await witness.result("subscribe", {"channel": channel})
    application.answer("/publish", answer)
    error = await client.error("publish", {"channel": channel, "data": DATA})
    assert error == answer.get("error", INTERNAL_ERROR)
    await witness.quiet()


async def test_published_data_are_kept_in_history_as_replaced(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    options = proxied(application)
    kept = {"name": "asked", "publish": True, "proxy_publish": True}
    kept |= {"history_size": 3, "history_lifetime": 60}
    server = serve(**{**options, "namespaces": [*options["namespaces"], kept]})
    client = await connect(server)
    application.answer("/publish", {"result": {"data": "new"}})

    await client.result("publish", {"channel": f"asked:{unique}", "data": DATA})

    history = server.api("history", channel=f"asked:{unique}")["result"]["publications"]
    assert [publication["data"] for publication in history] == ["new"]


async def test_server_api_publishes_without_asking(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    server = serve(**proxied(application))
    witness = await connect(server)
    await witness.result("subscribe", {"channel": f"proxied_publish:{unique}"})
    server.publish(f"proxied_publish:{unique}", 1)
    assert await published(witness) == 1
    assert application.requests == []


# what is not asked


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("nope:a", NAMESPACE_NOT_FOUND),
        ("proxied_closed:a", PERMISSION_DENIED),  # publish is off
        ("proxied_members:a", PERMISSION_DENIED),  # not subscribed
    ],
)
async def test_checks_of_the_options_come_first(
    serve: Serve, connect: Connect, application: Application, channel: str, error: dict[str, Any]
) -> None:
    client = await connect(serve(**proxied(application)))
    assert await client.error("publish", {"channel": channel, "data": DATA}) == error
    assert application.requests == []


async def test_channel_without_the_option_is_not_asked_about(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(serve(**proxied(application)))
    await client.result("publish", {"channel": f"open:{unique}", "data": DATA})
    assert application.requests == []


@pytest.mark.parametrize("params", [{"channel": "proxied_publish:a"}, {"data": 1}])
async def test_incomplete_command_disconnects_without_asking(
    serve: Serve, connect: Connect, application: Application, params: dict[str, Any]
) -> None:
    client = await connect(serve(**proxied(application)))
    await client.send("publish", params)
    assert await client.closed() == BAD_REQUEST
    assert application.requests == []
