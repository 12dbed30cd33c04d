"""The client module in a browser: refused subscriptions, private channels and their tokens."""

from __future__ import annotations

from tests.conftest import connection_token
from tests.live.client_module.page import ClientPage
from tests.live.lounge import log_in
from tests.scripted_server import Line
from tests.server import Server
from tests.tcp_proxy import TcpProxy

VIEWS = 'realtime.tokensFrom({subscribe: "/centrifuge/subscribe"})'
SUBSCRIBE_ALL = "for (const channel of args) subscribe(channel)"
REQUESTS = """
    return performance.getEntriesByType("resource")
      .filter(({ name }) => name.endsWith("/centrifuge/subscribe")).length
"""
TOKENS = """
    const { channel, ttl } = args[0];
    subscribe(channel, {
      getToken: async ({ client, channel }) => {
        window.asked = (window.asked ?? 0) + 1;
        if (window.denied) return null;
        const query = new URLSearchParams({ client, channel, ttl });
        return (await (await fetch(`/client/token?${query}`)).json()).token;
      },
    });
"""
SOON = 3
"""Seconds in which tokens expire: up to one less is left, and a page has to subscribe in that."""
UNTIL_REFRESHED = """
    const refreshed = () => frames.some((frame) => frame.includes('"method":11'));
    while (!refreshed()) await new Promise((go) => setTimeout(go, 10));
"""
UNTIL_ASKED = "while (!(window.asked >= args[0])) await new Promise((go) => setTimeout(go, 10))"


async def log_in_page(server: Server, page: ClientPage, *groups: str) -> str:
    """Load the page as a new user who is in these groups; returns the user ID."""
    visitor, pk = log_in(server, *groups)
    await page.open(server.address, dict(visitor.http.cookies))
    return pk


async def test_refused_subscription_is_told_and_not_tried_again(
    proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    await page.connected(proxy.url)
    await page.run("subscribe(args[0])", f"{unique}#18")

    error = await page.event("sub:error", f"{unique}#18")
    await page.sent()
    proxy.cut()
    await page.event("connect")
    await page.subscribe(unique)

    assert (error["code"], error["message"]) == (103, "permission denied")
    assert not error["temporary"]
    assert not any(f"{unique}#18" in command for frame in await page.sent() for command in frame)
    assert await page.run("return subscriptions.get(args[0]).state", f"{unique}#18") == (
        "unsubscribed"
    )


async def test_ready_of_a_refused_channel_is_rejected_and_it_can_be_tried_by_hand(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"{unique}#18"
    await page.connected(server.socket)
    assert await page.error("await subscribe(args[0]).ready()", channel) == 103
    assert await page.error("await subscriptions.get(args[0]).ready()", channel) == 103
    assert (await page.event("sub:error", channel))["code"] == 103
    await page.run("subscriptions.get(args[0]).subscribe()", channel)
    assert (await page.event("sub:error", channel))["code"] == 103


async def test_channel_of_another_subscription_object_is_already_subscribed(
    server: Server, page: ClientPage, unique: str
) -> None:
    """Client object, rule 3."""
    await page.connected(server.socket)
    script = """
        const first = client.subscribe(args[0]);
        first.unsubscribe();
        const second = client.subscribe(args[0]);
        if (first === second || second !== client.subscribe(args[0])) throw new Error("not one");
        first.subscribe();
    """
    assert await page.error(script, unique) == 105


async def test_internal_error_or_no_answer_leads_to_another_connection(page: ClientPage) -> None:
    """Rules for clients, rules 2 and 3."""

    async def script(line: Line) -> None:
        await line.accept()
        if line.number < 3:
            await line.reply("subscribe", error={"code": 100, "message": "internal server error"})
        elif line.number > 3:
            await line.reply("subscribe", result={})

    options = {"timeouts": {"command": 200}}
    async with page.scripted(script, "subscribe('news')", **options) as server:
        await page.event("sub:subscribed", "news")
        errors = await page.unread("sub:error", "news")
        assert [(error["code"], error["temporary"]) for error in errors] == [(100, True)] * 2
        assert server.connections == 4


async def test_private_channels_are_asked_for_in_one_request_and_decided_one_by_one(
    server: Server, page: ClientPage, unique: str
) -> None:
    pk = await log_in_page(server, page, unique)
    allowed = [f"$lounge:{unique}", f"$later-{unique}"]
    denied = [f"$lounge:{unique}-other", "$elsewhere"]
    await page.connected(server.socket, VIEWS, token=connection_token(pk))
    await page.run(SUBSCRIBE_ALL, *denied, *allowed)
    for channel in allowed:
        await page.event("sub:subscribed", channel)
    for channel in denied:
        assert (await page.event("sub:error", channel))["code"] == 103
    assert await page.run(REQUESTS) == 1


async def test_private_channels_are_restored_with_tokens_for_the_new_connection(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    pk = await log_in_page(server, page, unique)
    channels = [f"$lounge:{unique}", f"$later-{unique}"]
    await page.connected(proxy.url, VIEWS, token=connection_token(pk))
    await page.run(SUBSCRIBE_ALL, *channels)
    for channel in channels:
        await page.event("sub:subscribed", channel)

    proxy.cut()
    for channel in channels:
        assert (await page.event("sub:subscribed", channel))["isResubscribe"]
    server.publish(channels[0], 2)

    assert await page.data(channels[0], 1) == [2]
    assert await page.run(REQUESTS) == 2


async def test_view_that_fails_is_asked_again(server: Server, page: ClientPage) -> None:
    """It answers with status 500 when nobody could decide."""
    pk = await log_in_page(server, page)
    await page.connected(server.socket, VIEWS, token=connection_token(pk))
    await page.run(SUBSCRIBE_ALL, "$odd:failure")
    errors = await page.events("sub:error", "$odd:failure", 2)
    assert [(error["code"], error["temporary"]) for error in errors] == [(6, True)] * 2
    assert await page.unread("disconnect") == []


async def test_private_channel_needs_a_function_for_tokens_unless_no_channel_is_private(
    server: Server, page: ClientPage, unique: str
) -> None:
    """As on the server, where an empty `channel_private_prefix` turns that off."""
    await page.connected(server.socket)
    await page.run(SUBSCRIBE_ALL, f"${unique}")
    assert (await page.event("sub:error", f"${unique}"))["code"] == 103
    options = "{ privateChannelPrefix: '', getChannelToken: async () => ({}) }"
    await page.connected(server.socket, options)
    await page.subscribe(unique)


async def test_subscription_is_renewed_when_it_expires(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"${unique}"
    await page.connected(server.socket)
    await page.run(TOKENS, {"channel": channel, "ttl": SOON})
    await page.event("sub:subscribed", channel)
    await page.run(UNTIL_ASKED, 2)
    await page.run(UNTIL_REFRESHED)
    assert await page.unread("disconnect") == []
    assert await page.unread("sub:unsubscribed", channel) == []


async def test_subscription_that_is_not_granted_again_ends(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"${unique}"
    await page.connected(server.socket)
    await page.run(TOKENS, {"channel": channel, "ttl": SOON})
    await page.event("sub:subscribed", channel)
    await page.run("window.denied = true")
    await page.event("sub:unsubscribed", channel)
    assert (await page.event("sub:error", channel))["code"] == 103
    server.publish(channel, 1)
    await page.subscribe(unique)
    assert await page.unread("sub:publication", channel) == []


async def test_expired_subscription_token_is_replaced(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"${unique}"
    await page.connected(server.socket)
    await page.run(TOKENS, {"channel": channel, "ttl": -10})
    errors = await page.events("sub:error", channel, 2)
    assert [(error["code"], error["temporary"]) for error in errors] == [(109, True)] * 2
    assert await page.run("return asked") >= 2
