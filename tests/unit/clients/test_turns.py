"""One client does not hold up the others: whatever its frames hold, they get turns in between."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from realtime.clients.dispatch import COMMANDS_PER_TURN
from realtime.config.reader import load
from realtime.engine.memory import MemoryEngine
from realtime.errors import DisconnectStale
from realtime.node.hooks import Caller, Hooks, Identity
from realtime.node.limits.connect_queue import PER_TURN
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, data

SLOW = 3008
QUEUE = 10 * 100_000
"""`client_queue_max_size`: ten histories and less than eleven."""


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    node = Node(
        load(
            {
                "client_insecure": True,
                "history_size": 10,
                "history_lifetime": 300,
                "client_queue_max_size": QUEUE,
            }
        ),
        MemoryEngine(Timers(asyncio.get_running_loop())),
    )
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
async def connection(node: Node) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0)
    return connection


async def turns_during(connection: Connection, frames: Iterable[bytes]) -> int:
    """Return how many turns another task gets while a client's frames are handled."""
    counted = itertools.count()

    async def count() -> None:
        while True:
            next(counted)
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    await asyncio.sleep(0)
    for frame in frames:
        await connection.dispatcher.receive(frame)
    other.cancel()
    return next(counted) - 1


@pytest.mark.parametrize(
    ("frame", "number"),
    [
        (b'{"id":2,"method":7}', 10 * COMMANDS_PER_TURN),
        (b" ", 10 * COMMANDS_PER_TURN),
        (b"\n" * 4096, 3 * COMMANDS_PER_TURN),
        (b'{"id":2,"method":7}' + b"\n" * 65_000, 10),
    ],
    ids=["commands", "white space", "more of it", "commands with white space"],
)
async def test_frames_give_others_turns(connection: Connection, frame: bytes, number: int) -> None:
    assert await turns_during(connection, itertools.repeat(frame, number)) >= 9
    assert connection.closes == []


async def test_large_replies_of_one_frame_give_others_turns(
    node: Node, connection: Connection
) -> None:
    for _ in range(10):
        await node.publish("a", data(f'"{"x" * 9_000}"'), node.config.channel)
    await connection.subscribe()
    commands = [{"id": n, "method": 6, "params": {"channel": "a"}} for n in range(10, 30)]
    frame = "\n".join(map(json.dumps, commands)).encode()
    assert await turns_during(connection, [frame]) >= 19
    assert connection.reply(29) is not None


async def test_commands_stop_when_the_queue_is_full(node: Node, connection: Connection) -> None:
    for _ in range(10):
        await node.publish("a", data(f'"{"x" * 9_000}"'), node.config.channel)
    await connection.subscribe()
    connection.ready = False
    asked = 0
    history = node.broker.history

    async def counting(*args: Any, **named: Any) -> object:
        nonlocal asked
        asked += 1
        return await history(*args, **named)

    node.broker.history = counting  # type: ignore[method-assign,assignment]
    commands = [{"id": n, "method": 6, "params": {"channel": "a"}} for n in range(10, 30)]

    await connection.dispatcher.receive("\n".join(map(json.dumps, commands)).encode())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert connection.closes == [SLOW]
    assert asked <= 12


class CountingHooks(Hooks):
    """A site that counts how often it is asked who connects."""

    asked = 0

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        self.asked += 1
        return Identity("17")


@pytest.mark.parametrize("closes", [False, True])
async def test_client_that_closed_while_it_waited_is_not_identified(
    clock: Clock, closes: bool
) -> None:
    hooks = CountingHooks()
    node = Node(load({}), hooks=hooks)
    await node.start()
    connection = Connection(node)
    others = [asyncio.create_task(node.admission.queue.turn()) for _ in range(PER_TURN)]
    connecting = connection.say(1, 0)
    await asyncio.sleep(0)
    if closes:
        connection.client.close(DisconnectStale())
    await asyncio.gather(connecting, *others)

    assert hooks.asked == (0 if closes else 1)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
