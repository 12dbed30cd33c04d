"""The published JavaScript client: what it missed while its connection was cut."""

from __future__ import annotations

from tests.js_builds import over_every_transport
from tests.js_client import KEPT, JsClient, NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


async def subscribed(client: JsClient, server: Server, channel: str, published: int) -> None:
    """Subscribe the client, and let it see the first publications: 1, 2, ..."""
    await client.subscribe(channel)
    expected = list(range(1, published + 1))
    for number in expected:
        server.publish(channel, number)
    assert await client.publications(channel, published) == expected


@over_every_transport
async def test_missed_publications_arrive_once_in_order(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 2)

    async with client.away(proxy):
        await client.event("unsubscribe", channel)
        for number in (3, 4, 5):
            server.publish(channel, number)
    await client.recovered(channel)
    server.publish(channel, 6)
    assert await client.publications(channel, 4) == [3, 4, 5, 6]
    await client.settle()
    assert client.unread("publish", channel) == []


async def test_nothing_missed_is_recovered_without_publications(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 3)

    proxy.cut()

    await client.connected()
    await client.recovered(channel)
    await client.settle()
    assert client.unread("publish", channel) == []


async def test_first_publication_of_a_channel_is_recovered(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    """The position before it is offset 0, which clients do not send."""
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 0)

    async with client.away(proxy):
        server.publish(channel, "the first")
    await client.recovered(channel)
    assert await client.publication(channel) == "the first"


async def test_several_cuts_lose_and_repeat_nothing(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    number = 1
    for _ in range(4):
        async with client.away(proxy):
            missed = [number + 1, number + 2]
            for number in missed:
                server.publish(channel, number)
        await client.recovered(channel)
        assert await client.publications(channel, 2) == missed

    await client.settle()
    assert client.unread("publish", channel) == []


async def test_everything_kept_can_be_recovered(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    async with client.away(proxy):
        missed = list(range(2, 2 + KEPT))
        for number in missed:
            server.publish(channel, number)
    await client.recovered(channel)
    assert await client.publications(channel, KEPT) == missed


@over_every_transport
async def test_large_publications_are_recovered(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    async with client.away(proxy):
        missed = [f"{number} " + "x" * 500_000 for number in range(KEPT)]
        for text in missed:
            server.publish(channel, text)
    await client.recovered(channel)
    assert await client.publications(channel, KEPT) == missed


async def test_more_missed_than_kept_is_not_recovered_and_gives_what_there_is(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    async with client.away(proxy):
        missed = list(range(2, 2 + KEPT + 1))
        for number in missed:
            server.publish(channel, number)
    context = await client.event("subscribe", channel)
    assert (context["isResubscribe"], context["recovered"]) == (True, False)
    assert await client.publications(channel, KEPT) == missed[-KEPT:]
    await client.settle()
    assert client.unread("publish", channel) == []


async def test_removed_history_is_not_recovered(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    async with client.away(proxy):
        server.publish(channel, "lost")
        assert server.api("history_remove", channel=channel) == {"result": {}}
    assert (await client.event("subscribe", channel))["recovered"] is False
    server.publish(channel, "after")
    assert await client.publication(channel) == "after"


async def test_client_without_recovery_resubscribes_and_misses_what_it_missed(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    """History alone is not recovery: the namespace needs `history_recover`."""
    channel = f"chat:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)

    async with client.away(proxy):
        server.publish(channel, "missed")
    context = await client.event("subscribe", channel)
    assert (context["isResubscribe"], context["recovered"]) == (True, False)
    server.publish(channel, "after")
    assert await client.publication(channel) == "after"


async def test_each_channel_recovers_its_own(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channels = [f"rec:{unique}-{number}" for number in range(10)]
    client = await connect_js(through=proxy)
    for number, channel in enumerate(channels):
        await subscribed(client, server, channel, number % 3)

    async with client.away(proxy):
        for channel in channels:
            server.publish(channel, f"missed in {channel}")
    for channel in channels:
        await client.recovered(channel)
        assert await client.publication(channel) == f"missed in {channel}"


async def test_refused_attempts_go_on_until_the_server_is_back(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js(through=proxy)
    await subscribed(client, server, channel, 1)
    attempts = proxy.connections

    async with client.away(proxy):
        await proxy.reached(attempts + 3)
        server.publish(channel, 2)
    await client.recovered(channel)
    assert await client.publication(channel) == 2
    # an attempt that fails is no second disconnect
    assert client.unread("disconnect") == []
