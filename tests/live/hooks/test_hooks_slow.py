"""Slow hooks stall nobody else, and idle connections hold no connection to the database."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.open_files import open_files
from tests.server import Server, wait_until

HOOK_TIMEOUT = 2.0
SLOW = 4 * HOOK_TIMEOUT
"""Seconds that the slow hooks of tests/site/strange take."""
FAILURE = {"code": 100, "message": "internal server error"}


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site with slow hooks."""
    return site("strange", hook_timeout=HOOK_TIMEOUT)


@pytest.mark.parametrize("kind", ["thread", "coroutine", "query"])
async def test_slow_hook_stalls_nobody_else(
    server: Server, connect: Connect, unique: str, kind: str
) -> None:
    slow, other = await connect(server, user=unique), await connect(server)
    waiting = await slow.send("subscribe", {"channel": f"slow:{kind}-{unique}"})
    began = time.monotonic()

    # each kind of hook is answered, and so is what needs none
    assert await other.result("subscribe", {"channel": f"ask:none-{unique}"}) == {}
    assert await other.result("rpc", {"method": "echo_async", "data": 1}) == {"data": {"data": 1}}
    assert await other.result("rpc", {"method": "count.users", "data": 0}) == {"data": 0}
    assert await other.call("ping") != {}
    took = time.monotonic() - began

    assert (await slow.reply(waiting))["error"] == FAILURE
    assert took < HOOK_TIMEOUT


@pytest.mark.parametrize("kind", ["thread", "coroutine", "query"])
async def test_client_is_told_in_time_that_its_hook_takes_too_long(
    server: Server, connect: Connect, unique: str, kind: str
) -> None:
    client = await connect(server, user=unique)
    began = time.monotonic()

    error = await client.error("subscribe", {"channel": f"slow:{kind}-{unique}"})
    took = time.monotonic() - began

    assert error == FAILURE
    assert HOOK_TIMEOUT <= took < SLOW
    entry = f"tests.site.strange.realtime.slow_{kind} took longer than 2 s"
    wait_until(lambda: entry in server.log, what="the entry")


async def test_client_that_leaves_while_its_hook_runs_is_not_subscribed(
    server: Server, connect: Connect, unique: str
) -> None:
    client = await connect(server, user=unique)
    channel = f"slow:brief-{unique}"
    await client.send("subscribe", {"channel": channel})
    await asyncio.to_thread(wait_until, lambda: f"asked about {channel}" in server.log)
    await client.abort()
    await asyncio.to_thread(wait_until, lambda: f"allowed {channel}" in server.log)
    assert channel not in server.api("channels")["result"]["channels"]


CLIENTS = 30


def database_connections(server: Server, database: str) -> int:
    """How many connections to a SQLite database a process holds."""
    return open_files(server.pid).count(database)


async def test_idle_clients_hold_no_database_connection_and_a_working_hook_holds_one(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, connect: Connect, unique: str
) -> None:
    made = environment(tmp_path_factory, "strange")
    database = os.path.realpath(made["TEST_DATABASE"])
    server = serve(environment=made, **OPTIONS)
    username, _ = create_user(server, unique)
    visitor = Visitor(server, username)

    clients = [
        await connect(server, user=None, additional_headers=visitor.headers) for _ in range(CLIENTS)
    ]
    for client in clients:
        await client.result("rpc", {"method": "room.members", "data": unique})
        await client.result("subscribe", {"channel": f"stock:{unique}"})  # asks a coroutine

    wait_until(lambda: database_connections(server, database) == 0, what="no connection is left")
    for client in clients:
        await client.call("ping")
    # a working hook holds one, so the count above counts
    waiting = await client.send("rpc", {"method": "use.database", "data": 0.5})
    wait_until(lambda: database_connections(server, database) == 1, what="the connection")
    assert (await client.reply(waiting))["result"] == {"data": True}
    wait_until(lambda: database_connections(server, database) == 0, what="no connection is left")
