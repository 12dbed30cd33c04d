"""unsubscribe and disconnect of the server API: what happens to a user's connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.live.api_client import BOTH, start
from tests.live.configurations import FORCED
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return start(serve, request.param)


def unsub(channel: str) -> dict[str, Any]:
    """The push of an unsubscribe."""
    return {"type": 3, "channel": channel, "data": {}}


async def subscribe(client: Any, *channels: str) -> None:
    for channel in channels:
        await client.result("subscribe", {"channel": channel})


async def test_unsubscribe_ends_the_subscription_and_says_so(
    server: Server, connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    client = await connect(server, user=unique)
    await subscribe(client, unique)

    assert server.api("unsubscribe", user=unique, channel=unique) == {"result": {}}

    assert await client.push() == unsub(unique)
    server.publish(unique, 1)
    await client.quiet()


async def test_unsubscribe_leaves_other_channels_and_users_alone(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    other = await connect(server, user=f"{unique}b")
    await subscribe(client, unique, f"{unique}kept")
    await subscribe(other, unique)

    server.api("unsubscribe", user=unique, channel=unique)
    server.publish(unique, 1)
    server.publish(f"{unique}kept", 2)

    assert await other.push() == {"channel": unique, "data": {"data": 1}}
    assert await client.push() == unsub(unique)
    assert await client.push() == {"channel": f"{unique}kept", "data": {"data": 2}}


async def test_unsubscribed_client_may_subscribe_again(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    await subscribe(client, unique)
    server.api("unsubscribe", user=unique, channel=unique)
    await client.push()

    await subscribe(client, unique)

    server.publish(unique, 1)
    assert await client.publication() == {"data": 1}


async def test_unsubscribe_is_answered_by_clients_and_that_is_fine(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    """The JavaScript client sends an unsubscribe command back."""
    client = await connect(server, user=unique)
    await subscribe(client, unique)
    server.api("unsubscribe", user=unique, channel=unique)
    await client.push()

    assert await client.result("unsubscribe", {"channel": unique}) == {}


async def test_unsubscribe_pushes_to_all_connections_of_the_user_subscribed_or_not(
    server: Server, connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    subscribed = await connect(server, user=unique)
    elsewhere = await connect(server, user=unique)
    await subscribe(subscribed, unique)
    await subscribe(elsewhere, f"{unique}b")

    server.api("unsubscribe", user=unique, channel=unique)

    assert await subscribed.push() == unsub(unique)
    assert await elsewhere.push() == unsub(unique)
    server.publish(f"{unique}b", 1)
    assert await elsewhere.publication() == {"data": 1}


async def test_leave_comes_before_the_unsub_push(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    channel = f"joins:{unique}"
    watcher = await connect(server, user=f"{unique}b")
    client = await connect(server, user=unique)
    await subscribe(watcher, channel)
    await subscribe(client, channel)
    info = {"user": unique, "client": client.client}
    for join in (await watcher.push(), await watcher.push(), await client.push()):
        assert join["type"] == 1

    server.api("unsubscribe", user=unique, channel=channel)

    leave = {"type": 2, "channel": channel, "data": {"info": info}}
    assert await watcher.push() == leave
    assert [await client.push(), await client.push()] == [leave, unsub(channel)]
    assert list(server.api("presence", channel=channel)["result"]["presence"]) == [watcher.client]


async def test_unsubscribe_without_a_channel_is_from_all_channels(
    server: Server, connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    channels = [unique, f"kept:{unique}", f"off:{unique}"]
    client = await connect(server, user=unique)
    await subscribe(client, *channels)

    assert server.api("unsubscribe", user=unique) == {"result": {}}

    pushes = [await client.push() for _ in channels]
    assert sorted(push["channel"] for push in pushes) == sorted(channels)
    assert all(push == unsub(push["channel"]) for push in pushes)
    server.api("broadcast", channels=channels, data=1)
    await client.quiet()


async def test_unsubscribe_with_an_empty_channel_is_from_all_channels(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    await subscribe(client, unique)

    assert server.api("unsubscribe", user=unique, channel="") == {"result": {}}

    assert await client.push() == unsub(unique)


async def test_unsubscribe_without_a_channel_pushes_each_connection_its_own_channels(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    first = await connect(server, user=unique)
    second = await connect(server, user=unique)
    idle = await connect(server, user=unique)
    await subscribe(first, f"{unique}a")
    await subscribe(second, f"{unique}b")

    server.api("unsubscribe", user=unique)

    assert await first.push() == unsub(f"{unique}a")
    assert await second.push() == unsub(f"{unique}b")
    for client in (first, second, idle):
        await client.quiet()


async def test_unsubscribe_of_a_user_who_is_not_there_succeeds(server: Server, unique: str) -> None:
    assert server.api("unsubscribe", user=unique, channel=unique) == {"result": {}}
    assert server.api("unsubscribe", user=unique) == {"result": {}}


# disconnect


async def test_disconnect_closes_all_connections_of_the_user(
    server: Server, connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    clients = [await connect(server, user=unique) for _ in range(3)]

    assert server.api("disconnect", user=unique) == {"result": {}}

    assert [await client.closed() for client in clients] == [FORCED] * 3


async def test_disconnect_leaves_other_users_alone(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    others = [await connect(server, user=user) for user in (f"{unique}b", unique[:-1], "")]

    server.api("disconnect", user=unique)

    assert await client.closed() == FORCED
    for other in others:
        await other.quiet()


async def test_disconnect_looks_at_nothing_but_the_user(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)

    reply = server.api(
        "disconnect", user=unique, reconnect=True, client="another", whitelist=[client.client]
    )

    assert reply == {"result": {}}
    assert await client.closed() == FORCED


async def test_disconnected_client_has_left_its_channels(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    channel = f"joins:{unique}"
    watcher = await connect(server, user=f"{unique}b")
    await subscribe(watcher, channel)
    client = await connect(server, user=unique)
    await subscribe(client, channel)
    assert [(await watcher.push())["type"] for _ in range(2)] == [1, 1]

    server.api("disconnect", user=unique)

    leave = {"info": {"user": unique, "client": client.client}}
    assert await watcher.push() == {"type": 2, "channel": channel, "data": leave}
    assert await client.closed() == FORCED
    assert list(server.api("presence", channel=channel)["result"]["presence"]) == [watcher.client]


async def test_disconnected_user_may_connect_again(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    server.api("disconnect", user=unique)
    await client.closed()

    again = await connect(server, user=unique)

    assert again.client != client.client
    await again.quiet()


async def test_disconnect_of_a_user_who_is_not_there_succeeds(server: Server, unique: str) -> None:
    assert server.api("disconnect", user=unique) == {"result": {}}
