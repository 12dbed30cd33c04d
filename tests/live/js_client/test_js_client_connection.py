"""The published JavaScript client: connecting, tokens, the end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.js_builds import (
    EVERY,
    Build,
    over_both_formats,
    over_each_position,
    over_every_transport,
    over_websocket,
)
from tests.js_client import SOON, FindNode, JsClient, NewClient, open_driver
from tests.live.conftest import NewProxy
from tests.server import Server, wait_until
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

Crowd = Callable[..., Awaitable[list[JsClient]]]

UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


async def assert_stays_away(
    client: JsClient, way: TcpProxy, other: JsClient, other_way: TcpProxy
) -> None:
    """It does not come back while another client with its settings does so thrice."""
    connections = way.connections
    for _ in range(3):
        async with other.away(other_way):
            pass
    assert way.connections == connections
    assert client.events == []


@pytest.fixture
def restartable(tmp_path: Path, options: dict[str, Any]) -> Iterator[Callable[[int], Server]]:
    """Start a server of one's own on a given port, 0 for any."""
    servers: list[Server] = []

    def start(port: int) -> Server:
        servers.append(Server(tmp_path / f"server{len(servers)}", options, port=port))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
async def crowd(node_process: FindNode, build: Build) -> AsyncIterator[Crowd]:
    """Connect a client of every build that reads positions as this one: `await crowd(server)`.

    Further arguments are options of the clients.
    """
    async with AsyncExitStack() as stack:

        async def crowd(server: Server, **client_options: Any) -> list[JsClient]:
            clients = []
            for each in (each for each in EVERY if each.use_offset == build.use_offset):
                driver = await stack.enter_async_context(open_driver(node_process(each)))
                token = connection_token("17")
                client = await driver.client(each, server.socket, token=token, **client_options)
                await client.connect()
                clients.append(client)
            return clients

        yield crowd


# connecting


async def test_client_that_disconnects_is_gone_on_the_server(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    client = await connect_js()
    await client.subscribe(channel)
    await client.call("disconnect")
    assert await client.event("disconnect") == {"reason": "client", "reconnect": False}
    wait_until(lambda: server.api("presence", channel=channel) == {"result": {"presence": {}}})


@over_websocket
async def test_pings_are_answered(connect_js: NewClient) -> None:
    client = await connect_js(pingInterval=10, pongWaitTimeout=10_000)
    pings = 5
    async with asyncio.timeout(60):
        # each ping follows the answer to the one before
        while (socket := await client.call("socket"))["received"] < 1 + pings:
            await asyncio.sleep(0.01)  # the driver counts frames and does not announce them
    assert socket["sent"] >= 1 + pings
    assert client.unread("disconnect") == []


# tokens


@over_every_transport
async def test_invalid_token_is_one_disconnect_and_no_reconnect(
    new_client: NewClient, connect_js: NewClient, server: Server, new_proxy: NewProxy
) -> None:
    refused_way, other_way = await new_proxy(server), await new_proxy(server)
    refused = await new_client(token="not.a.token", through=refused_way)
    other = await connect_js(through=other_way)
    await refused.call("connect")
    assert await refused.event("disconnect") == {"reason": "invalid token", "reconnect": False}
    await assert_stays_away(refused, refused_way, other, other_way)


@over_every_transport
async def test_client_with_an_expired_token_refreshes_it_and_connects(
    new_client: NewClient, unique: str
) -> None:
    client = await new_client(token=connection_token(unique, ttl=-10))
    await client.call("connect")
    assert await client.event("disconnect") == {"reason": "connect error", "reconnect": True}
    await client.refresh_with(connection_token(unique))
    await client.connected()
    await client.settle()


@over_both_formats
async def test_expiring_connection_asks_for_a_token_each_time_it_expires(
    connect_js: NewClient, unique: str
) -> None:
    client = await connect_js(token=connection_token(unique, ttl=SOON))
    await client.refresh_with(connection_token(unique, ttl=SOON))
    await client.refresh_with(connection_token(unique, ttl=300))
    await client.settle()
    assert client.unread("disconnect") == []


# the server ends it


@over_every_transport
async def test_disconnect_by_the_server_api_is_final(
    connect_js: NewClient, server: Server, new_proxy: NewProxy, unique: str
) -> None:
    way, other_way = await new_proxy(server), await new_proxy(server)
    client = await connect_js(user=unique, through=way)
    other = await connect_js(user=f"not {unique}", through=other_way)
    server.api("disconnect", user=unique)
    assert await client.event("disconnect") == {"reason": "force disconnect", "reconnect": False}
    await assert_stays_away(client, way, other, other_way)


@over_each_position
async def test_stopping_server_says_shutdown_and_to_reconnect(
    crowd: Crowd, restartable: Callable[[int], Server]
) -> None:
    stopping = restartable(0)
    # a ping to a session that has ended fails, and a client that polls may not have read why
    clients = await crowd(stopping, pingInterval=25_000)
    await asyncio.to_thread(stopping.terminate)
    expected = {"reason": "shutdown", "reconnect": True}
    for client in clients:
        assert await client.event("disconnect") == expected, client.build


@over_each_position
async def test_client_comes_back_when_its_server_does(
    crowd: Crowd, restartable: Callable[[int], Server], unique: str
) -> None:
    channel = f"rec:{unique}"
    first = restartable(0)
    clients = await crowd(first)
    for client in clients:
        await client.subscribe(channel)
    first.publish(channel, "before")
    for client in clients:
        assert await client.publication(channel) == "before", client.build

    first.kill()
    for client in clients:
        await client.event("unsubscribe", channel)
        await client.lost()
    second = await asyncio.to_thread(restartable, first.port)

    for client in clients:
        await client.connected()
        context = await client.event("subscribe", channel)
        assert context["isResubscribe"] is True
        # the history was in the memory of the killed process
        assert context["recovered"] is False, client.build
    second.publish(channel, "after")
    for client in clients:
        assert await client.publication(channel) == "after", client.build
