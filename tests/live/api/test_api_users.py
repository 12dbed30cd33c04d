"""unsubscribe and disconnect of the server API: what happens to a user's connections."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.api_client import subscribe
from tests.live.configurations import FORCED, Connect
from tests.server import Server


def unsub(channel: str) -> dict[str, Any]:
    """The push of an unsubscribe."""
    return {"type": 3, "channel": channel, "data": {}}


async def test_unsubscribe_reaches_all_connections_of_the_user_and_nobody_else(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    client, elsewhere = [await connect(server, user=unique) for _ in range(2)]
    other = await connect(server, user=f"{unique}b")
    await subscribe(client, unique, f"{unique}kept")
    await subscribe(elsewhere, f"{unique}kept")
    await subscribe(other, unique)

    assert server.api("unsubscribe", user=unique, channel=unique) == {"result": {}}

    for each in (client, elsewhere):  # whether it was subscribed or not
        assert await each.push() == unsub(unique)
    server.publish(unique, 1)
    server.publish(f"{unique}kept", 2)
    assert await other.push() == {"channel": unique, "data": {"data": 1}}
    for each in (client, elsewhere):
        assert await each.push() == {"channel": f"{unique}kept", "data": {"data": 2}}
    # the JavaScript client sends an unsubscribe command back, and may subscribe again
    assert await client.result("unsubscribe", {"channel": unique}) == {}
    await subscribe(client, unique)
    server.publish(unique, 3)
    assert await client.publication() == {"data": 3}


@pytest.mark.parametrize("everything", [{}, {"channel": ""}], ids=["no channel", "empty"])
async def test_unsubscribe_without_a_channel_is_from_all_channels_of_each_connection(
    server: Server, connect: Connect, unique: str, everything: dict[str, str]
) -> None:
    channels = [unique, f"kept:{unique}", f"off:{unique}"]
    client, second, idle = [await connect(server, user=unique) for _ in range(3)]
    await subscribe(client, *channels)
    await subscribe(second, f"{unique}b")

    assert server.api("unsubscribe", user=unique, **everything) == {"result": {}}

    pushes = [await client.push() for _ in channels]
    assert sorted(push["channel"] for push in pushes) == sorted(channels)
    assert all(push == unsub(push["channel"]) for push in pushes)
    assert await second.push() == unsub(f"{unique}b")
    server.api("broadcast", channels=[*channels, f"{unique}b"], data=1)
    for each in (client, second, idle):
        await each.quiet()


@pytest.mark.parametrize("method", ["unsubscribe", "disconnect"])
async def test_client_leaves_its_channels_first(
    server: Server, connect: Connect, unique: str, method: str
) -> None:
    channel = f"joins:{unique}"
    watcher = await connect(server, user=f"{unique}b")
    client = await connect(server, user=unique)
    await subscribe(watcher, channel)
    await subscribe(client, channel)
    for join in (await watcher.push(), await watcher.push(), await client.push()):
        assert join["type"] == 1

    server.api(method, user=unique, channel=channel)

    info = {"user": unique, "client": client.client}
    leave = {"type": 2, "channel": channel, "data": {"info": info}}
    assert await watcher.push() == leave
    if method == "unsubscribe":
        assert [await client.push(), await client.push()] == [leave, unsub(channel)]
    else:
        assert await client.closed() == FORCED
    assert list(server.api("presence", channel=channel)["result"]["presence"]) == [watcher.client]


async def test_disconnect_closes_all_connections_of_the_user_and_of_nobody_else(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    clients = [await connect(server, user=unique) for _ in range(3)]
    others = [await connect(server, user=user) for user in (f"{unique}b", unique[:-1], "")]

    # it looks at nothing but the user
    more = {"reconnect": True, "client": "another", "whitelist": [clients[0].client]}
    assert server.api("disconnect", user=unique, **more) == {"result": {}}

    assert [await client.closed() for client in clients] == [FORCED] * 3
    again = await connect(server, user=unique)
    for client in (*others, again):
        await client.quiet()
