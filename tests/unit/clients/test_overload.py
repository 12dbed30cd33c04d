"""What clients get from a process whose event loop is late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node import loop_lag
from realtime.node.node import Node
from tests.unit.node.node_parts import HISTORY, Connection, publish

PRESENCE, PRESENCE_STATS, HISTORY_OF = 4, 5, 6
TOO_MANY = 111
LAG = 0.02
HELD = loop_lag.INTERVAL + 3 * LAG
"""Seconds of work in each turn: every look is late by more than `LAG`."""


@pytest.fixture
async def node(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.setattr(loop_lag, "PATIENCE", loop_lag.INTERVAL)
    options = {"presence": True, "history_size": 10, "history_lifetime": 60, "overload_lag": LAG}
    node = Node(load({"client_insecure": True, **options}))
    await node.start()
    yield node
    await node.stop()


async def hold() -> None:
    """Hold the event loop in each of its turns."""
    while True:
        time.sleep(HELD)
        await asyncio.sleep(0)


async def until(node: Node, *, overloaded: bool) -> None:
    deadline = time.monotonic() + 30
    while node.loop_lag.is_overloaded is not overloaded:
        assert time.monotonic() < deadline, f"the node did not become {overloaded=}"
        await asyncio.sleep(0.01)


async def ask(connection: Connection) -> list[int]:
    """The error codes of the queries, 0 for those without an error."""
    connection.messages.clear()
    for method in (PRESENCE, PRESENCE_STATS, HISTORY_OF):
        await connection.say(method, method, channel="a")
    deadline = time.monotonic() + 30
    while len(replies := [m for m in connection.messages if "id" in m]) < 3:
        assert time.monotonic() < deadline, "a query was not answered"
        await asyncio.sleep(0.01)
    return [reply.get("error", {}).get("code", 0) for reply in replies]


async def test_late_process_refuses_queries_and_delivers_publications(node: Node) -> None:
    connection = Connection(node)
    await connection.say(1, 0)
    await connection.subscribe()
    before = await ask(connection)

    work = asyncio.create_task(hold())
    await until(node, overloaded=True)
    during = await ask(connection)
    await publish(node, HISTORY, 1)
    while not connection.pushes:
        await asyncio.sleep(0)
    still = node.loop_lag.is_overloaded
    work.cancel()
    await until(node, overloaded=False)

    assert (before, during) == ([0] * 3, [TOO_MANY] * 3)
    assert still
    assert await ask(connection) == [0] * 3
    assert connection.closes == []
