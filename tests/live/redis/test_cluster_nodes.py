"""The nodes of a service, their channels, and what becomes of those of a lost node or Redis.

docs/protocol.md, 3.16, 6.4 and 6.5.
"""

from __future__ import annotations

import asyncio
import socket
import time

import realtime
from realtime.cluster.peers import HEARTBEAT_INTERVAL, HEARTBEAT_LIFETIME
from tests.live.clusters import (
    BRIEF,
    SERVICE,
    Cluster,
    OwnRedis,
    TwoNodes,
    channels,
    nodes,
    presence,
)
from tests.live.configurations import Connect, info_of
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

SLACK = 10.0
"""Seconds that a busy machine may add."""


async def test_info_of_every_node_lists_all_nodes_with_their_counts(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str
) -> None:
    kinds = {"one": "daphne", "two": "daphne", "three": "uvicorn"}
    options = SERVICE | {"redis_prefix": unique}

    def start(name: str, kind: str) -> Server:
        return cluster(1, redis_server, server=kind, name=name, **options)[0]

    servers = await asyncio.gather(
        *(asyncio.to_thread(start, name, kind) for name, kind in kinds.items())
    )
    one, two, three = servers
    places = [(one, "a"), (one, "a"), (one, "b"), (two, "a"), (three, "c"), (three, "d")]
    clients = [await connect(server, user=unique + user) for server, user in places]
    wanted = [(0, "x"), (1, "x"), (1, "y"), (3, "x"), (4, "z"), (4, "present:z"), (5, "kept:z")]
    for number, channel in wanted:
        await clients[number].result("subscribe", {"channel": channel})
    expected = {"one": (3, 2, 2), "two": (1, 1, 1), "three": (2, 2, 3)}

    def is_right(server: Server) -> bool:
        counts = {
            node["name"]: (node["num_clients"], node["num_users"], node["num_channels"])
            for node in nodes(server)
        }
        return counts == expected

    for server in servers:
        wait_until(lambda s=server: is_right(s), HEARTBEAT_INTERVAL + SLACK, "the right counts")
        entries = nodes(server)
        assert len({node["uid"] for node in entries}) == 3
        assert {node["version"] for node in entries} == {realtime.__version__}
        assert all(isinstance(node["uptime"], int) for node in entries)
        assert channels(server, "") == sorted(["x", "y", "z", "present:z", "kept:z"])


async def test_node_counts_itself_at_once_and_has_a_name_of_its_own(
    two_nodes: TwoNodes, connect: Connect, unique: str
) -> None:
    one, other = two_nodes
    for server in (one, other):
        name = f"{socket.gethostname()}_{server.pid}"

        def own(server: Server = server, name: str = name) -> int:
            [node] = [node for node in nodes(server) if node["name"] == name]
            count: int = node["num_clients"]
            return count

        wait_until(lambda o=own: o() == 0, what="the end of the clients of other tests")
        await connect(server, user=unique)
        assert own() == 1


async def test_killed_node_is_forgotten_and_the_living_ones_stay(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str
) -> None:
    """Its clients, its channels and the node itself."""
    one, other = cluster(2, redis_server, **BRIEF)
    stayer, victims = await connect(one), [await connect(other) for _ in range(3)]
    common, lost = f"present:{unique}", f"present:{unique}lost"
    for client in (stayer, *victims):
        await client.result("subscribe", {"channel": common})
    await victims[0].result("subscribe", {"channel": lost})
    everybody = {stayer.client, *(victim.client for victim in victims)}
    assert set(presence(one, common)) == everybody
    assert len(nodes(one)) == 2
    assert channels(one, unique) == [common, lost]

    killed_at = time.monotonic()
    other.kill()

    lifetime = BRIEF["client_presence_expire_interval"]
    wait_until(lambda: set(presence(one, common)) == {stayer.client}, lifetime + SLACK, "the end")
    # renewed a second ago at most, so it was not removed but has expired
    renewal = BRIEF["client_presence_ping_interval"]
    assert time.monotonic() - killed_at > (lifetime - renewal) / 2
    patience = HEARTBEAT_LIFETIME + SLACK
    wait_until(lambda: len(nodes(one)) == 1, patience, "a list of nodes without the dead one")
    wait_until(lambda: channels(one, unique) == [common], SLACK, "a list without its channels")
    # far longer than either would last without being renewed
    [node] = nodes(one)
    assert (node["num_clients"], node["num_users"], node["num_channels"]) == (1, 1, 1)
    assert presence(one, common) == {stayer.client: info_of(stayer)}
    one.publish(common, 1)
    assert await stayer.publication() == {"data": 1}


async def test_everything_about_the_living_is_back_soon_after_redis_was_restarted_empty(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, **SERVICE)
    clients = [await connect(server, user=unique) for server in (one, other)]
    channel = f"present:{unique}"
    for client in clients:
        await client.result("subscribe", {"channel": channel})
    expected = {client.client: info_of(client, unique) for client in clients}
    assert presence(one, channel) == expected

    redis.restart(empty=True)

    def is_back(server: Server) -> bool:
        reply = server.api("presence", channel=channel)
        return reply == {"result": {"presence": expected}}

    # presence would be renewed by itself only after 25 seconds
    for server in (one, other):
        wait_until(lambda s=server: is_back(s), SLACK, "presence of both clients")
    wait_until(lambda: len(nodes(one)) == len(nodes(other)) == 2, SLACK, "both nodes")
    wait_until(lambda: channels(one, unique) == [channel], SLACK, "the channel")
    one.publish(channel, 1)
    for client in clients:
        assert await client.publication() == {"data": 1}
    other.api("disconnect", user=unique)
    for client in clients:
        assert (await client.closed())[0] == 3012
