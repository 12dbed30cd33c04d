"""The published JavaScript client: private channels and their tokens."""

from __future__ import annotations

from tests.js_builds import over_both_formats, over_websocket
from tests.js_client import SOON, NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


@over_websocket
async def test_private_channels_batched_are_asked_for_and_subscribed_together(
    connect_js: NewClient, unique: str
) -> None:
    channels = [f"${unique}-a", f"${unique}-b", f"${unique}-c"]
    client = await connect_js()
    before = (await client.call("socket"))["sent"]

    await client.call("startSubscribeBatching")
    for channel in channels:
        await client.call("subscribe", channel=channel)
    await client.call("stopSubscribeBatching")

    question = await client.grant()
    assert question.data["channels"] == channels
    for channel in channels:
        await client.event("subscribe", channel)
    assert (await client.call("socket"))["sent"] == before + 1


@over_both_formats
async def test_expiring_subscription_asks_for_a_token_each_time_it_expires(
    connect_js: NewClient, unique: str
) -> None:
    channel = f"${unique}"
    client = await connect_js()
    await client.subscribe(channel, ttl=SOON)
    for ttl in (SOON, 300):
        question = await client.grant(ttl=ttl)
        assert question.data == {"client": client.id, "channels": [channel]}
    await client.settle()
    assert client.unread("disconnect") == []


async def test_private_channel_is_asked_for_again_after_a_reconnect(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    """The new connection has a new ID, which the old token does not name."""
    channel = f"$rec:{unique}"
    client = await connect_js(through=proxy)
    await client.subscribe(channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1
    old_id = client.id

    async with client.away(proxy):
        server.publish(channel, 2)
    question = await client.grant()
    assert question.data == {"client": client.id, "channels": [channel]}
    assert client.id != old_id
    await client.recovered(channel)
    assert await client.publication(channel) == 2
