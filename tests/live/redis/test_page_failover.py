"""Pages that are rendered, and subscribed, while Sentinel promotes a replica for a killed master.

Each page is a browser that has `client.page`: it recovers from the position in the page, and loads
the state if it cannot. It must have all that was published after its state was queried. Half of the
pages subscribe when the new master has publications already, and would miss those.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import httpx
from websockets.exceptions import WebSocketException

from tests.live.clusters import Cluster
from tests.protocol_client import Closed, ProtocolClient
from tests.redis_sentinel import Sentinel
from tests.server import TIMEOUT, Server
from tests.unit.pages.parts import elements

logger = logging.getLogger(__name__)

RATE = 50
"""Publications per second."""
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "namespaces": [
        {"name": "pages", "history_size": 5000, "history_lifetime": 60, "history_recover": True}
    ],
}


class Page:
    """One page in a browser."""

    def __init__(
        self, server: Server, http: httpx.AsyncClient, connect: Callable[..., Any], channel: str
    ) -> None:
        self._server = server
        self._http = http
        self._connect = connect
        self._channel = channel
        self._since: dict[str, Any] | None = None
        """The position to recover from."""
        self.state = 0
        """The number that was queried the last time."""
        self.shown: list[int] = []
        """The numbers that came since."""
        self.loads = 0

    async def live(self, begin: asyncio.Event, last: asyncio.Future[int]) -> Page:
        """Subscribe after `begin`, and be open until the number is there that `last` tells."""
        page = await self._query(tag=True)
        await begin.wait()
        (found,) = elements(page["html"])
        if "offset" in found:
            self._since = {"offset": found["offset"], "epoch": found["epoch"]}
        while not (last.done() and max([self.state, *self.shown]) >= last.result()):
            with contextlib.suppress(Closed, WebSocketException, OSError, TimeoutError):
                client = await self._connect(self._server)
                try:
                    await self._follow(client, last)
                finally:
                    await client.abort()
            await asyncio.sleep(0.05)
        return self

    async def _query(self, *, tag: bool) -> Any:
        values = {"channel": self._channel, "quiet": "1"} | ({"tag": "1"} if tag else {})
        page = (await self._http.get("/pages/race", params=values)).json()
        self.state = page["queried"]
        return page

    async def _follow(self, client: ProtocolClient, last: asyncio.Future[int]) -> None:
        since = {"recover": True, **self._since} if self._since else {}
        reply = await client.call("subscribe", {"channel": self._channel, **since})
        if "error" in reply:
            raise TimeoutError
        result = reply["result"]
        self._since = {"offset": result["offset"], "epoch": result["epoch"]}
        if not result.get("recovered"):
            self.loads += 1
            self.shown.clear()
            await self._query(tag=False)
        for publication in result.get("publications", []):
            self.shown.append(publication["data"])
        while not (last.done() and max([self.state, *self.shown]) >= last.result()):
            push = await client.push()
            if "type" in push:  # the subscription ended
                raise TimeoutError
            self.shown.append(push["data"]["data"])
            self._since["offset"] = push["data"]["offset"]


async def test_page_of_a_failover_misses_nothing(
    cluster: Cluster,
    own_sentinel: Callable[..., Sentinel],
    connect: Callable[..., Any],
    unique: str,
) -> None:
    sentinel = await asyncio.to_thread(own_sentinel)
    where = {
        "redis_url": "",
        "redis_sentinels": sentinel.address,
        "redis_master_name": sentinel.master_name,
    }
    (server,) = await asyncio.to_thread(cluster, 1, sentinel.master, **OPTIONS | where)
    channel = f"pages:{unique}"
    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    pages: list[asyncio.Task[Page]] = []
    at_once, later = asyncio.Event(), asyncio.Event()
    at_once.set()
    async with httpx.AsyncClient(base_url=server.address, timeout=TIMEOUT) as http:

        async def published() -> list[int]:
            answer = await http.get("/pages/published", params={"channel": channel})
            numbers: list[int] = answer.json()["numbers"]
            return numbers

        async def more(than: int) -> list[int]:
            async with asyncio.timeout(TIMEOUT):
                while max(numbers := await published(), default=0) <= than:
                    await asyncio.sleep(0.05)
            return numbers

        async def open_pages() -> None:
            for begin in (at_once, later):
                page = Page(server, http, connect, channel)
                pages.append(asyncio.create_task(page.live(begin, last)))
            await asyncio.sleep(0.05)

        await http.get("/pages/writer", params={"channel": channel, "rate": RATE})
        await more(10)
        for _ in range(3):
            await open_pages()
        failover = asyncio.create_task(asyncio.to_thread(sentinel.failover))
        while not failover.done():
            await open_pages()
        await failover
        for _ in range(3):
            await open_pages()
        await more(max(await published()) + 10)
        later.set()
        numbers = await more(max(await published()) + 10)
        last.set_result(max(numbers))
        found = await asyncio.gather(*pages)
        await http.get("/pages/writer", params={"channel": channel, "rate": 0})

    missed = [
        number
        for page in found
        for number in numbers
        if page.state < number and number not in page.shown
    ]
    loads = [page.loads for page in found]
    # seldom a page loads again: the server hears of the failover after the page has come back
    logger.info("%d pages, %d missed, loads: %s", len(found), len(missed), loads)
    assert missed == []
    assert all(page.shown == sorted(set(page.shown)) for page in found)
