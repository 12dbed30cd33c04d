"""Presence maps with the published JavaScript client, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.js_builds import Build
from tests.js_next import JSON_5, PROTOBUF_5, RETRY_SUBSCRIBE, NextClient
from tests.live.second.conftest import OpenNext
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

CLIENTS, USERS = {"kind": "MapClients"}, {"kind": "MapUsers"}
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "client_presence_ping_interval": 1,
    "client_presence_expire_interval": 3,
    "namespaces": [
        {"name": "room", "presence": True, "presence_maps": ["clients", "users"]},
        {"name": "clients", "map": "recoverable", "map_key": "client"},
        {"name": "users", "map": "ephemeral", "map_key": "user"},
        {
            "name": "own",
            "map": "recoverable",
            "map_key": "client",
            "map_publish": "subscriber",
            "map_remove_on_unsubscribe": True,
        },
    ],
}

both_formats = pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """A server with presence maps."""
    return serve(**OPTIONS)


async def synced(client: NextClient, channel: str) -> dict[str, Any]:
    """Wait for the map of a client; return the info of each entry."""
    context = await client.event("sync", channel)
    return {entry["key"]: entry["info"] for entry in context["entries"]}


async def changed(client: NextClient, channel: str) -> tuple[str, bool]:
    """Wait for a change; return its key, and whether it was removed."""
    update = await client.event("update", channel)
    return update["key"], bool(update.get("removed"))


@both_formats
async def test_clients_come_and_go(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    room = f"room:{unique}"
    anna, bert = await connect_next(build, user="anna"), await connect_next(build, user="bert")
    await anna.subscribe(room)
    await anna.call("subscribeMap", channel=f"clients:{room}", options=CLIENTS)
    infos = await synced(anna, f"clients:{room}")
    assert infos == {anna.id: {"user": "anna", "client": anna.id}}

    await bert.subscribe(room)
    assert await changed(anna, f"clients:{room}") == (bert.id, False)
    await bert.call("unsubscribe", channel=room)
    assert await changed(anna, f"clients:{room}") == (bert.id, True)
    await bert.subscribe(room)
    assert await changed(anna, f"clients:{room}") == (bert.id, False)
    await bert.call("disconnect")
    assert await changed(anna, f"clients:{room}") == (bert.id, True)


@both_formats
async def test_users_stay_for_a_while(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    room = f"room:{unique}"
    anna = await connect_next(build, user="anna")
    berts = [await connect_next(build, user="bert") for _ in range(2)]
    await anna.subscribe(room)
    await anna.call("subscribeMap", channel=f"users:{room}", options=USERS)
    infos = await synced(anna, f"users:{room}")
    assert {key: info["user"] for key, info in infos.items()} == {"anna": "anna"}

    for bert in berts:
        await bert.subscribe(room)
    for bert in berts:
        await bert.call("disconnect")
    # one change for two clients, and the removal when the lifetime is over
    assert await changed(anna, f"users:{room}") == ("bert", False)
    assert await changed(anna, f"users:{room}") == ("bert", True)


@both_formats
async def test_a_map_recovers_and_ends_with_the_channel(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    room = f"room:{unique}"
    anna = await connect_next(build, user="anna", through=proxy)
    bert = await connect_next(build, user="bert")
    await anna.subscribe(room)
    await anna.call("subscribeMap", channel=f"clients:{room}", options=CLIENTS)
    await synced(anna, f"clients:{room}")
    await anna.event("subscribed", f"clients:{room}")
    before = anna.id
    proxy.cut()
    await bert.subscribe(room)
    await anna.connected()

    keys = {(await changed(anna, f"clients:{room}")) for _ in range(3)}
    assert keys == {(before, True), (bert.id, False), (anna.id, False)}
    server.api("unsubscribe", user="anna", channel=room)
    context = await anna.event("unsubscribed", f"clients:{room}")
    assert context["code"] == 103


@both_formats
async def test_the_own_entry_leaves_before_the_client(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    channel = f"own:{unique}"
    leaving, other = await connect_next(build), await connect_next(build)
    for client in (leaving, other):
        await client.call("subscribeMap", channel=channel, options=RETRY_SUBSCRIBE)
        await client.event("sync", channel)
    await leaving.call("put", channel=channel, key="", data={"x": 1})
    assert await changed(other, channel) == (leaving.id, False)
    await leaving.call("unsubscribe", channel=channel)
    assert await changed(other, channel) == (leaving.id, True)
