"""The client module in a browser: parts of a page that share a subscription."""

from __future__ import annotations

from tests.conftest import connection_token
from tests.live.client_module.page import ClientPage
from tests.server import Server
from tests.tcp_proxy import TcpProxy

TWO = """
    window.got = [];
    const channel = args[0];
    window.parts = ["a", "b"].map((name) => {
      const part = client.channel(channel);
      part.on("publication", ({ data }) => got.push(name + data));
      return part;
    });
    await parts[1].subscription.ready();
"""
TICK = "await new Promise((go) => setTimeout(go, 0));"


async def test_subscription_ends_with_the_last_of_its_parts(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    await page.run(TWO, unique)
    await page.run(f"parts[0].release(); parts[0].release(); {TICK}")
    server.publish(unique, 1)
    await page.run("while (!got.length) await new Promise((go) => setTimeout(go, 5))")
    assert await page.run("return [...got, parts[1].state]") == ["b1", "subscribed"]
    assert await page.run(f"parts[1].release(); {TICK} return parts[1].state") == "unsubscribed"
    await page.subscribe(f"chat:{unique}")
    assert server.api("channels")["result"].get("channels", []).count(unique) == 0


async def test_part_that_is_made_anew_in_the_same_turn_goes_on(
    server: Server, page: ClientPage, unique: str
) -> None:
    """React runs effects twice, and moves parts. And a part leaves a subscription of the page."""
    await page.connected(server.socket)
    await page.sent()
    script = f"""
        const first = client.channel(args[0]);
        await first.subscription.ready();
        first.release();
        const second = client.channel(args[0]);
        {TICK}
        const found = [second.state, first.subscription === second.subscription];
        await client.subscribe(args[0]).ready();
        second.release();
        {TICK}
        return [...found, second.state];
    """
    assert await page.run(script, unique) == ["subscribed", True, "subscribed"]
    assert len(await page.sent()) == 1


async def test_one_function_may_handle_events_of_several_parts(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    script = """
        window.got = [];
        const push = ({ data }) => got.push(data);
        window.parts = [1, 2].map(() => {
          const part = client.channel(args[0]);
          part.on("publication", push);
          return part;
        });
        await parts[0].subscription.ready();
        parts[0].release();
    """
    await page.run(script, unique)
    await page.run("subscribe(args[0])", unique)

    server.publish(unique, 2)

    assert await page.data(unique, 1) == [2]
    assert await page.run("return got") == [2]


async def test_parts_are_told_of_a_loss_and_of_the_return(
    proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    await page.connected(proxy.url, token=connection_token("17"))
    script = """
        window.told = [];
        window.part = client.channel(args[0]);
        for (const name of ["subscribing", "subscribed"]) part.on(name, () => told.push(name));
        await part.subscription.ready();
    """
    await page.run(script, unique)

    proxy.cut()
    await page.event("disconnect")
    await page.run("await part.subscription.ready()")

    assert await page.run("return told") == ["subscribed", "subscribing", "subscribed"]


async def test_page_that_is_seen_again_tests_its_connection(
    server: Server, page: ClientPage
) -> None:
    await page.connected(server.socket)
    await page.sent()
    await page.run("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))")
    await page.run("while (!frames.length) await new Promise((go) => setTimeout(go, 5))")
    assert ['"method":7' in command for [command] in await page.sent()] == [True]


async def test_page_that_the_browser_keeps_closes_its_connection(
    server: Server, page: ClientPage
) -> None:
    """Some browsers keep no page that has a connection; a page that ends needs no event."""
    await page.connected(server.socket, minDelay=60_000, maxDelay=60_000)
    await page.run("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: false }))")
    assert await page.run("return client.state") == "connected"
    await page.run("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    lost = await page.event("disconnect")
    assert (lost["reason"], lost["reconnect"]) == ("page hidden", True)
    await page.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await page.event("connect")
