"""The module of maps in a browser: `map`, its entries and its changes."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.client_module.page import OPTIONS, ClientPage
from tests.live.conftest import NewProxy
from tests.server import API_KEY, Server
from tests.tcp_proxy import TcpProxy

KEPT = 20
"""Changes that the server keeps."""
MAPS: list[dict[str, Any]] = [
    {"name": "kept", "map": "persistent", "map_publish": "subscriber", "history_size": KEPT},
    {"name": "short", "map": "ephemeral", "map_key_ttl": 600},
]
SHARE = """
    const { map } = await import("/static/realtime/maps.js");
    window.map = map;
    window.heard = [];
    window.lobby = map(client, args[0]);
    lobby.on("sync", ({ entries }) => heard.push(["sync", Object.fromEntries(entries)]));
    lobby.on("update", ({ key, data, removed }) => heard.push([key, data, removed]));
"""
HEARD = """
    while (heard.length < args[0]) await new Promise((go) => setTimeout(go, 5));
    return heard.splice(0);
"""
ENTRIES = "return Object.fromEntries(lobby.entries)"


@pytest.fixture(params=[True, False], ids=["offset", "seq and gen"])
def server(
    request: pytest.FixtureRequest, serve: Callable[..., Server], site: dict[str, str]
) -> Server:
    """A site with maps, once per way to write positions."""
    namespaces = [*OPTIONS["namespaces"], *MAPS]
    options = OPTIONS | {"namespaces": namespaces, "v3_use_offset": request.param}
    return serve(environment=site, **options)


@pytest.fixture
async def proxy(server: Server, new_proxy: NewProxy) -> TcpProxy:
    return await new_proxy(server)


@pytest.fixture
def channel(unique: str) -> str:
    return f"kept:{unique}"


def change(server: Server, method: str, **params: Any) -> dict[str, Any]:
    """Call a method of maps, which only the API of today's generation has."""
    request = urllib.request.Request(
        f"{server.address}/api/{method}",
        json.dumps(params).encode(),
        {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        found: dict[str, Any] = json.loads(response.read())
        assert "error" not in found
        return found


def put(server: Server, channel: str, **entries: Any) -> None:
    for key, data in entries.items():
        change(server, "map_publish", channel=channel, key=key, data=data)


def stored(server: Server, channel: str) -> dict[str, Any]:
    """The map that the server has."""
    entries: dict[str, Any] = {}
    cursor = ""
    while True:
        page = change(server, "map_read_state", channel=channel, cursor=cursor)["result"]
        entries |= {each["key"]: each["data"] for each in page["entries"]}
        cursor = page.get("cursor", "")
        if not cursor:
            return entries


async def test_page_has_the_whole_map_and_each_change_after(
    server: Server, page: ClientPage, channel: str
) -> None:
    many = {f"key {number:03}": {"n": number} for number in range(250)}
    put(server, channel, **many)
    await page.connected(server.socket)
    await page.run(SHARE, channel)
    assert await page.run(HEARD, 1) == [["sync", many]]

    put(server, channel, a=1, b=None)
    change(server, "map_remove", channel=channel, key="a")
    assert await page.run(HEARD, 3) == [["a", 1, False], ["b", None, False], ["a", None, True]]
    assert await page.run(ENTRIES) == many | {"b": None} == stored(server, channel)


async def test_page_changes_the_map(server: Server, page: ClientPage, channel: str) -> None:
    await page.connected(server.socket)
    await page.run(SHARE, channel)
    await page.run("await lobby.put('seat', { user: 7 }); await lobby.put('x', null)")
    await page.run("await lobby.remove('x')")
    assert (await page.run(HEARD, 4))[1:] == [
        ["seat", {"user": 7}, False],
        ["x", None, False],
        ["x", None, True],
    ]
    assert stored(server, channel) == {"seat": {"user": 7}}
    assert await page.run("return lobby.get('seat').user") == 7
    assert await page.error("await lobby.put('', 1)") == 107


async def test_parts_of_a_page_share_a_map(server: Server, page: ClientPage, channel: str) -> None:
    put(server, channel, a=1)
    await page.connected(server.socket)
    await page.run(SHARE, channel)
    await page.run(HEARD, 1)
    assert await page.run(
        "const other = map(client, args[0]); const first = lobby;"
        "const entries = await new Promise((go) => other.on('sync', (e) => go(e.entries)));"
        "first.release(); window.lobby = other; return Object.fromEntries(entries)",
        channel,
    ) == {"a": 1}
    put(server, channel, b=2)
    await page.run("while (lobby.entries.size < 2) await new Promise((go) => setTimeout(go, 5))")
    assert await page.run("return heard") == [], "it was released"
    await page.run("lobby.release(); await new Promise((go) => setTimeout(go, 20))")
    assert await page.run("return client.subscriptions.length") == 0
    await page.run("client.subscribe(args[0])", channel)
    assert await page.error("map(client, args[0])", channel) == 105


async def test_missed_changes_are_updates_and_too_many_are_a_new_sync(
    server: Server, proxy: TcpProxy, page: ClientPage, channel: str
) -> None:
    put(server, channel, a=1, b=2)
    await page.connected(proxy.url, fallback=False)
    await page.run(SHARE, channel)
    await page.run(HEARD, 1)
    async with page.away(proxy):
        put(server, channel, a=3)
        change(server, "map_remove", channel=channel, key="b")
    assert await page.run(HEARD, 2) == [["a", 3, False], ["b", None, True]]

    async with page.away(proxy):
        put(server, channel, **{f"k{number}": number for number in range(KEPT + 1)})
    assert await page.run(HEARD, 1) == [["sync", stored(server, channel)]]
    put(server, channel, a=4)
    assert await page.run(HEARD, 1) == [["a", 4, False]]


async def test_map_without_a_stream_is_read_anew(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    channel = f"short:{unique}"
    put(server, channel, a=1)
    await page.connected(proxy.url, fallback=False)
    await page.run(SHARE, channel)
    assert await page.run(HEARD, 1) == [["sync", {"a": 1}]]
    async with page.away(proxy):
        change(server, "map_remove", channel=channel, key="a")
        put(server, channel, b=2)
    assert await page.run(HEARD, 1) == [["sync", {"b": 2}]]
    put(server, channel, c=3)
    assert await page.run(HEARD, 1) == [["c", 3, False]]


async def test_page_begins_with_what_it_shows(
    server: Server, page: ClientPage, channel: str
) -> None:
    put(server, channel, a=1)
    top = change(server, "map_read_state", channel=channel)["result"]
    put(server, channel, b=2)
    await page.connected(server.socket)
    since = {"offset": top["offset"], "epoch": top["epoch"]}
    await page.run(
        SHARE.replace("map(client, args[0])", "map(client, ...args)"),
        channel,
        {"since": since, "entries": {"a": 1}},
    )
    assert await page.run(HEARD, 2) == [["sync", {"a": 1}], ["b", 2, False]]
    assert await page.run(ENTRIES) == stored(server, channel)
