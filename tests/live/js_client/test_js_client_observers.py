"""The published JavaScript client as an observer: what the live tail of a panel needs."""

from __future__ import annotations

from realtime.auth import issue
from realtime.config import sources
from tests.js_client import NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


async def test_observer_follows_a_channel_over_an_interruption_unnoticed(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    token = issue.observer_token(sources.observer_keys()[0], [channel], ttl=60)
    client = await connect_js(token=token, through=proxy)
    await client.event("subscribe", channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1
    async with client.away(proxy):
        server.publish(channel, 2)
    await client.recovered(channel)
    server.publish(channel, 3)
    assert await client.publications(channel, 2) == [2, 3]
