"""Today's published JavaScript client, unmodified, over streams at two nodes without stickiness."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.live.streaming.client import EMULATION, STREAMS
from tests.server import TIMEOUT, Server
from tests.tcp_proxy import TcpProxy


class Page:
    """The client in its process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def event(self, name: str) -> dict[str, Any]:
        """Read events until one with this name; returns its context."""
        assert self._process.stdout is not None
        seen = []
        async with asyncio.timeout(TIMEOUT):
            while line := await self._process.stdout.readline():
                found, context = json.loads(line)
                if found == name:
                    result: dict[str, Any] = context
                    return result
                seen.append((found, context))
        raise AssertionError(f"no event {name}, but {seen}")

    def publish(self, data: Any) -> None:
        """Publish as this client."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(data).encode() + b"\n")


@asynccontextmanager
async def page_of(transport: str, down: str, up: str, channel: str) -> AsyncIterator[Page]:
    require_packages("centrifuge-5")
    argument = {
        "transport": transport,
        "down": f"{down}/connection/{transport}",
        "up": up + EMULATION,
        "token": connection_token("17"),
        "channel": channel,
    }
    process = await asyncio.create_subprocess_exec(
        find_node(),
        str(DIRECTORY / "streams.mjs"),
        json.dumps(argument),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Page(process)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("transport", ["http_stream", "sse"])
async def test_client_subscribes_publishes_and_recovers(
    shared_cluster: Callable[..., list[Server]], transport: str, unique: str
) -> None:
    one, other = shared_cluster(**STREAMS, redis_prefix="streams-of-js")
    channel = f"recover:{unique}"
    async with TcpProxy(one.socket) as proxy:
        down = proxy.url.replace("ws://", "http://").removesuffix("/connection/websocket")
        async with page_of(transport, down, other.address, channel) as page:
            assert (await page.event("connected"))["transport"] == transport
            await page.event("channel subscribed")
            other.publish(channel, {"by": "the site"})
            assert (await page.event("channel publication"))["data"] == {"by": "the site"}
            page.publish({"by": "the page"})
            assert (await page.event("channel publication"))["data"] == {"by": "the page"}

            proxy.refuse()
            await page.event("connecting")
            other.publish(channel, {"by": "the site", "while": "away"})
            proxy.allow()

            subscribed = await page.event("channel subscribed")
            assert (subscribed["wasRecovering"], subscribed["recovered"]) == (True, True)
            missed = await page.event("channel publication")
            assert missed["data"] == {"by": "the site", "while": "away"}
