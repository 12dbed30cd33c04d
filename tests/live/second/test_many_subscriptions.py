"""Published clients with hundreds of channels stay within the default rates of commands.

They subscribe to all of them at once, and again after a cut, with recovery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from centrifuge import SubscribedContext, SubscriptionEventHandler

from realtime.config.limit_options import LimitOptions
from tests.js_client import Driver
from tests.js_next import JSON_5, open_next
from tests.live.monitoring.scraping import KEY, scrape
from tests.live.python_client import python_client
from tests.server import TIMEOUT, Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

SUBSCRIPTIONS = 300
CHANNELS = [f"kept:{number}" for number in range(SUBSCRIPTIONS)]


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """A server with the default rates."""
    return serve(
        metrics_key=KEY,
        v3_use_offset=True,
        client_channel_limit=SUBSCRIPTIONS,
        client_command_rates=LimitOptions().client_command_rates,
        namespaces=[
            {
                "name": "kept",
                "history_size": 5,
                "history_lifetime": 300,
                "history_recover": True,
            }
        ],
    )


@pytest.fixture
def refused(server: Server) -> Callable[[], dict[tuple[str, ...], float]]:
    """Return the errors to commands, and the closes by the server, since the beginning."""

    def count() -> dict[tuple[str, ...], float]:
        wanted = ("realtime_command_errors_total", "realtime_disconnects_total")
        return {
            name: value
            for name, value in scrape(server).items()
            if name[0] in wanted and name[1:] != ("0",)
        }

    before = count()
    return lambda: {
        name: value - before.get(name, 0)
        for name, value in count().items()
        if value != before.get(name, 0)
    }


def publish_to_all(server: Server, value: int) -> None:
    result = server.api("broadcast", channels=CHANNELS, data=value)
    assert result == {"result": {}}


async def test_javascript_client_subscribes_to_hundreds_and_recovers_them(
    next_driver: Driver,
    server: Server,
    proxy: TcpProxy,
    refused: Callable[[], dict[tuple[str, ...], float]],
) -> None:
    client = await open_next(next_driver, JSON_5, proxy.url)
    await asyncio.gather(*map(client.begin_to_subscribe, CHANNELS))
    await client.connect()
    for channel in CHANNELS:
        await client.event("subscribed", channel)
    async with client.away(proxy):
        await asyncio.to_thread(publish_to_all, server, 1)
    for channel in CHANNELS:
        await client.recovered(channel)
        assert await client.publication(channel) == 1
    assert refused() == {}


class Subscribed(SubscriptionEventHandler):
    """Keeps what a subscription is told about its beginnings."""

    def __init__(self) -> None:
        self.contexts: asyncio.Queue[SubscribedContext] = asyncio.Queue()

    async def on_subscribed(self, ctx: SubscribedContext) -> None:
        self.contexts.put_nowait(ctx)


async def test_python_client_subscribes_to_hundreds_and_recovers_them(
    server: Server,
    proxy: TcpProxy,
    refused: Callable[[], dict[tuple[str, ...], float]],
) -> None:
    events = [Subscribed() for _ in CHANNELS]
    async with python_client(
        proxy.url, min_reconnect_delay=0.02, max_reconnect_delay=0.1, timeout=TIMEOUT
    ) as client:
        for channel, each in zip(CHANNELS, events, strict=True):
            await client.new_subscription(channel, events=each).subscribe()
        await client.connect()
        async with asyncio.timeout(TIMEOUT):
            for each in events:
                await each.contexts.get()

            proxy.refuse()
            await asyncio.to_thread(publish_to_all, server, 1)
            proxy.allow()

            for each in events:
                assert (await each.contexts.get()).recovered
    assert refused() == {}
