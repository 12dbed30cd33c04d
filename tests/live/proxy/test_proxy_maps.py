"""The publish endpoint decides about puts and removals of maps. docs/protocol.md, 7.5."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.live.api_methods import result
from tests.live.configurations import Serve
from tests.live.proxy.application import INTERNAL_ERROR, Application, proxied
from tests.server import Server

SEATS = {"name": "seats", "map": "recoverable", "map_publish": "client", "proxy_publish": True}


@pytest.fixture
def server(serve: Serve, application: Application) -> Server:
    """A server that asks about changes of maps."""
    application.answer("/connect", {"result": {"user": "17"}})
    return serve(**{**proxied(application), "namespaces": [SEATS]})


async def change(server: Server, channel: str, **request: Any) -> dict[str, Any]:
    """Change a map as a client of the second generation; return the reply."""
    url = f"ws://127.0.0.1:{server.port}/connection/websocket"
    commands = [
        {"id": 1, "connect": {}},
        {"id": 2, "publish": {"channel": channel, "type": 1, **request}},
    ]
    async with connect(url, proxy=None) as socket:
        await socket.send("\n".join(map(json.dumps, commands)))
        replies: list[dict[str, Any]] = []
        while len(replies) < 2:
            replies += map(json.loads, str(await socket.recv()).split("\n"))
    return replies[1]


def entries(server: Server, channel: str) -> dict[str, Any]:
    page = result(server, "map_read_state", channel=channel)
    return {entry["key"]: entry["data"] for entry in page["entries"]}


async def test_endpoint_is_told_the_key_and_what_becomes_of_it(
    server: Server, application: Application, unique: str
) -> None:
    channel = f"seats:{unique}"
    assert await change(server, channel, key="a", data={"n": 1}) == {"id": 2, "publish": {}}
    assert entries(server, channel) == {"a": {"n": 1}}
    assert await change(server, channel, key="a", removed=True) == {"id": 2, "publish": {}}
    assert entries(server, channel) == {}

    names = ("channel", "key", "data", "removed")
    assert [
        {name: request.json[name] for name in names if name in request.json}
        for request in application.asked("/publish")
    ] == [
        {"channel": channel, "key": "a", "data": {"n": 1}},
        {"channel": channel, "key": "a", "removed": True},
    ]


async def test_endpoint_replaces_key_and_data(
    server: Server, application: Application, unique: str
) -> None:
    channel = f"seats:{unique}"
    application.answer("/publish", {"result": {"key": "b", "data": "new"}})
    await change(server, channel, key="a", data="old")
    assert entries(server, channel) == {"b": "new"}

    result(server, "map_publish", channel=channel, key="a", data="kept")
    await change(server, channel, key="a", removed=True)
    assert entries(server, channel) == {"a": "kept"}


@pytest.mark.parametrize("request_", [{"data": 2}, {"removed": True}], ids=["put", "removal"])
@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": 1001, "message": "taken"}, "result": {"key": "b"}},
        {"result": {"key": "k" * 256}},
        {"result": {"key": 5}},
    ],
    ids=["refused", "long key", "no key"],
)
async def test_nothing_changes_when_the_answer_refuses_or_cannot_be_used(
    server: Server, application: Application, unique: str, request_: Any, answer: dict[str, Any]
) -> None:
    channel = f"seats:{unique}"
    result(server, "map_publish", channel=channel, key="a", data=1)
    application.answer("/publish", answer)
    reply = await change(server, channel, key="a", **request_)
    assert reply["error"]["code"] == answer.get("error", INTERNAL_ERROR)["code"]
    assert entries(server, channel) == {"a": 1}
