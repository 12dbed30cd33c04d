"""The published JavaScript client as an observer: what the live tail of a panel needs."""

from __future__ import annotations

from realtime.auth import issue
from realtime.config import sources
from tests.js_builds import over_both_formats
from tests.js_client import SOON, NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


def watching(*channels: str, ttl: float = 60) -> str:
    """An observer's token for the servers of `serve`, whose SECRET_KEY is that of the tests."""
    return issue.observer_token(sources.observer_keys()[0], channels, ttl=ttl)


async def test_observer_follows_a_channel_over_an_interruption_unnoticed(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(token=watching(channel), through=proxy)
    await client.event("subscribe", channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1
    async with client.away(proxy):
        server.publish(channel, 2)
    await client.recovered(channel)
    server.publish(channel, 3)
    assert await client.publications(channel, 2) == [2, 3]


@over_both_formats
async def test_observer_whose_token_expires_goes_on_with_a_new_one(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    client = await connect_js(token=watching(unique, ttl=SOON))
    await client.refresh_with(watching(unique))
    # the window to refresh is over when a connection that did not use it is closed
    late = await connect_js(token=watching(unique, ttl=SOON))
    await late.event("disconnect")
    server.publish(unique, 1)
    assert await client.publication(unique) == 1
    assert client.unread("disconnect") == []
