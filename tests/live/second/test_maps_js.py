"""Maps with the published JavaScript client, in both formats and over all transports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.js_builds import Build
from tests.js_client import Driver
from tests.js_next import JSON_5, PROTOBUF_5, open_next
from tests.live.api_methods import call, result
from tests.live.second.conftest import OpenNext, over, over_each_transport
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

both_formats = pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])

OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "http_stream": True,
    "sse": True,
    "namespaces": [
        {
            "name": "map",
            "map": "recoverable",
            "map_publish": "client",
            "allow_tags_filter": True,
            "history_size": 50,
            "history_lifetime": 300,
        },
        {"name": "brief", "map": "ephemeral", "map_publish": "client"},
        {"name": "keyed", "map": "ephemeral", "map_publish": "subscriber", "map_key": "client"},
        {"name": "short", "map": "ephemeral", "map_key_ttl": 1},
        {
            "name": "deltas",
            "map": "persistent",
            "allowed_delta_types": ["fossil"],
        },
    ],
}


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """A server with maps."""
    return serve(**OPTIONS)


def put(server: Server, channel: str, key: str, value: Any, **extra: Any) -> None:
    result(server, "map_publish", channel=channel, key=key, data=value, **extra)


def remove(server: Server, channel: str, key: str) -> None:
    result(server, "map_remove", channel=channel, key=key)


def fill(server: Server, channel: str, count: int) -> None:
    commands = [
        {"map_publish": {"channel": channel, "key": f"k{number:04}", "data": {"n": number}}}
        for number in range(count)
    ]
    replies = call(server, "batch", commands=commands)["replies"]
    assert all("map_publish" in reply for reply in replies)


def entries(server: Server, channel: str) -> dict[str, Any]:
    """The map as the server has it."""
    kept: dict[str, Any] = {}
    cursor = ""
    while True:
        page = result(server, "map_read_state", channel=channel, cursor=cursor, limit=1000)
        kept |= {entry["key"]: entry["data"] for entry in page["entries"]}
        if not (cursor := page.get("cursor", "")):
            return kept


@over_each_transport
@pytest.mark.parametrize("namespace", ["map", "brief"])
async def test_a_map_is_read_and_changed(
    next_driver: Driver, server: Server, build: Build, transport: str, namespace: str, unique: str
) -> None:
    channel = f"{namespace}:{unique}"
    fill(server, channel, 100)
    client = await over(next_driver, server, build, transport)
    kept = await client.read_map(channel)
    context = await client.event("subscribed", channel)
    assert kept == {f"k{number:04}": {"n": number} for number in range(100)}
    assert bool(context.get("recoverable")) == (namespace == "map")

    await client.call("put", channel=channel, key="own", data={"x": 1})
    put(server, channel, "k0001", "new")
    await client.call("removeKey", channel=channel, key="k0002")
    remove(server, channel, "k0003")
    await client.map_becomes(channel, kept, entries(server, channel))
    assert (kept["own"], kept["k0001"], len(kept)) == ({"x": 1}, "new", 99)


@both_formats
async def test_a_map_of_pages_with_puts_meanwhile(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    fill(server, channel, 250)
    client = await connect_next(build)
    await client.call("subscribeMap", channel=channel, options={})
    for number in range(40):
        put(server, channel, f"k{number * 6:04}", number)
        remove(server, channel, f"k{number * 6 + 1:04}")
    kept = await client.map_read(channel)
    await client.map_becomes(channel, kept, entries(server, channel))
    assert len(kept) == 210


@both_formats
async def test_a_client_comes_back_and_recovers(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    fill(server, channel, 5)
    client = await connect_next(build, through=proxy)
    kept = await client.read_map(channel)
    await client.event("subscribed", channel)
    async with client.away(proxy):
        put(server, channel, "k0000", 9)
        remove(server, channel, "k0001")
    await client.recovered(channel)
    put(server, channel, "after", 1)
    await client.map_becomes(channel, kept, entries(server, channel))
    assert client.unread("sync", channel) == []


@both_formats
async def test_a_position_that_is_lost_begins_anew(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    fill(server, channel, 3)
    client = await connect_next(build, through=proxy)
    await client.read_map(channel)
    async with client.away(proxy):
        for number in range(51):
            put(server, channel, "hot", number)
    kept = await client.map_read(channel)
    assert kept == entries(server, channel)


@both_formats
async def test_a_filter_by_tags_holds_and_recovers(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    put(server, channel, "red", 1, tags={"team": "red"})
    put(server, channel, "blue", 2, tags={"team": "blue"})
    client = await connect_next(build, through=proxy)
    red = {"key": "team", "cmp": "eq", "val": "red"}
    kept = await client.read_map(channel, tagsFilter=red)
    assert kept == {"red": 1}
    put(server, channel, "later", 3, tags={"team": "blue"})
    put(server, channel, "more", 4, tags={"team": "red"})
    remove(server, channel, "red")
    await client.map_becomes(channel, kept, {"more": 4})
    await client.event("subscribed", channel)
    async with client.away(proxy):
        put(server, channel, "missed", 5, tags={"team": "red"})
        put(server, channel, "other", 6, tags={"team": "blue"})
    await client.recovered(channel)
    await client.map_becomes(channel, kept, {"more": 4, "missed": 5})
    await client.settle()
    assert client.unread("update", channel) == client.unread("sync", channel) == []


@both_formats
async def test_another_filter_reads_another_state(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    for team in ("red", "blue"):
        put(server, channel, team, 1, tags={"team": team})
    client = await connect_next(build)

    def only(team: str) -> dict[str, str]:
        return {"key": "team", "cmp": "eq", "val": team}

    assert await client.read_map(channel, tagsFilter=only("red")) == {"red": 1}
    await client.call("unsubscribe", channel=channel)
    await client.call("setTagsFilter", channel=channel, filter=only("blue"))
    await client.call("subscribeAgain", channel=channel)
    assert await client.map_read(channel) == {"blue": 1}


@both_formats
@pytest.mark.parametrize("namespace", ["map", "brief"])
async def test_a_map_is_empty_then_read_in_small_pages_by_two_clients(
    connect_next: OpenNext, server: Server, build: Build, namespace: str, unique: str
) -> None:
    channel = f"{namespace}:{unique}"
    one, other = await connect_next(build), await connect_next(build)
    kept = await one.read_map(channel)
    assert kept == {}
    for number in range(5):
        await one.call("put", channel=channel, key=f"k{number}", data=number)
    wanted = {f"k{number}": number for number in range(5)}
    await one.map_becomes(channel, kept, wanted)
    assert await other.read_map(channel, pageSize=2) == wanted
    await other.call("put", channel=channel, key="k5", data=5)
    await one.map_becomes(channel, kept, wanted | {"k5": 5})


@both_formats
async def test_a_subscription_that_ended_recovers(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    client = await connect_next(build)
    kept = await client.read_map(channel)
    await client.event("subscribed", channel)
    await client.call("unsubscribe", channel=channel)
    put(server, channel, "a", 1)
    put(server, channel, "b", 2)
    await client.call("subscribeAgain", channel=channel)
    await client.recovered(channel)
    await client.map_becomes(channel, kept, {"a": 1, "b": 2})
    assert client.unread("sync", channel) == []


@both_formats
async def test_a_position_that_is_lost_may_end_the_subscription(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"map:{unique}"
    client = await connect_next(build)
    await client.read_map(channel, unrecoverableStrategy="fatal")
    await client.event("subscribed", channel)
    await client.call("unsubscribe", channel=channel)
    await client.event("unsubscribed", channel)
    for number in range(51):
        put(server, channel, "hot", number)
    await client.call("subscribeAgain", channel=channel)
    assert (await client.event("unsubscribed", channel))["code"] == 112


@both_formats
async def test_an_ephemeral_map_is_read_anew_after_a_lost_connection(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    channel = f"brief:{unique}"
    put(server, channel, "old", 1)
    client = await connect_next(build, through=proxy)
    assert await client.read_map(channel) == {"old": 1}
    async with client.away(proxy):
        put(server, channel, "new", 2)
    assert await client.map_read(channel) == {"old": 1, "new": 2}


@both_formats
async def test_the_key_of_what_a_client_puts_may_be_its_own(
    connect_next: OpenNext, build: Build, unique: str
) -> None:
    channel = f"keyed:{unique}"
    client = await connect_next(build)
    await client.read_map(channel)
    await client.call("put", channel=channel, key="any", data=1)
    assert (await client.event("update", channel))["key"] == client.id


@both_formats
async def test_an_entry_whose_lifetime_ended_is_removed(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"short:{unique}"
    client = await connect_next(build)
    kept = await client.read_map(channel)
    put(server, channel, "a", 1)
    await client.map_becomes(channel, kept, {"a": 1})
    await client.map_becomes(channel, kept, {})


@both_formats
async def test_deltas_of_a_map_are_declined(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"deltas:{unique}"
    rows = [{"text": "the same long text, " * 20, "value": value} for value in range(3)]
    put(server, channel, "a", rows[0])
    client = await connect_next(build)
    kept = await client.read_map(channel, delta="fossil")
    assert kept == {"a": rows[0]}
    for row in rows[1:]:
        put(server, channel, "a", row)
        put(server, channel, "b", row)
    await client.map_becomes(channel, kept, {"a": rows[2], "b": rows[2]})


async def test_a_plain_subscription_gets_changes(
    connect_next: OpenNext, server: Server, unique: str
) -> None:
    channel = f"map:{unique}"
    client = await connect_next(JSON_5)
    await client.subscribe(channel)
    put(server, channel, "k", 1)
    assert await client.publication(channel) == 1


@pytest.mark.parametrize("kind", ["Map", "SharedPoll"])
async def test_a_map_of_another_kind_of_channel_is_refused(
    next_driver: Driver, server: Server, kind: str, unique: str
) -> None:
    client = await open_next(next_driver, JSON_5, server.socket)
    await client.connect()
    await client.call("subscribeMap", channel=unique, options={"kind": kind})
    assert (await client.event("unsubscribed", unique))["code"] == 103


@pytest.mark.parametrize("namespace", ["map", "brief"])
async def test_a_map_is_the_same_at_another_node(
    next_driver: Driver,
    shared_cluster: Callable[..., list[Server]],
    namespace: str,
    unique: str,
) -> None:
    one, other = shared_cluster(**OPTIONS)
    channel = f"{namespace}:{unique}"
    fill(one, channel, 250)
    client = await open_next(next_driver, JSON_5, other.socket)
    await client.connect()
    await client.call("subscribeMap", channel=channel, options={})
    for number in range(30):
        put(one, channel, f"k{number * 8:04}", number)
        remove(other, channel, f"k{number * 8 + 1:04}")
    kept = await client.map_read(channel)
    await client.map_becomes(channel, kept, entries(one, channel))
    assert len(kept) == 220
