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
