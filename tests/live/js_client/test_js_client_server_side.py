"""The published JavaScript client: channels the server subscribes it to.

Their events are emitted by the client object itself, with the channel in the context.
"""

from __future__ import annotations

from tests.conftest import connection_token
from tests.js_client import NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


async def test_channels_of_the_token_are_subscribed_on_connect(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channels = [unique, f"ours:{unique}", f"${unique}", f"{unique}#somebody-else"]
    client = await connect_js(token=connection_token("17", channels=channels))
    for channel in channels:
        context = await client.event("subscribe", channel)
        assert (context["isResubscribe"], context["recovered"]) == (False, False)
        server.publish(channel, {"in": channel})
        assert await client.publication(channel) == {"in": channel}


async def test_unsubscribe_by_the_server_api_ends_a_server_side_subscription(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    client = await connect_js(user=unique, token=connection_token(unique, channels=[unique]))
    server.api("unsubscribe", channel=unique, user=unique)
    assert await client.event("unsubscribe", unique) == {"channel": unique}
    server.publish(unique, "unheard")
    await client.settle()
    assert client.unread("publish", unique) == []


async def test_server_side_channel_recovers_once_in_order_and_a_second_time(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    """The position has moved by the publications of the first recovery."""
    channel = f"rec:{unique}"
    token = connection_token("17", channels=[channel])
    client = await connect_js(token=token, through=proxy)
    await client.event("subscribe", channel)

    for first in (1, 5):
        async with client.away(proxy):
            for number in range(first, first + 3):
                server.publish(channel, number)
        await client.recovered(channel)
        server.publish(channel, first + 3)
        assert await client.publications(channel, 4) == list(range(first, first + 4))

    await client.settle()
    assert client.unread("publish", channel) == []
