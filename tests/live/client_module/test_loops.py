"""The client module in a browser: loops over a subscription, and how they end."""

from __future__ import annotations

import pytest

from tests.live.client_module.page import ClientPage
from tests.server import Server
from tests.tcp_proxy import TcpProxy

LOOP = """
    window.got = [];
    window.loop = (async () => {
      for await (const { data } of client.subscribe(args[0])) got.push(data);
      return "ended";
    })();
"""
UNTIL = "while (got.length < args[0]) await new Promise((go) => setTimeout(go, 5)); return got"


@pytest.fixture
async def looping(proxy: TcpProxy, page: ClientPage, channel: str) -> ClientPage:
    """A page with a loop over a channel with recovery."""
    await page.connected(proxy.url, fallback=False)
    await page.run(LOOP + "await client.subscribe(args[0]).ready()", channel)
    return page


async def test_loop_gets_what_is_published_and_what_was_missed(
    server: Server, proxy: TcpProxy, looping: ClientPage, channel: str
) -> None:
    server.publish(channel, 1)
    await looping.run(UNTIL, 1)
    async with looping.away(proxy):
        server.publish(channel, 2)
    await looping.event("connect")
    server.publish(channel, 3)
    assert await looping.run(UNTIL, 3) == [1, 2, 3]


@pytest.mark.parametrize("end", ["page", "client", "server"])
async def test_loop_ends_with_its_subscription(
    server: Server, looping: ClientPage, channel: str, end: str
) -> None:
    if end == "server":
        server.api("unsubscribe", channel=channel, user="17")
    elif end == "client":
        await looping.run("client.disconnect()")
    else:
        await looping.run("client.subscribe(args[0]).unsubscribe()", channel)

    assert await looping.run("return loop") == "ended"
    if end == "page":
        over = "const subscription = client.subscribe(args[0]); subscription.unsubscribe();"
        script = f"{over} for await (const each of subscription) return each; return 'at once'"
        assert await looping.run(script, channel) == "at once"


async def test_leaving_a_loop_does_not_unsubscribe(
    server: Server, looping: ClientPage, channel: str
) -> None:
    script = """
        window.leaving = (async () => {
          for await (const { data } of client.subscribe(args[0])) return data;
        })();
    """
    await looping.run(script, channel)
    server.publish(channel, 1)
    assert await looping.run("return leaving") == 1
    server.publish(channel, 2)
    assert await looping.run(UNTIL, 2) == [1, 2]


async def test_loop_throws_when_the_subscription_is_refused(
    looping: ClientPage, channel: str
) -> None:
    script = "for await (const each of client.subscribe(args[0])) return each"
    assert await looping.error(script, "news#18") == 103


async def test_loop_that_is_too_slow_gets_what_waits_and_then_an_error(
    looping: ClientPage, channel: str
) -> None:
    script = """
        const subscription = client.subscribe(args[0]);
        const slow = subscription.publications({ limit: 2 });
        for (const n of [1, 2, 3]) await client.publish(args[0], n);
        while (got.length < 3) await new Promise((go) => setTimeout(go, 5));
        window.slow = [];
        for await (const { data } of slow) window.slow.push(data);
    """

    assert await looping.error(script, channel) == 5  # OVERFLOW
    assert await looping.run("return slow") == [1, 2]
    assert await looping.run("return got") == [1, 2, 3]
