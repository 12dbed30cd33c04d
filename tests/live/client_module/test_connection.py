"""The client module in a browser: states, lost connections, advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import connection_token
from tests.live.client_module.page import OPTIONS, ClientPage
from tests.live.clusters import frozen
from tests.server import Server
from tests.tcp_proxy import TcpProxy

NOW = {"minDelay": 60_000, "maxDelay": 60_000}
"""A client that will not come back within a test, unless something else makes it."""


async def states(page: ClientPage) -> list[str]:
    """The states so far, from the first one on."""
    return [context["state"] for context in await page.unread("state")]


async def test_client_connects_and_tells_its_state(server: Server, page: ClientPage) -> None:
    token = connection_token("17")
    await page.make(server.socket, token=token)
    assert await page.run("return [client.state, client.id]") == ["disconnected", ""]
    context = await page.connect()
    assert await states(page) == ["connecting", "connected"]
    assert context["transport"] == "websocket"
    assert context["client"] == await page.run("return client.id") != ""
    await page.run("client.disconnect(); window.client = make(undefined, {token: args[0]})", token)
    await page.connect()  # by default, to the address of the page


async def test_client_that_may_use_no_transport_is_not_made(page: ClientPage) -> None:
    options = "{ transports: ['eventsource'], fallback: false }"
    assert await page.error(f"make('/connection/websocket', {options})") is None  # a TypeError


async def test_page_with_realtime_config_needs_nothing_else(
    page: ClientPage, server: Server
) -> None:
    """Nobody is logged in, so the token is empty, and this server wants one."""
    connecting = "window.client = realtime.Client.fromPage(); client.connect();"
    assert await page.error(f"{connecting} await client.ready()") == 3  # DISCONNECTED
    assert not await page.run("return client.reconnecting")


async def test_lost_connection_is_told_once_and_comes_back(
    proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    """Client object, rule 2: the loss of a channel is told before."""
    await page.connected(proxy.url)
    await page.subscribe(unique)
    script = """
        window.order = [];
        client.on("disconnect", () => order.push("disconnect"));
        subscriptions.get(args[0]).on("subscribing", () => order.push("subscribing"));
    """
    await page.run(script, unique)

    proxy.refuse()
    lost = await page.event("disconnect")
    await proxy.reached(proxy.connections + 3)
    proxy.allow()
    await page.event("connect")
    again = await page.event("sub:subscribed", unique)

    assert (lost["code"], lost["reconnect"]) == (1006, True)
    assert await page.run("return order") == ["subscribing", "disconnect"]
    assert again["isResubscribe"]


async def test_first_attempt_that_fails_is_told_and_repeated(
    proxy: TcpProxy, page: ClientPage
) -> None:
    proxy.refuse()
    await page.make(proxy.url, token=connection_token("17"), fallback=False)
    await page.run("client.connect()")
    assert (await page.event("disconnect"))["reconnect"]
    assert await page.run("return client.reconnecting")
    proxy.allow()
    await page.event("connect")
    assert not await page.run("return client.reconnecting")


@pytest.fixture
def restarted(tmp_path: Path, site: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Start a server that belongs to the test; `port` is that of the one before."""
    servers: list[Server] = []

    def start(port: int = 0) -> Server:
        directory = tmp_path / str(len(servers))
        servers.append(Server(directory, OPTIONS, environment=site, port=port))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


async def test_client_comes_back_to_a_server_that_was_killed_and_started_again(
    restarted: Callable[..., Server], page: ClientPage, unique: str
) -> None:
    first = restarted()
    # or it could come back over HTTP, when the server is there between two attempts
    await page.connected(first.socket, fallback=False)
    await page.subscribe(unique)

    first.kill()
    await page.event("disconnect")
    second = restarted(first.port)
    assert (await page.event("connect"))["transport"] == "websocket"
    await page.event("sub:subscribed", unique)
    second.publish(unique, 1)

    assert await page.data(unique, 1) == [1]


async def test_server_that_hangs_is_noticed_by_a_ping(
    restarted: Callable[..., Server], page: ClientPage
) -> None:
    server = restarted()
    await page.connected(server.socket, pingInterval=100, timeouts={"ping": 200, "open": 300})
    with frozen(server):
        assert (await page.event("disconnect"))["reason"] == "no answer"
    await page.event("connect")


async def test_quiet_connection_that_answers_pings_stays(server: Server, page: ClientPage) -> None:
    await page.connected(server.socket, pingInterval=20)
    ping = """
        const pings = () => frames.filter((frame) => frame.endsWith('"method":7}')).length;
        while (pings() < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    """
    await page.run(ping)
    assert await page.unread("disconnect") == []


async def test_delays_grow_to_their_limit_with_jitter_and_begin_anew(
    proxy: TcpProxy, page: ClientPage
) -> None:
    options = {"minDelay": 40, "maxDelay": 160, "fallback": False}
    await page.connected(proxy.url, **options)

    proxy.refuse()
    await proxy.reached(proxy.connections + 4)
    proxy.allow()
    await page.event("connect")
    delays = [s["delay"] for s in await page.unread("state") if s["state"] == "disconnected"]
    proxy.cut()
    await page.event("connect")
    last = [s["delay"] for s in await page.unread("state") if s["state"] == "disconnected"][-1]

    longest = [40, 80, 160, 160]
    assert all(top / 2 <= delay <= top for top, delay in zip(longest, delays, strict=False))
    assert len(set(delays)) == len(delays)
    assert 20 <= last <= 40


async def test_client_that_waits_tries_at_once(proxy: TcpProxy, page: ClientPage) -> None:
    """When the network is back, and when the page asks for it."""
    await page.connected(proxy.url, **NOW)
    for script in ('window.dispatchEvent(new Event("online"))', "client.connect()"):
        proxy.cut()
        await page.event("disconnect")
        await page.run(script)
        await page.event("connect")


async def test_network_that_changes_makes_the_client_test_its_connection(
    server: Server, page: ClientPage
) -> None:
    await page.connected(server.socket)
    await page.sent()
    for event in ("online", "offline"):
        await page.run("window.dispatchEvent(new Event(args[0]))", event)
        [[ping]] = await page.sent()
        assert ping.endswith('"method":7}')
        await page.run("await client.ping()")
        await page.sent()


async def test_client_that_is_told_to_stay_away_does(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    await page.connected(proxy.url, token=connection_token(unique))
    server.api("disconnect", user=unique)
    lost = await page.event("disconnect")
    assert lost == {"code": 3012, "reason": "force disconnect", "reconnect": False}
    assert (await page.unread("state"))[-1]["delay"] is None
    assert not await page.run("return client.reconnecting")
    await page.connect()
    assert proxy.connections == 2


async def test_disconnect_ends_an_attempt(proxy: TcpProxy, page: ClientPage) -> None:
    proxy.refuse()
    await page.make(proxy.url, token=connection_token("17"), **NOW)
    await page.run("client.connect()")
    await page.event("disconnect")

    await page.run("client.disconnect()")

    assert (await page.unread("state"))[-1] == {
        "state": "disconnected",
        "reconnecting": False,
        "reason": "client",
        "delay": None,
    }
    assert await page.unread("disconnect") == []
