"""The client module in a browser: where WebSocket is blocked, it goes by HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import connection_token
from tests.live.client_module.page import OPTIONS, ClientPage
from tests.live.conftest import NewProxy
from tests.server import Server
from tests.tcp_proxy import TcpProxy

ONLY = {"transports": ["eventsource"]}

COUNT_SOCKETS = """
    window.opened = [];
    window.WebSocket = class extends WebSocket {
      constructor(url) { super(url); opened.push(url); }
    };
"""
"""Has the page note each attempt to open a WebSocket."""


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """A server of the test. At the end it closes the connections that browsers keep open."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def __aenter__(self) -> Listener:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
def blocked(serve: Callable[..., Server], site: dict[str, str]) -> Server:
    """A server that does not answer WebSocket handshakes with success."""
    return serve(environment=site, **OPTIONS | {"websocket_disable": True})


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The URL of a WebSocket whose handshake nobody ever answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read()

    async with Listener(serve) as listener:
        yield f"ws://{listener.address}/connection/websocket"


async def test_blocked_client_goes_by_http(blocked: Server, page: ClientPage, unique: str) -> None:
    channel = f"chat:{unique}"
    await page.open(blocked.address)
    context = await page.connected(blocked.socket)
    await page.subscribe(channel)
    await page.run("await client.publish(args[0], { text: '\u20ac\\n\\u2028' })", channel)
    blocked.publish(channel, 2)
    assert context["transport"] == "eventsource"
    assert await page.run("return client.transport") == "eventsource"
    assert await page.data(channel, 2) == [{"text": "\u20ac\n\u2028"}, 2]
    assert len(await page.run("return client.presence(args[0])", channel)) == 1


async def test_handshake_that_is_not_answered_leads_to_http_in_the_same_attempt(
    server: Server, silent: str, page: ClientPage
) -> None:
    fallback = server.address + "/connection/sockjs"
    context = await page.connected(silent, fallback=fallback, timeouts={"open": 100})
    assert context["transport"] == "eventsource"
    assert await page.unread("disconnect") == []


async def test_client_without_fallback_stays_with_websocket(
    blocked: Server, page: ClientPage
) -> None:
    await page.open(blocked.address)
    await page.make(blocked.socket, token=connection_token("17"), fallback=False)
    await page.run("client.connect(); for (let n = 0; n < 12; n += 1) await next('state')")
    requests = "return performance.getEntriesByType('resource').map(({ name }) => name)"
    assert not any("sockjs" in name for name in await page.run(requests))
    await page.run("client.disconnect()")


async def test_many_commands_arrive_in_order(
    server: Server, page: ClientPage, channel: str
) -> None:
    await page.connected(server.socket, **ONLY)
    await page.subscribe(channel)
    numbers = list(range(50))

    script = """
        for (const n of args[1]) {
          client.publish(args[0], n);
          await new Promise((go) => setTimeout(go));
        }
    """
    await page.run(script, channel, numbers)

    assert await page.data(channel, 50) == numbers


async def test_session_goes_on_when_a_response_has_reached_its_size(
    server: Server, page: ClientPage, unique: str
) -> None:
    """docs/protocol.md, 8: streaming responses end after 128 KiB."""
    channel = f"chat:{unique}"
    await page.connected(server.socket, **ONLY)
    await page.subscribe(channel)
    for number in range(12):
        server.publish(channel, [number, "x" * 30_000])
    assert [data[0] for data in await page.data(channel, 12)] == list(range(12))
    assert await page.unread("disconnect") == []
    assert len(await page.unread("connect")) == 0


async def test_lost_session_is_recovered_by_http_again(
    blocked: Server, page: ClientPage, new_proxy: NewProxy, channel: str
) -> None:
    proxy = await new_proxy(blocked)
    await page.open(blocked.address)
    await page.connected(proxy.url)
    await page.subscribe(channel)
    blocked.publish(channel, 1)
    assert await page.data(channel, 1) == [1]

    # what the first attempts lost is told already
    await page.run("while (unread('disconnect').length) await next('disconnect')")
    async with page.away(proxy):
        blocked.publish(channel, 2)
        blocked.publish(channel, 3)
    again = await page.event("connect")
    blocked.publish(channel, 4)

    assert again["transport"] == "eventsource"
    assert await page.data(channel, 3) == [2, 3, 4]
    assert (await page.event("sub:subscribed", channel))["recovered"]


async def test_websocket_is_tried_first_again_when_http_fails(
    server: Server, page: ClientPage, new_proxy: NewProxy, silent: str
) -> None:
    """A page that went by HTTP, and whose HTTP then fails, asks WebSocket first."""
    proxy = await new_proxy(server)
    fallback = proxy.url.replace("ws://", "http://").replace("websocket", "sockjs")
    context = await page.connected(silent, fallback=fallback, timeouts={"open": 100})
    assert context["transport"] == "eventsource"
    await page.run(COUNT_SOCKETS)
    async with page.away(proxy):
        await page.run("while (!opened.length) await new Promise((go) => setTimeout(go, 5))")
    assert (await page.event("connect"))["transport"] == "eventsource"


async def test_client_whose_websocket_has_worked_returns_to_it(
    server: Server, page: ClientPage, new_proxy: NewProxy
) -> None:
    """A reverse proxy may answer over HTTP alone while the server behind it restarts."""
    proxy = await new_proxy(server)
    assert (await page.connected(proxy.url))["transport"] == "websocket"
    await page.run(COUNT_SOCKETS)

    proxy.forbid(b"upgrade: websocket")
    by_http = await page.event("connect")
    failures = await page.run("return opened.length")
    proxy.forbid(b"")
    after = await page.event("connect")

    assert (by_http["transport"], failures) == ("eventsource", 4)
    assert after["transport"] == "websocket"
    assert await page.run("return opened.length") == 5


async def test_client_whose_websocket_has_worked_asks_a_server_that_is_down_by_websocket(
    server: Server, page: ClientPage, new_proxy: NewProxy
) -> None:
    """HTTP failed as well, so WebSocket is not blocked: counting begins anew."""
    proxy = await new_proxy(server)
    await page.connected(proxy.url)
    await page.run(COUNT_SOCKETS)
    await page.run("""
        window.EventSource = class extends EventSource {
          constructor(url, options) { super(url, options); opened.push(url); }
        };
    """)

    async with page.away(proxy):
        script = "while (opened.length < 10) await new Promise((go) => setTimeout(go, 5))"
        await page.run(f"{script}; client.disconnect()")

    urls = await page.run("return opened.slice(0, 10)")
    assert ["ws" if url.startswith("ws") else "http" for url in urls] == [
        *("ws", "ws", "ws", "ws", "http"),
        *("ws", "ws", "ws", "ws", "http"),
    ]


class Switch(TcpProxy):
    """A proxy whose connections can be moved to another server, which knows nothing of them."""

    def move(self, server: Server) -> None:
        self._target = urlsplit(server.socket)
        self.cut()


async def test_server_that_does_not_know_the_session_gets_another_one(
    server: Server, blocked: Server, page: ClientPage, unique: str
) -> None:
    async with Switch(server.socket) as proxy:
        first = await page.connected(proxy.url, **ONLY)
        await page.subscribe(unique)

        proxy.move(blocked)
        await page.event("disconnect")
        second = await page.event("connect")
        await page.event("sub:subscribed", unique)
        blocked.publish(unique, 1)

        assert await page.data(unique, 1) == [1]
        assert first["client"] != second["client"]
        await page.run("client.disconnect()")


@pytest.fixture
async def nonsense() -> AsyncIterator[str]:
    """The address of a SockJS whose streams end with something that is no frame."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [origin] = re.findall(r"(?mi)^origin: (.*)\r$", head)
        writer.write(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n"
            f"Access-Control-Allow-Origin: {origin}\r\n"
            "Access-Control-Allow-Credentials: true\r\n\r\n"
            "data: o\r\n\r\ndata: a[\r\n\r\n".encode()
        )

    async with Listener(serve) as listener:
        yield f"http://{listener.address}/connection/sockjs"


async def test_stream_with_an_unreadable_message_is_lost(nonsense: str, page: ClientPage) -> None:
    await page.make(nonsense, token=connection_token("17"), fallback=nonsense, **ONLY)
    await page.run("client.connect()")
    lost = await page.event("disconnect")
    assert lost["reconnect"]
    assert lost["reason"].startswith("unreadable message")
    await page.run("client.disconnect()")


async def test_advice_is_followed_by_http_too(
    server: Server, page: ClientPage, unique: str
) -> None:
    """And an invalid token is sent once."""
    await page.connected(server.socket, token=connection_token(unique), **ONLY)
    server.api("disconnect", user=unique)
    lost = {"code": 3012, "reason": "force disconnect", "reconnect": False}
    assert await page.event("disconnect") == lost

    await page.make(server.socket, token="no token", **ONLY)
    await page.run("client.connect()")
    lost = {"code": 3002, "reason": "invalid token", "reconnect": False}
    assert await page.event("disconnect") == lost
