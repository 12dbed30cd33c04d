"""A hook that takes long stalls nobody else, and not its own client for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.hooks_site import OPTIONS, environment
from tests.server import Server, wait_until

HOOK_TIMEOUT = 2.0
SLOW = 4 * HOOK_TIMEOUT
"""Seconds that the slow hooks of tests/site/strange take."""
FAILURE = {"code": 100, "message": "internal server error"}


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with slow hooks."""
    environ = environment(tmp_path_factory, "strange")
    return serve(environment=environ, **OPTIONS, hook_timeout=HOOK_TIMEOUT)


@pytest.mark.parametrize("kind", ["thread", "coroutine", "query"])
async def test_slow_hook_stalls_nobody_else(
    server: Server, connect: Callable[..., Any], unique: str, kind: str
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
    server: Server, connect: Callable[..., Any], unique: str, kind: str
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
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    channel = f"slow:brief-{unique}"
    await client.send("subscribe", {"channel": channel})
    await asyncio.to_thread(wait_until, lambda: f"asked about {channel}" in server.log)
    await client.abort()
    await asyncio.to_thread(wait_until, lambda: f"allowed {channel}" in server.log)
    assert channel not in server.api("channels")["result"]["channels"]
