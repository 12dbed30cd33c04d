"""What a node does in maps by itself: expiry, entries of clients that leave, presence maps."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.channel_rules import options_of
from realtime.config.reader import load
from realtime.engine.base import Outgoing
from realtime.engine.memory import MemoryBroker
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo, Publication
from realtime.timers import Timers
from tests.unit.node.node_parts import stop, subscribe
from tests.unit.parts import Clock, RecordingClient, data, eventually, turns
from tests.unit.suspended_engine import SuspendedEngine

EXPIRE = 60
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "client_presence_ping_interval": 25,
    "client_presence_expire_interval": EXPIRE,
    "namespaces": [
        {"name": "lobby", "map": "recoverable", "map_key_ttl": 10},
        {"name": "cursors", "map": "ephemeral", "map_key_ttl": 10},
        {"name": "flags", "map": "persistent"},
        {
            "name": "own",
            "map": "recoverable",
            "map_key": "client",
            "map_remove_on_unsubscribe": True,
            "history_recover": True,
        },
        {
            "name": "passing",
            "map": "ephemeral",
            "map_key": "client",
            "map_remove_on_unsubscribe": True,
        },
        {"name": "room", "presence": True, "presence_maps": ["clients", "users"]},
        {"name": "small", "presence": True, "presence_maps": ["few"]},
        {"name": "few", "map": "ephemeral", "map_key": "client", "map_max_keys": 1},
        {"name": "clients", "map": "recoverable", "map_key": "client"},
        {"name": "users", "map": "ephemeral", "map_key": "user"},
    ],
}
MORTAL = ["lobby:1", "cursors:1"]


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return SuspendedEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(clock: Clock, engine: SuspendedEngine) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), engine)
    await made.start()
    yield made
    await stop(made, clock, 5)


async def put(node: Node, channel: str, key: str, value: int = 1, **how: Any) -> None:
    publication = Publication(data(str(value)), uid=f"{key}{value}", key=key)
    options = options_of(channel, node.config)
    assert (await node.broker.publish(Outgoing(channel, publication, options, **how))).kept


async def keys(node: Node, channel: str) -> list[str]:
    assert node.maps is not None
    return [entry.key for entry in (await node.maps.page(channel, limit=10_000)).entries]


async def come(node: Node, client: RecordingClient, channel: str) -> RecordingClient:
    """Subscribe a client as the options of the channel say. Return it."""
    return await subscribe(node, client, options_of(channel, node.config), channel)


async def go(node: Node, client: RecordingClient, channel: str) -> None:
    options = options_of(channel, node.config)
    await node.subscriptions.remove(channel, client, options, leave=client.info_in(channel))


def changes(client: RecordingClient) -> list[tuple[str, bool]]:
    """The keys of the changes that a client got, and whether they were removed."""
    found = [json.loads(message)["result"]["data"]["data"] for message in client.pushed]
    return [(each["key"], each.get("removed", False)) for each in found]


# expiry


@pytest.mark.parametrize("channel", MORTAL)
async def test_a_node_removes_an_entry_within_two_seconds(
    node: Node, clock: Clock, channel: str
) -> None:
    watcher = await come(node, RecordingClient(), channel)
    await put(node, channel, "a")
    await put(node, channel, "b", ttl=100)
    await clock.advance(9.9)
    await turns(20)
    assert await keys(node, channel) == ["a", "b"]

    for _ in range(2):
        await clock.advance(1)
        await turns(20)

    assert await keys(node, channel) == ["b"]
    assert changes(watcher) == [("a", False), ("b", False), ("a", True)]
    await clock.advance(10)
    await turns(20)
    assert len(watcher.pushed) == 3


async def test_more_entries_than_one_step_go_at_once(node: Node, clock: Clock) -> None:
    for number in range(250):
        await put(node, "lobby:1", f"{number}")
    await put(node, "flags:1", "a")
    await clock.advance(11)
    await eventually(lambda: "lobby:1" not in node.broker.maps)  # type: ignore[attr-defined]
    assert await keys(node, "flags:1") == ["a"]


async def test_an_entry_that_was_put_again_stays(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    await put(node, "lobby:1", "a")
    engine.hold("publish")
    await clock.advance(11)
    await engine.reached("publish")
    again = Publication(data("2"), uid="a2", key="a")
    outgoing = Outgoing("lobby:1", again, options_of("lobby:1", node.config))
    await MemoryBroker.publish(engine.broker, outgoing)
    engine.go_on("publish")
    await turns(20)
    await clock.advance(1)
    await turns(20)
    assert await keys(node, "lobby:1") == ["a"]


async def test_entries_of_a_namespace_that_is_gone_expire(node: Node, clock: Clock) -> None:
    options = options_of("lobby:1", node.config)
    for channel in ("gone:1", "room:1"):
        publication = Publication(data("1"), uid="x", key="a")
        await node.broker.publish(Outgoing(channel, publication, options))
    await clock.advance(11)
    await turns(20)
    assert await keys(node, "gone:1") == await keys(node, "room:1") == []


async def test_an_outage_is_logged_once_and_the_expiry_goes_on(
    node: Node, engine: SuspendedEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "realtime.node")
    await put(node, "lobby:1", "a")
    engine.failing.add("publish")
    for _ in range(14):
        await clock.advance(1)
        await turns(20)
    assert [record.getMessage() for record in caplog.records] == [
        "Could not remove expired entries of maps, will retry: the engine cannot be reached"
    ]
    engine.failing.clear()
    await clock.advance(1)
    await turns(20)
    assert await keys(node, "lobby:1") == []


async def test_a_part_of_the_engine_that_is_away_is_logged_once(
    node: Node,
    engine: SuspendedEngine,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert engine.maps is not None
    due = engine.maps.due

    async def due_elsewhere(limit: int) -> list[tuple[str, str] | EngineUnavailable]:
        return [*await due(limit), EngineUnavailable("redis2 cannot be reached")]

    monkeypatch.setattr(engine.maps, "due", due_elsewhere)
    caplog.set_level(logging.WARNING, "realtime.node")
    await put(node, "lobby:1", "a")
    for _ in range(14):
        await clock.advance(1)
        await turns(20)
    assert await keys(node, "lobby:1") == []
    assert [record.getMessage() for record in caplog.records] == [
        "Could not remove expired entries of maps, will retry: redis2 cannot be reached"
    ]


async def test_a_node_without_maps_does_not_look(clock: Clock) -> None:
    node = Node(load({"namespaces": [{"name": "room", "presence": True}]}))
    await node.start()
    publication = Publication(data("1"), key="a")
    options = options_of("lobby:1", load(OPTIONS))
    await node.broker.publish(Outgoing("lobby:1", publication, options))
    await clock.advance(20)
    await turns(20)
    assert await keys(node, "lobby:1") == ["a"]
    await stop(node, clock, 5)


async def test_a_stopped_node_does_not_look(clock: Clock, engine: SuspendedEngine) -> None:
    node = Node(load(OPTIONS), engine)
    await node.start()
    await put(node, "lobby:1", "a")
    await stop(node, clock, 5)
    await clock.advance(20)
    await turns(20)
    assert await keys(node, "lobby:1") == ["a"]


# entries of clients that leave


@pytest.mark.parametrize("channel", ["own:1", "passing:1"])
async def test_the_entry_of_a_client_goes_with_its_subscription(node: Node, channel: str) -> None:
    leaving, other = RecordingClient("L"), RecordingClient("O")
    for client in (leaving, other):
        await come(node, client, channel)
    for key in ("L", "O", "17"):
        await put(node, channel, key)

    await go(node, leaving, channel)

    assert await keys(node, channel) == ["17", "O"]
    puts = [("L", False), ("O", False), ("17", False)]
    assert changes(leaving) == changes(other) == [*puts, ("L", True)]
    assert leaving.pushed == other.pushed
    assert node.hub.feeds[channel].present() == [other]
    await go(node, other, channel)
    assert channel not in node.hub.feeds


@pytest.mark.parametrize("channel", ["own:1", "passing:1"])
async def test_a_client_without_an_entry_leaves_no_change(node: Node, channel: str) -> None:
    leaving, other = RecordingClient("L"), RecordingClient("O")
    for client in (leaving, other):
        await come(node, client, channel)
    await go(node, leaving, channel)
    assert leaving.pushed == other.pushed == []


async def test_the_entry_stays_where_the_option_is_off(node: Node) -> None:
    client = await come(node, RecordingClient("L"), "lobby:1")
    await put(node, "lobby:1", "L")
    await go(node, client, "lobby:1")
    assert await keys(node, "lobby:1") == ["L"]


async def test_a_subscription_ends_although_its_entry_stays(
    node: Node, engine: SuspendedEngine
) -> None:
    client = await come(node, RecordingClient("L"), "own:1")
    await put(node, "own:1", "L")
    engine.failing.add("publish")
    with pytest.raises(Exception, match="the engine cannot be reached"):
        await go(node, client, "own:1")
    assert "own:1" not in node.hub.feeds
    assert node.subscriptions.count == 0


# presence maps


async def test_maps_show_who_is_in_a_channel(node: Node) -> None:
    watcher, users = RecordingClient("W"), RecordingClient("X")
    await come(node, watcher, "clients:room:1")
    await come(node, users, "users:room:1")
    first, second = RecordingClient("A", "7"), RecordingClient("B", "7")
    nameless, odd = RecordingClient("C", ""), RecordingClient("D", "x" * 256)
    for client in (first, second, nameless, odd):
        await come(node, client, "room:1")

    assert node.maps is not None
    page = await node.maps.page("clients:room:1")
    assert [(entry.key, entry.info) for entry in page.entries] == [
        (client.id, ClientInfo(client.user, client.id)) for client in (first, second, nameless, odd)
    ]
    assert {entry.data.raw for entry in page.entries} == {b"null"}
    assert changes(watcher) == [(key, False) for key in "ABCD"]
    [entry] = (await node.maps.page("users:room:1")).entries
    assert (entry.key, entry.info) == ("7", ClientInfo("7", ""))
    assert changes(users) == [("7", False)]

    await go(node, first, "room:1")
    await go(node, odd, "room:1")
    assert await keys(node, "clients:room:1") == ["B", "C"]
    assert changes(watcher)[4:] == [("A", True), ("D", True)]
    await go(node, second, "room:1")
    assert await keys(node, "users:room:1") == ["7"]


async def test_refreshes_renew_the_entries_and_send_nothing(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    client, other = RecordingClient("A", "7"), RecordingClient("B", "8")
    await come(node, client, "room:1")
    await come(node, other, "room:1")
    watcher = await come(node, RecordingClient("W"), "clients:room:1")

    async def live_on(seconds: int) -> None:
        for _ in range(seconds):
            await clock.advance(1)
            await turns(20)

    await live_on(3 * EXPIRE)
    assert await keys(node, "clients:room:1") == ["A", "B"]
    assert await keys(node, "users:room:1") == ["7", "8"]
    assert watcher.pushed == []
    await go(node, client, "room:1")
    await live_on(EXPIRE + 2)
    assert await keys(node, "users:room:1") == ["8"]
    assert changes(watcher) == [("A", True)]


async def test_lost_entries_come_back_with_the_refresh(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    client = await come(node, RecordingClient("A", "7"), "room:1")
    engine.broker.lose_everything()
    assert await keys(node, "clients:room:1") == []
    await clock.advance(26)
    await turns(20)
    assert await keys(node, "clients:room:1") == [client.id]


async def test_a_client_that_leaves_during_a_refresh_does_not_come_back(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    client = await come(node, RecordingClient("A", "7"), "room:1")
    engine.hold("presence.add")
    await clock.advance(26)
    await engine.reached("presence.add")
    going = asyncio.create_task(go(node, client, "room:1"))
    await turns(20)
    engine.go_on("presence.add")
    await going
    await turns(20)
    assert await keys(node, "clients:room:1") == []


async def test_an_observer_is_in_no_presence_map(node: Node) -> None:
    options = options_of("room:1", node.config)
    await subscribe(node, RecordingClient("O"), options, "room:1", visible=False)
    assert await keys(node, "clients:room:1") == []


async def test_a_full_presence_map_is_logged_once(
    node: Node, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for client in "ABC":
        await come(node, RecordingClient(client), "small:1")
    await clock.advance(26)
    await turns(20)
    assert await keys(node, "few:small:1") == ["A"]
    assert [record.getMessage() for record in caplog.records] == [
        "The presence maps of 'small:1' lack clients: see map_max_keys"
    ]
