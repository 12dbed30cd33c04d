"""Two nodes over one Redis: joins and leaves of users, signals, and the death of a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.cluster.dead_nodes import CLAIM
from realtime.cluster.peers import HEARTBEAT_LIFETIME
from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.base import Joined, Notice
from realtime.engine.lists import Kind
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.node.hooks import Events
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo
from tests.engine.redis_bench import age
from tests.redis_server import RedisServer
from tests.unit.parts import RecordingClient, eventually

ROOM = "room"
AT_ONCE = ChannelOptions(presence=True, join_leave="user")
DELAYED = ChannelOptions(presence=True, join_leave="user", leave_delay=60.0)

Told = list[tuple[Any, ...]]


class RecordingEvents(Events):
    """Signals that a node emitted."""

    def __init__(self) -> None:
        self.told: Told = []
        self.keeps_up = True

    def emit(self, kind: str, **details: Any) -> None:
        if kind.startswith(("user_", "channel_")):
            self.told.append((kind, *details.values()))

    async def drained(self, timeout: float) -> bool:
        return self.keeps_up

    async def close(self) -> None:
        pass


class Site:
    """A node, its signals, and a client that watches the room."""

    def __init__(self, server: RedisServer, prefix: str) -> None:
        layer = RedisChannelLayer(hosts=[server.url], prefix=prefix, timeout=20)
        self.events = RecordingEvents()
        engine = RedisEngine(layer.bus, prefix)
        self.node = Node(load({}), engine, events=self.events, lists_users=True)
        self.engine = engine
        self.clients: dict[str, RecordingClient] = {}

    @property
    def told(self) -> Told:
        return self.events.told

    def connect(self, client: str, user: str) -> None:
        self.clients[client] = RecordingClient(client, user)
        self.node.hub.add(self.clients[client])

    def close(self, client: str) -> None:
        self.node.hub.remove(self.clients.pop(client))

    async def join(self, client: str, user: str, options: ChannelOptions = AT_ONCE) -> None:
        await self.node.subscriptions.join(ROOM, ClientInfo(user, client), options)
        await self.engine.lists.idle()

    async def leave(self, client: str, user: str, options: ChannelOptions = AT_ONCE) -> None:
        member = RecordingClient(client, user)
        info = ClientInfo(user, client)
        await self.node.subscriptions.remove(ROOM, member, options, leave=info)
        await self.engine.lists.idle()

    async def freeze(self) -> None:
        """Send no more heartbeats, and sweep nothing: as a process that is stopped."""
        assert self.node._peers is not None
        self.node._peers.begin_stop()

    async def sweep(self) -> None:
        """Look for nodes that died."""
        sweeper = self.node._sweeper
        assert sweeper is not None
        await sweeper.sweep()


Sites = tuple[Site, Site]


@pytest.fixture
async def sites(redis_server: RedisServer, unique: str) -> AsyncIterator[Sites]:
    one, other = Site(redis_server, unique), Site(redis_server, unique)
    for site in (one, other):
        await site.node.start()
        site.node._sweeper._timer.cancel()  # type: ignore[union-attr] # the tests sweep
    yield one, other
    for site in (one, other):
        await site.node.stop()


class Joins:
    """The joins and leaves that both nodes published."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def watch(self, site: Site) -> None:
        def on_notice(channel: str, notice: Notice) -> None:
            kind = "join" if isinstance(notice, Joined) else "leave"
            self.seen.append((kind, notice.info.user))

        site.node.on_notice = on_notice


@pytest.fixture
async def joins(sites: Sites) -> Joins:
    """What a node that is subscribed to the room receives."""
    watching = Joins()
    watching.watch(sites[1])
    await sites[1].node.broker.subscribe(ROOM)
    return watching


async def die(sites: Sites, server: RedisServer, prefix: str) -> None:
    """Let the first node count as dead; the other one goes on."""
    await sites[0].freeze()
    with server.client() as client:
        age(client, prefix, int(HEARTBEAT_LIFETIME * 1000) + 1)
    assert sites[1].node._peers is not None
    await sites[1].node._peers.heartbeat()


async def test_user_is_online_once_and_offline_once_over_both(sites: Sites) -> None:
    one, other = sites
    for number in range(3):
        one.connect(f"A{number}", "7")
        other.connect(f"B{number}", "7")
    await eventually(lambda: len(one.told + other.told) == 1)
    assert [told[:2] for told in one.told + other.told] == [("user_online", "7")]

    for number in range(3):
        one.close(f"A{number}")
    await one.engine.lists.idle()
    assert len(one.told + other.told) == 1
    for number in range(3):
        other.close(f"B{number}")

    await eventually(lambda: ("user_offline", "7", True) in other.told)
    assert len(one.told + other.told) == 2


async def test_user_joins_once_and_leaves_once_over_both(sites: Sites, joins: Joins) -> None:
    one, other = sites
    await one.join("A", "7")
    await other.join("B", "7")
    await one.leave("A", "7")
    await other.join("C", "8")
    await eventually(lambda: ("join", "8") in joins.seen)
    assert joins.seen == [("join", "7"), ("join", "8")]

    await other.leave("B", "7")

    await eventually(lambda: joins.seen[2:] == [("leave", "7")])


async def test_return_at_another_node_within_the_delay_tells_nothing(
    sites: Sites, joins: Joins
) -> None:
    one, other = sites
    await one.join("A", "7", DELAYED)
    await one.leave("A", "7", DELAYED)
    await other.join("B", "7", DELAYED)
    one.node._user_joins._gone(f"{len(ROOM)}:{ROOM}7")  # the delay is over
    await one.engine.lists.idle()
    await other.join("C", "8")

    await eventually(lambda: ("join", "8") in joins.seen)
    assert joins.seen == [("join", "7"), ("join", "8")]


async def test_delay_goes_on_when_its_node_stops(
    sites: Sites, joins: Joins, redis_server: RedisServer, unique: str
) -> None:
    one, other = sites
    for user in ("7", "8"):
        await one.join(f"A{user}", user, DELAYED)
        await one.leave(f"A{user}", user, DELAYED)
    await one.node.stop()
    await other.sweep()
    await other.join("B", "7", DELAYED)
    assert joins.seen == [("join", "7"), ("join", "8")]

    with redis_server.client() as client:
        age(client, unique, 60_001)
    assert other.node._peers is not None
    await other.node._peers.heartbeat()
    await other.sweep()

    await eventually(lambda: joins.seen[2:] == [("leave", "8")])


async def test_ends_at_a_node_that_died_are_told_once(
    sites: Sites, joins: Joins, redis_server: RedisServer, unique: str
) -> None:
    one, other = sites
    users = [str(number) for number in range(500)]
    for user in users:
        one.connect(f"A{user}", user)
        await one.node.subscriptions.join(ROOM, ClientInfo(user, f"A{user}"), AT_ONCE)
    await one.node.broker.subscribe("alone")
    await one.engine.lists.idle()
    for user in users[:100]:
        other.connect(f"B{user}", user)
    await other.engine.lists.idle()
    await eventually(lambda: len(joins.seen) == len(users))
    await die(sites, redis_server, unique)
    joins.seen.clear()
    other.told.clear()

    for _ in range(2):
        await other.sweep()

    await eventually(lambda: len(joins.seen) == len(users))
    assert Counter(joins.seen) == Counter(("leave", user) for user in users)
    assert Counter(other.told) == Counter(
        [
            *(("user_offline", user, False) for user in users[100:]),
            ("channel_vacated", "alone", False),
        ]
    )


async def test_only_the_owner_of_the_claim_sweeps(
    sites: Sites, redis_server: RedisServer, unique: str
) -> None:
    one, other = sites
    one.connect("A", "7")
    await one.engine.lists.idle()
    await die(sites, redis_server, unique)
    assert other.node.cluster is not None
    await other.node.cluster.claim(CLAIM, "another node", 60)

    await other.sweep()
    assert other.told == []

    await other.node.cluster.claim(CLAIM, "another node", 0)
    await other.sweep()
    assert other.told == [("user_offline", "7", False)]


async def test_sweeper_stops_while_receivers_do_not_keep_up(
    sites: Sites, redis_server: RedisServer, unique: str
) -> None:
    one, other = sites
    users = [str(number) for number in range(300)]
    for user in users:
        one.connect(f"A{user}", user)
    await one.engine.lists.idle()
    await die(sites, redis_server, unique)
    other.events.keeps_up = False

    await other.sweep()
    first = len(other.told)
    assert 0 < first < len(users)
    assert other.node.cluster is not None
    assert await other.node.cluster.owner(CLAIM) is None

    other.events.keeps_up = True
    await other.sweep()
    assert sorted(told[1] for told in other.told) == sorted(users)


async def test_node_that_comes_back_lists_its_users_anew(
    sites: Sites, redis_server: RedisServer, unique: str
) -> None:
    one, other = sites
    one.connect("A", "7")
    await eventually(lambda: one.told == [("user_online", "7")])
    await die(sites, redis_server, unique)
    await other.sweep()
    assert other.told == [("user_offline", "7", False)]

    assert one.node._peers is not None
    await one.node._peers.heartbeat()

    assert one.told == [("user_online", "7"), ("user_online", "7")]
    assert await other.node.lists.listed(Kind.USERS, ["7"]) == [True]


async def test_without_the_app_no_users_are_listed(redis_server: RedisServer, unique: str) -> None:
    layer = RedisChannelLayer(hosts=[redis_server.url], prefix=unique)
    node = Node(load({}), RedisEngine(layer.bus, unique))
    await node.start()
    node.hub.add(RecordingClient("A", "7"))
    assert list(await node.lists.names(Kind.USERS)) == []
    await node.stop()
