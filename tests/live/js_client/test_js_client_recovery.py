"""The published JavaScript client: what it missed while its connection was cut."""

from __future__ import annotations

import pytest

from tests.js_builds import over_every_transport
from tests.js_client import KEPT, JsClient, NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


@pytest.fixture
def channel(unique: str) -> str:
    """A channel with recovery."""
    return f"rec:{unique}"


@pytest.fixture
async def client(connect_js: NewClient, proxy: TcpProxy) -> JsClient:
    """A client whose connection can be cut."""
    return await connect_js(through=proxy)


def publish(server: Server, channel: str, *data: object) -> None:
    """Publish one after the other."""
    for each in data:
        server.publish(channel, each)


async def subscribed(client: JsClient, server: Server, channel: str, published: int) -> None:
    """Subscribe the client, and let it see the first publications: 1, 2, ..."""
    await client.subscribe(channel)
    expected = list(range(1, published + 1))
    publish(server, channel, *expected)
    assert await client.publications(channel, published) == expected


@over_every_transport
async def test_missed_publications_arrive_once_in_order(
    client: JsClient, server: Server, proxy: TcpProxy, channel: str
) -> None:
    await subscribed(client, server, channel, 2)
    async with client.away(proxy):
        await client.event("unsubscribe", channel)
        publish(server, channel, 3, 4, 5)
    await client.recovered(channel)
    server.publish(channel, 6)
    assert await client.publications(channel, 4) == [3, 4, 5, 6]
    await client.settle()
    assert client.unread("publish", channel) == []


@over_every_transport
async def test_large_publications_are_recovered(
    client: JsClient, server: Server, proxy: TcpProxy, channel: str
) -> None:
    await subscribed(client, server, channel, 1)
    missed = [f"{number} " + "x" * 500_000 for number in range(KEPT)]
    async with client.away(proxy):
        publish(server, channel, *missed)
    await client.recovered(channel)
    assert await client.publications(channel, KEPT) == missed
