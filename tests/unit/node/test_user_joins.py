"""One join and one leave for each user of a channel, at one node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo
from realtime.timers import Timers
from tests.unit.node.node_parts import subscribe
from tests.unit.parts import Clock, RecordingClient, data, turns
from tests.unit.suspended_engine import SuspendedEngine

DELAY = 3.0
AT_ONCE = ChannelOptions(presence=True, join_leave="user")
DELAYED = ChannelOptions(presence=True, join_leave="user", leave_delay=DELAY)


def pushes(watcher: RecordingClient) -> list[tuple[str, str, str]]:
    """The joins and leaves that a client got: kind, user and client."""
    kinds = {1: "join", 2: "leave"}
    found = []
    for message in watcher.pushed:
        result: dict[str, Any] = json.loads(message)["result"]
        info = result["data"]["info"]
        found.append((kinds[result["type"]], info["user"], info["client"]))
    return found


@pytest.fixture
async def watcher(node: Node) -> RecordingClient:
    """A client in the channel "a", whose own join nobody published."""
    return await subscribe(node, RecordingClient("W", "watcher"), AT_ONCE)


async def enter(
    node: Node, client: str, user: str = "7", options: ChannelOptions = AT_ONCE
) -> None:
    await node.subscriptions.join("a", ClientInfo(user, client), options)
    await turns()


async def leave(
    node: Node, client: str, user: str = "7", options: ChannelOptions = AT_ONCE
) -> None:
    info = ClientInfo(user, client)
    await node.subscriptions.remove("a", RecordingClient(client, user), options, leave=info)
    await turns()


async def test_first_connection_joins_and_the_last_one_leaves(
    node: Node, watcher: RecordingClient
) -> None:
    for client in ("C1", "C2", "C3"):
        await enter(node, client)
    for client in ("C1", "C3"):
        await leave(node, client)
    assert pushes(watcher) == [("join", "7", "C1")]
    await leave(node, "C2")
    assert pushes(watcher) == [("join", "7", "C1"), ("leave", "7", "")]


async def test_join_has_the_info_of_the_connection(node: Node, watcher: RecordingClient) -> None:
    info = ClientInfo("7", "C1", data('{"name": "Ann"}'))
    await node.subscriptions.join("a", info, AT_ONCE)
    await turns()
    pushed = json.loads(watcher.pushed[0])["result"]["data"]["info"]
    assert pushed == {"user": "7", "client": "C1", "conn_info": {"name": "Ann"}}


async def test_users_and_channels_are_counted_apart(node: Node, watcher: RecordingClient) -> None:
    await enter(node, "C1", "7")
    await enter(node, "C2", "8")
    await node.subscriptions.join("b", ClientInfo("7", "C1"), AT_ONCE)
    await leave(node, "C1", "7")
    assert pushes(watcher) == [("join", "7", "C1"), ("join", "8", "C2"), ("leave", "7", "")]


@pytest.mark.parametrize("user", ["", "x" * 256], ids=["anonymous", "very long"])
async def test_users_that_are_not_counted_join_with_each_connection(
    node: Node, watcher: RecordingClient, user: str
) -> None:
    for client in ("C1", "C2"):
        await enter(node, client, user)
    await leave(node, "C1", user)
    assert pushes(watcher) == [("join", user, "C1"), ("join", user, "C2"), ("leave", user, "C1")]


async def test_connection_that_never_joined_does_not_leave(
    node: Node, watcher: RecordingClient
) -> None:
    await enter(node, "C1")
    await leave(node, "C2")
    await leave(node, "C3", "8")
    assert pushes(watcher) == [("join", "7", "C1")]


async def test_user_leaves_although_presence_cannot_be_removed(clock: Clock) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    node = Node(load({}), engine)
    await node.start()
    watcher = await subscribe(node, RecordingClient("W", "watcher"), AT_ONCE)
    await enter(node, "C1")
    await turns()
    engine.failing.add("presence.remove")

    with pytest.raises(EngineUnavailable):
        await leave(node, "C1")
    await turns()

    assert pushes(watcher) == [("join", "7", "C1"), ("leave", "7", "")]
    engine.failing.clear()
    await node.stop()


async def test_reload_within_the_delay_tells_nothing(
    node: Node, watcher: RecordingClient, clock: Clock
) -> None:
    await enter(node, "C1", options=DELAYED)
    for client in ("C2", "C3", "C4"):
        await leave(node, f"C{int(client[1]) - 1}", options=DELAYED)
        await clock.advance(DELAY - 0.1)
        await enter(node, client, options=DELAYED)
    await clock.advance(2 * DELAY)
    assert pushes(watcher) == [("join", "7", "C1")]


async def test_user_who_stays_away_leaves_after_the_delay(
    node: Node, watcher: RecordingClient, clock: Clock
) -> None:
    await enter(node, "C1", options=DELAYED)
    await leave(node, "C1", options=DELAYED)
    await clock.advance(DELAY - 0.1)
    assert pushes(watcher) == [("join", "7", "C1")]
    await clock.advance(0.2)
    assert pushes(watcher) == [("join", "7", "C1"), ("leave", "7", "")]
    await enter(node, "C2", options=DELAYED)
    assert pushes(watcher)[2:] == [("join", "7", "C2")]


@pytest.mark.parametrize("name", ["", "people7", "x:people7", ":people7"])
async def test_end_with_a_name_that_no_node_wrote_is_ignored(node: Node, name: str) -> None:
    node._user_joins.on_last(name)
