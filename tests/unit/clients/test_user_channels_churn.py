"""Counts of the subscriptions of users, while everything goes on at once and the engine fails."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from realtime.cluster.control import ServerSubscription
from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import ClusterEngine

LIMIT = 6
USERS, CHANNELS = ("17", "18"), [f"plain:{letter}" for letter in "abcdefgh"]


async def connected(node: Node, user: str) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token(user))
    await eventually(lambda: connection.reply(1) is not None)
    return connection


@pytest.mark.parametrize("seed", range(10))
async def test_counts_are_those_of_the_sessions(clock: Clock, seed: int) -> None:
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(OPTIONS | {"user_channel_limit": LIMIT}), engine)
    await node.start()
    random = Random(seed)
    connections = [await connected(node, random.choice(USERS)) for _ in range(6)]
    most = 0
    limits = node.user_limits
    for _ in range(400):
        connection, channel = random.choice(connections), random.choice(CHANNELS)
        match random.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                connection.say(2, 1, channel=channel)
            case 6:
                connection.say(2, 1, channel=random.choice(["unknown:a", "$plain:a"]))
            case 7:
                connection.say(3, 2, channel=channel)
            case 8:
                node.spawn(connection.client.subscribe(ServerSubscription(channel)))
            case 9:
                node.spawn(connection.client.unsubscribe(random.choice([channel, ""])))
            case 10:
                connection.client.close(None)
            case _:
                engine.failing.add(random.choice(["subscribe", "unsubscribe"]))
        await turns(random.randrange(6))
        for user in USERS:
            open_here = node.hub.connections(user)
            counted = sum(client.num_channels for client in open_here)
            assert limits.room(user) == LIMIT - counted
            most = max(most, counted)
        if random.random() < 0.5:
            engine.failing.clear()
            open_now = [each for each in connections if not each.client.is_closing()]
            missing = len(connections) - len(open_now)
            more = [await connected(node, random.choice(USERS)) for _ in range(missing)]
            connections = open_now + more
    assert most >= LIMIT
    engine.failing.clear()
    for connection in connections:
        connection.client.close(None)
    await node.idle()

    assert [limits.room(user) for user in USERS] == [LIMIT, LIMIT]
    assert limits._channels is not None
    assert not limits._channels._of_clients
    await stop(node, clock, SHUTDOWN_TIMEOUT)
