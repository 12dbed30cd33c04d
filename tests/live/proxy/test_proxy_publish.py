"""The publish endpoint. docs/protocol.md, 7.5; order of checks, 3.15."""

from __future__ import annotations

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
from tests.server import Server

DATA = {"text": "original"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [({}, DATA), ({"result": {"data": {"text": "new"}}}, {"text": "new"})],
    ids=["nothing", "other data"],
)
async def test_answer_decides_what_is_published(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    answer: Any,
    expected: Any,
) -> None:
    channel = f"proxied_publish:{unique}"
    client, witness = await connect(server), await connect(server)
    await witness.result("subscribe", {"channel": channel})
    application.answer("/publish", answer)
    assert await client.result("publish", {"channel": channel, "data": DATA}) == {}
    publication = await witness.publication()
    assert publication == {"data": expected, "info": info_of(client)}


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": 1001, "message": "no"}, "result": {"data": 1}},
        {"result": {"b64data": "???"}},
    ],
    ids=json.dumps,
)
async def test_nothing_is_published_when_the_answer_refuses_or_cannot_be_used(
    server: Server, connect: Connect, application: Application, unique: str, answer: dict[str, Any]
) -> None:
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
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    witness = await connect(server)
    await witness.result("subscribe", {"channel": f"proxied_publish:{unique}"})
    server.publish(f"proxied_publish:{unique}", 1)
    assert (await witness.publication())["data"] == 1
    assert application.requests == []


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("nope:a", NAMESPACE_NOT_FOUND),
        ("proxied_closed:a", PERMISSION_DENIED),  # publish is off
        ("proxied_members:a", PERMISSION_DENIED),  # not subscribed
        ("open:a", None),  # the option is off
    ],
)
async def test_channel_that_the_options_decide_about_is_not_asked_about(
    client: ProtocolClient, application: Application, channel: str, error: dict[str, Any] | None
) -> None:
    reply = await client.call("publish", {"channel": channel, "data": DATA})
    assert reply.get("error") == error
    assert application.requests == []


@pytest.mark.parametrize("params", [{"channel": "proxied_publish:a"}, {"data": 1}])
async def test_incomplete_command_disconnects_without_asking(
    client: ProtocolClient, application: Application, params: dict[str, Any]
) -> None:
    await client.send("publish", params)
    assert await client.closed() == BAD_REQUEST
    assert application.requests == []
