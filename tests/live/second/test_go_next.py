"""The published Go client of the second generation, unmodified. Skipped where Go is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import connection_token
from tests.live.api_methods import call
from tests.live.second.go_client import GoClient, open_go
from tests.server import Server
from tests.tcp_proxy import TcpProxy

SOON = 3
"""Seconds of a token that a client has to refresh."""


@pytest.fixture(params=[False, True], ids=["json", "protobuf"])
def protobuf(request: pytest.FixtureRequest) -> bool:
    asked: bool = request.param
    return asked


@pytest.fixture
async def client(proxy: TcpProxy, go_program: Path, protobuf: bool) -> AsyncIterator[GoClient]:
    """A client behind a proxy, connected."""
    token = connection_token("17")
    async with open_go(go_program, proxy.url, token=token, protobuf=protobuf) as opened:
        await opened.call("connect")
        yield opened


async def subscribe(client: GoClient, channel: str) -> None:
    await client.call("subscribe", channel=channel)
    await client.event("subscribed", channel)


async def test_subscribes_publishes_and_asks(client: GoClient, unique: str) -> None:
    me = (await client.event("connected"))["client"]
    channel = f"chat:{unique}"
    await subscribe(client, channel)

    assert "error" not in await client.call("publish", channel=channel, data={"text": "hi"})

    publication = await client.event("publication", channel)
    assert (publication["data"], publication["offset"]) == ({"text": "hi"}, 1)
    join = await client.event("join", channel)
    assert (join["client"], join["user"]) == (me, "17")
    assert (await client.call("presence", channel=channel))["users"] == {me: "17"}
    stats = await client.call("presence_stats", channel=channel)
    assert (stats["clients"], stats["users"]) == (1, 1)
    history = await client.call("history", channel=channel, limit=10)
    assert (history["values"], history["offset"]) == ([{"text": "hi"}], 1)
    assert (await client.call("rpc"))["code"] == 108
    await client.call("unsubscribe", channel=channel)
    assert (await client.event("unsubscribed", channel))["code"] == 0


async def test_recovers_what_it_missed(
    client: GoClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"chat:{unique}"
    await subscribe(client, channel)
    server.publish(channel, 1)
    assert await client.publications(channel, 1) == [1]

    proxy.refuse()
    for value in (2, 3, 4):
        server.publish(channel, value)
    proxy.allow()
    again = await client.event("subscribed", channel)
    server.publish(channel, 5)

    assert (again["was_recovering"], again["recovered"]) == (True, True)
    assert await client.publications(channel, 4) == [2, 3, 4, 5]
    assert (await client.call("rpc"))["code"] == 108
    assert client.unread("publication") == []


async def test_subscription_of_the_server_is_told_and_taken_back(
    client: GoClient, server: Server, unique: str
) -> None:
    me = (await client.event("connected"))["client"]
    channel = f"plain:{unique}"
    call(server, "subscribe", user="17", client=me, channel=channel)
    await client.event("subscribed", channel)
    server.publish(channel, 1)
    assert await client.publications(channel, 1) == [1]
    call(server, "unsubscribe", user="17", client=me, channel=channel)
    await client.event("unsubscribed", channel)


async def test_connection_goes_on_with_a_new_token(
    server: Server, go_program: Path, protobuf: bool, unique: str
) -> None:
    channel = f"chat:{unique}"
    token = connection_token("17", ttl=SOON, info={"token": 1})
    async with open_go(go_program, server.socket, token=token, protobuf=protobuf) as client:
        await client.call("connect")
        await subscribe(client, channel)
        await client.event("token")
        client.say("token", token=connection_token("17", ttl=60, info={"token": 2}))

        info = None
        while info != {"token": 2}:  # of the connection, as the server knows it
            await client.call("publish", channel=channel, data=1)
            info = (await client.event("publication", channel))["info"]

        assert [event["code"] for event in client.unread("connecting")] == [0]


async def test_wrong_token_ends_for_good(server: Server, go_program: Path, protobuf: bool) -> None:
    async with open_go(go_program, server.socket, token="x.y.z", protobuf=protobuf) as client:
        await client.call("connect")
        told = await client.event("disconnected")
    assert (told["code"], told["reason"]) == (3500, "invalid token")
