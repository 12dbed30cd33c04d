"""Nothing is lost between the query that rendered a page and its subscription.

In each page load, something is published between the query and the response, and more all the
time. `REALTIME_PAGE_LOADS` is the number of loads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.live.clusters import Cluster, OwnRedis
from tests.redis_server import RedisServer
from tests.server import TIMEOUT, Server, wait_until
from tests.unit.pages.parts import elements

logger = logging.getLogger(__name__)

LOADS = int(os.environ.get("REALTIME_PAGE_LOADS", "40"))
RATE = 200
"""Publications per second."""
MARGIN = 2.0
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "page_margin": MARGIN,
    "namespaces": [
        {"name": "pages", "history_size": 5000, "history_lifetime": 60, "history_recover": True}
    ],
}


class Loads:
    """Pages of one server, subscriptions of a client at another."""

    def __init__(self, pages: Server, http: httpx.AsyncClient, client: Any, channel: str) -> None:
        self._pages = pages
        self._http = http
        self._client = client
        self._channel = channel
        self.missed = 0
        """Numbers that a browser would not have."""
        self.loaded = 0
        """Pages without a position, because Redis was slow: their browsers load the state."""
        self.repeated = 0
        """Numbers that a page has already, and its browser gets nevertheless."""

    async def load(self, tag: bool, ahead: float) -> None:
        """Load a page, and subscribe from its position on, if it has one."""
        values = {"channel": self._channel} | ({"tag": "1"} if tag else {})
        page = (await self._http.get("/pages/race", params=values)).json()
        params: dict[str, Any] = {"channel": self._channel}
        if tag:
            (found,) = elements(page["html"])
            if "offset" not in found:  # Redis was slow: the client loads the state
                self.loaded += 1
                return
            params |= {"recover": True, "offset": found["offset"], "epoch": found["epoch"]}
        result = await self._client.result("subscribe", params)
        assert result.get("recovered", False) == tag
        numbers = [each["data"] for each in result.get("publications", [])]
        queried, last = page["queried"], page["last"]
        self.missed += len(set(range(queried + 1, last + 1)) - set(numbers))
        assert numbers == sorted(set(numbers))
        old = [number for number in numbers if number <= queried]
        self.repeated += len(old)
        if old:
            values = {"channel": self._channel, "number": str(old[0])}
            at = (await self._http.get("/pages/published", params=values)).json()["at"]
            assert at > page["begun"] - MARGIN + ahead - 0.002  # times in streams are whole ms
        await self._client.result("unsubscribe", {"channel": self._channel})


@asynccontextmanager
async def loads(
    pages: Server, clients: Server, connect: Callable[..., Any], channel: str
) -> AsyncIterator[Loads]:
    """Write all the time, while pages are loaded."""
    async with httpx.AsyncClient(base_url=pages.address, timeout=30) as http:
        await http.get("/pages/writer", params={"channel": channel, "rate": RATE})
        yield Loads(pages, http, await connect(clients), channel)
        await http.get("/pages/writer", params={"channel": channel, "rate": 0})


@pytest.mark.parametrize("tag", [True, False], ids=["with the tag", "without it"])
async def test_page_misses_nothing_with_the_tag_alone(
    tag: bool,
    shared_cluster: Cluster,
    connect: Callable[..., Any],
    unique: str,
) -> None:
    pages, clients = shared_cluster(**OPTIONS)
    number = LOADS if tag else min(LOADS, 20)

    async with loads(pages, clients, connect, f"pages:{unique}") as found:
        for _ in range(number):
            await found.load(tag, 0)

    counts = (number, found.missed, found.loaded, found.repeated)
    logger.info("%d loads, %d missed, %d without a position, %d repeated", *counts)
    assert found.loaded < number
    if tag:
        assert found.missed == 0
    else:
        assert found.missed >= number


@pytest.mark.parametrize("ahead", [1.0, -1.0])
async def test_page_misses_nothing_when_clocks_differ(
    ahead: float,
    cluster: Cluster,
    redis_server: RedisServer,
    connect: Callable[..., Any],
    unique: str,
) -> None:
    (pages,) = cluster(
        1,
        redis_server,
        **OPTIONS,
        application="tests.site.asgi_other_clock:application",
        environment={"TEST_CLOCK_AHEAD": str(ahead)},
    )

    async with loads(pages, pages, connect, f"pages:{unique}") as found:
        for _ in range(20):
            await found.load(True, ahead)

    assert found.missed == 0


@pytest.mark.parametrize("fault", ["frozen", "killed"])
def test_page_renders_without_a_position_while_redis_is_away(
    fault: str, cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    """It does not wait as long as a publisher does: that would be longer than this client."""
    redis = own_redis()
    patient = {"redis_read_timeout": 120, "redis_connect_timeout": 120}
    (server,) = cluster(1, redis, **OPTIONS, **patient)
    with httpx.Client(base_url=server.address, timeout=TIMEOUT) as http:

        def page() -> dict[str, Any]:
            (found,) = elements(http.get(f"/pages/tag?channel=pages:{unique}").text)
            return found

        assert "offset" in page()
        redis.freeze() if fault == "frozen" else redis.kill()
        pages = [page() for _ in range(3)]
        redis.resume() if fault == "frozen" else redis.start()

        assert pages == 3 * [{"channel": f"pages:{unique}"}]
        wait_until(lambda: "offset" in page(), TIMEOUT, "a page with a position")
