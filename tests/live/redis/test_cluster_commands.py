"""Unsubscribe and disconnect reach clients on every node. docs/protocol.md, 3.3 and 6.4."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tests.conftest import connection_token
from tests.live.clusters import (
    SERVICE,
    Cluster,
    TwoNodes,
    presence,
)
from tests.live.configurations import CONNECTION_LIMIT, FORCED, Connect, Options
from tests.protocol_client import Closed
from tests.redis_server import RedisServer
from tests.server import wait_until
from tests.tcp_proxy import TcpProxy

SINGLE: Options = SERVICE | {
    "redis_prefix": "service-of-single-connections",
    "user_subscribe_to_personal": True,
    "user_personal_channel_namespace": "present",
    "user_personal_single_connection": True,
}
"""A user's newest connection is the only one."""


def unsub_of(channel: str) -> dict[str, Any]:
    return {"type": 3, "channel": channel, "data": {}}


async def test_unsubscribe_reaches_the_user_on_every_node_once(
    two_nodes: TwoNodes, connect: Connect, unique: str, format_name: str
) -> None:
    one, other = two_nodes
    channel, behind = f"present:{unique}", f"present:{unique}behind"
    clients = [await connect(server, user=unique) for server in (one, other, other)]
    bystander = await connect(other)
    for client in (*clients, bystander):
        await client.result("subscribe", {"channel": channel})
    for client in clients:
        await client.result("subscribe", {"channel": behind})

    one.api("unsubscribe", user=unique, channel=channel)
    one.api("unsubscribe", user=unique, channel=behind)

    for client in clients:
        # subscriptions of a kind end in the order in which nodes are told to end them, so a
        # second push of the first would come before that of the last
        assert await client.push() == unsub_of(channel)
        assert await client.push() == unsub_of(behind)
    wait_until(lambda: list(presence(one, channel)) == [bystander.client])
    other.publish(channel, 1)
    assert await bystander.publication() == {"data": 1}
    for client in clients:
        await client.quiet()


async def test_only_the_last_of_many_connections_stays(
    shared_cluster: Cluster, connect: Connect, unique: str
) -> None:
    nodes = shared_cluster(**SINGLE)
    bystander = await connect(nodes[0], user=unique + "not")
    clients = []

    for number in range(6):
        clients.append(await connect(nodes[number % 2], user=unique))
        # commands run in order: the reply says that the others were told of this connection, which
        # happens behind the reply to connect. The next one might be told of first otherwise
        await clients[-1].call("ping")
        if number:
            assert await clients[-2].closed() == CONNECTION_LIMIT

    personal, last = f"present:#{unique}", clients[-1]
    wait_until(lambda: list(presence(nodes[0], personal)) == [last.client], what="the last alone")
    nodes[0].publish(personal, "for you")
    assert await last.publication() == {"data": "for you"}
    for client in (last, bystander):
        await client.quiet()


async def test_one_of_two_connections_that_are_made_at_the_same_time_stays(
    shared_cluster: Cluster, connect: Connect, unique: str
) -> None:
    one, other = shared_cluster(**SINGLE)

    for number in range(10):
        user = f"{unique}{number}"
        clients = [await connect(server, connected=False) for server in (one, other)]
        token = {"token": connection_token(user)}
        pings = [
            (await client.send_together(("connect", token), ("ping", None)))[1]
            for client in clients
        ]
        for client, ping in zip(clients, pings, strict=True):
            # its answer says that whatever comes of the connection was told to the other node
            with suppress(Closed):
                await client.reply(ping)
        for server in (one, other):
            server.api("unsubscribe", user=user, channel=unique)
        closes = []
        for client in clients:
            try:
                for _ in range(2):  # what the other node says comes behind who is to go
                    assert await client.push() == unsub_of(unique)
            except Closed as closed:
                closes.append((closed.code, closed.reason))
        assert closes == [CONNECTION_LIMIT], "of two one is newer, and stays"


async def test_what_a_node_was_told_while_it_was_cut_off_is_done_when_it_is_back(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str
) -> None:
    options = SERVICE | {"redis_prefix": unique}
    async with TcpProxy(redis_server.url) as proxy:
        [one] = await asyncio.to_thread(cluster, 1, redis_server, **options)
        behind = options | {"redis_url": proxy.url}
        [other] = await asyncio.to_thread(cluster, 1, redis_server, server="uvicorn", **behind)
        leaver = await connect(other, user=f"{unique}a")
        stayer = await connect(other, user=f"{unique}b")
        await stayer.result("subscribe", {"channel": unique})

        proxy.refuse()
        await asyncio.to_thread(one.api, "disconnect", user=f"{unique}a")
        await asyncio.to_thread(one.api, "unsubscribe", user=f"{unique}b", channel=unique)
        await leaver.quiet()
        await stayer.quiet()
        proxy.allow()

        assert await leaver.closed() == FORCED
        assert await stayer.push() == unsub_of(unique)
        await asyncio.to_thread(other.kill)
