"""Who is there, over several nodes. docs/protocol.md, 3.14, 3.16, 4.1 and 6.4."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.conftest import connection_token
from tests.live.clusters import TwoNodes, presence, presence_stats
from tests.live.configurations import Connect, info_of
from tests.protocol_client import ProtocolClient
from tests.server import Server


def join_of(client: ProtocolClient, user: str, channel: str, kind: int = 1) -> dict[str, Any]:
    return {"type": kind, "channel": channel, "data": {"info": info_of(client, user)}}


leave_of = partial(join_of, kind=2)


async def watching(connect: Connect, server: Server, channel: str) -> ProtocolClient:
    """A client that sees who joins and leaves a channel; its own join was seen already."""
    client: ProtocolClient = await connect(server)
    await client.result("subscribe", {"channel": channel})
    await client.push()
    return client


async def test_join_and_leave_are_seen_on_the_other_node_once(
    two_nodes: TwoNodes, connect: Connect, unique: str, format_name: str
) -> None:
    (one, other), channel = two_nodes, f"joined:{unique}"
    watcher = await watching(connect, other, channel)
    client = await connect(one, user=unique)
    await client.result("subscribe", {"channel": channel})
    assert await watcher.push() == join_of(client, unique, channel)
    assert await client.push() == join_of(client, unique, channel), "its own, after the reply"
    await client.result("unsubscribe", {"channel": channel})
    assert await watcher.push() == leave_of(client, unique, channel)
    one.publish(channel, "behind them")
    assert await watcher.publication() == {"data": "behind them"}

    await client.result("subscribe", {"channel": channel})
    await watcher.push()
    assert set(presence(other, channel)) == {watcher.client, client.client}
    await client.abort()
    assert await watcher.push() == leave_of(client, unique, channel)
    # presence is removed before the leave is published, and would expire only after a minute
    for server in (one, other):
        assert set(presence(server, channel)) == {watcher.client}


async def test_presence_is_that_of_both_nodes_and_users_are_counted_once(
    two_nodes: TwoNodes, connect: Connect, unique: str
) -> None:
    (one, other), channel, info = two_nodes, f"present:{unique}", {"name": "Zoë <3"}
    places = [(one, "a"), (other, "a"), (other, "b")]
    clients = [
        await connect(server, token=connection_token(unique + user, info=info))
        for server, user in places
    ]
    for client in clients:
        await client.result("subscribe", {"channel": channel})
    expected = {
        client.client: info_of(client, unique + user) | {"conn_info": info}
        for client, (_, user) in zip(clients, places, strict=True)
    }

    for server in (one, other):
        assert presence(server, channel) == expected
        assert presence_stats(server, channel) == (3, 2)
    for client in clients:
        result = await client.result("presence", {"channel": channel})
        assert result == {"presence": expected}
        stats = await client.result("presence_stats", {"channel": channel})
        assert stats == {"num_clients": 3, "num_users": 2}

    await clients[0].result("unsubscribe", {"channel": channel})
    assert presence_stats(other, channel) == (2, 2)
