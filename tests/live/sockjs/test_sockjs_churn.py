"""Hundreds of SockJS sessions that end in any way leave nothing behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from websockets.asyncio.client import connect as open_socket

from tests.live.memory_parts import APPLICATION, left, needs_proc, settled
from tests.live.raw_http import open_exchange
from tests.live.sockjs.client import (
    EVENTSOURCE,
    HTMLFILE,
    JSONP,
    OPEN,
    OPTIONS,
    PREFIX,
    SERVERS,
    XHR_STREAMING,
    Session,
    command,
)
from tests.server import Server

FIRST = 240
"""Sessions after which a server has made what it keeps: caches, timers to be thrown away."""
SESSIONS = 640
"""Sessions of each server after them."""
AT_ONCE = 30
LEAK = SESSIONS
"""Pieces of memory that are a leak: every session leaves one. Without a leak there are up to 500
more until the last timers of these sessions are thrown away, 25 seconds later; objects of our
own are counted to the last one."""


async def abandon(server: Server, number: int) -> None:
    """Begin, and never come back."""
    await Session(server).open()


async def abandon_client(server: Server, number: int) -> None:
    """Connect, subscribe, and never come back."""
    session = await Session(server).open()
    await session.send(command(1, "connect"), command(2, "subscribe", channel=f"joins:{number}"))


async def abort_stream(server: Server, number: int) -> None:
    """Cut a response that goes on."""
    session = Session(server)
    async with session.receive((XHR_STREAMING, EVENTSOURCE, HTMLFILE)[number % 3]) as receiver:
        assert await receiver.frame() == OPEN
        await session.send(command(1, "connect"), command(2, "subscribe", channel="joins:all"))
        await receiver.replies()
        await receiver.exchange.abort()


async def abort_poll(server: Server, number: int) -> None:
    """Cut a request that waits, or one that may just be answered."""
    session = await Session(server).open(JSONP)
    exchange = await session.ask()
    if number % 2:
        await session.command("connect")
    await exchange.abort()


async def break_rules(server: Server, number: int) -> None:
    """Be closed, and perhaps read the close frame."""
    session = await Session(server).open()
    await session.send("no command")
    if number % 2:
        assert (await session.poll()).startswith("c[3003")


async def break_off(server: Server, number: int) -> None:
    """Send half of a body."""
    session = await Session(server).open()
    path = PREFIX + session.path("xhr_send")
    exchange = await open_exchange(server, "POST", path, None, {"Content-Length": "1000"})
    await exchange.write(json.dumps([command(1, "connect")])[:-1].encode())
    await exchange.abort()


async def vanish(server: Server, number: int) -> None:
    """Be gone before the first answer."""
    await (await Session(server).ask(XHR_STREAMING)).abort()


async def cut_socket(server: Server, number: int) -> None:
    """Cut a WebSocket."""
    url = f"ws://127.0.0.1:{server.port}{PREFIX}{Session(server).path('websocket')}"
    async with open_socket(url, proxy=None, ping_interval=None) as socket:
        assert await socket.recv() == OPEN
        await socket.send(json.dumps([command(1, "connect")]))
        await socket.recv()
        socket.transport.abort()
        await socket.wait_closed()


WAYS: tuple[Callable[[Server, int], Awaitable[None]], ...] = (
    abandon,
    abandon_client,
    abort_stream,
    abort_poll,
    break_rules,
    break_off,
    vanish,
    cut_socket,
)


async def churn(server: Server, count: int) -> None:
    """Run this many sessions, some at a time."""
    numbers = iter(range(count))

    async def go_on() -> None:
        for number in numbers:
            await WAYS[number % len(WAYS)](server, number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(go_on())


# what is left of them


def has_no_clients(counts: dict[str, int]) -> bool:
    """Return whether no session is left."""
    return not any(
        counts[kind]
        for kind in ("EmulatedSession", "Client", "SessionResponse", "Exchange", "SockJSTransport")
    )


@needs_proc
async def test_hundreds_of_sessions_that_end_in_any_way_leave_nothing_behind(
    own_server: Callable[..., Server],
) -> None:
    servers = [own_server(server=name, application=APPLICATION, **OPTIONS) for name in SERVERS]

    async def check(server: Server) -> None:
        await churn(server, FIRST)
        before = await settled(server, has_no_clients)

        await churn(server, SESSIONS)

        def is_as_before(counts: dict[str, int]) -> bool:
            return (
                has_no_clients(counts)
                and counts["tasks"] <= before["tasks"]
                # the connection of the question itself may be open still, now and then
                and counts["files"] <= before["files"] + 2
                and counts["blocks"] < before["blocks"] + LEAK
            )

        await settled(server, is_as_before)
        assert server.api("channels") == {"result": {"channels": []}}
        assert "Traceback" not in server.log

    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(check(server))


@needs_proc
async def test_counts_tell_a_session_that_is_there(own_server: Callable[..., Server]) -> None:
    """Otherwise the test above could not fail."""
    server = own_server(application=APPLICATION, **OPTIONS)
    session = await Session(server).open()
    await session.result("connect")

    counts = await left(server)

    assert (counts["EmulatedSession"], counts["Client"]) == (1, 1)
    async with session.receive() as receiver:
        assert receiver.prelude
        assert (await left(server))["SessionResponse"] == 1
