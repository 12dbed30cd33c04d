"""The client module in a browser: connection tokens that are missing, bad, or expire."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.conftest import connection_token
from tests.live.client_module.page import ClientPage
from tests.live.lounge import log_in
from tests.server import Server
from tests.tcp_proxy import TcpProxy

TIMEOUT = 20.0

SOON = 3
"""Seconds in which tokens expire: up to one less is left, and a page has to connect in that."""

TOKENS = """{
    getToken: async () => {
      window.asked = (window.asked ?? 0) + 1;
      const answer = args[1].answers.shift();
      if (answer === "error") throw new Error("not now");
      return answer;
    },
}"""
"""Answers the client's questions by the option `answers`, one after the other."""

HANGING = """{
    getToken: () => {
      window.asked = (window.asked ?? 0) + 1;
      return asked === 1 ? new Promise(() => {}) : args[1].good;
    },
}"""
"""Answers the first question never, and later ones by the option `good`."""

VIEWS = 'realtime.tokensFrom({refresh: "/centrifuge/refresh"})'


async def asked(page: ClientPage) -> int:
    """How often the application was asked for a token."""
    count: int = await page.run("return window.asked ?? 0")
    return count


async def conn_info(page: ClientPage, channel: str) -> Any:
    """The connection info that others see now, by publishing something."""
    await page.run("await client.publish(args[0], null)", channel)
    return (await page.event("sub:publication", channel))["info"].get("connInfo")


async def test_client_without_token_asks_for_one(server: Server, page: ClientPage) -> None:
    token = connection_token("17")
    await page.make(server.socket, TOKENS, answers=[token])
    await page.connect()
    assert await asked(page) == 1
    await page.run("client.disconnect()")
    await page.make(server.socket, TOKENS, token=token, answers=[])
    await page.connect()
    assert await asked(page) == 1, "not with a token"


async def test_expired_token_is_replaced_and_the_client_connects(
    server: Server, page: ClientPage
) -> None:
    token = connection_token("17", ttl=-10)
    await page.make(server.socket, TOKENS, token=token, answers=[connection_token("17")])
    await page.connect()
    error = await page.event("error")
    assert (error["code"], error["message"]) == (109, "token expired")
    assert error["temporary"]
    assert await asked(page) == 1


async def test_expired_token_that_nobody_replaces_ends_the_attempts(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.make(server.socket, token=connection_token("17", ttl=-10))
    await page.run("client.connect()")
    lost = await page.event("disconnect")
    assert lost == {"code": 109, "reason": "token expired", "reconnect": False}
    await page.run("client.setToken(args[0])", connection_token("18"))
    await page.connect()
    await page.subscribe(f"{unique}#18")


async def test_tokens_that_are_always_expired_are_asked_for_with_growing_delays(
    server: Server, page: ClientPage
) -> None:
    old = connection_token("17", ttl=-10)
    answers = [old, old, connection_token("17")]
    options = {"minDelay": 40, "maxDelay": 10_000}
    await page.make(server.socket, TOKENS, token=old, answers=answers, **options)
    await page.connect()
    delays = [s["delay"] for s in await page.unread("state") if s["state"] == "disconnected"]
    assert all(top / 2 <= delay <= top for top, delay in zip([40, 80, 160], delays, strict=True))


async def test_function_for_tokens_that_fails_is_asked_again(
    server: Server, page: ClientPage
) -> None:
    answers = ["error", "error", connection_token("17")]
    await page.make(server.socket, TOKENS, answers=answers)
    await page.connect()
    assert [error["message"] for error in await page.unread("error")] == ["not now", "not now"]
    assert len(await page.unread("disconnect")) == 1


async def test_function_for_tokens_that_hangs_is_asked_again(
    server: Server, page: ClientPage
) -> None:
    await page.make(server.socket, HANGING, good=connection_token("17"), timeouts={"token": 50})
    await page.connect()
    assert len(await page.unread("error")) == 1


async def test_empty_answer_means_that_nobody_may_connect(server: Server, page: ClientPage) -> None:
    for nothing in ("", None):
        await page.make(server.socket, TOKENS, answers=[nothing])
        await page.run("client.connect()")
        assert not (await page.event("disconnect"))["reconnect"]
        state = await page.run("return [client.state, client.reconnecting]")
        assert state == ["disconnected", False]


async def test_invalid_token_is_sent_once(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    await page.make(proxy.url, TOKENS, token="no token", answers=[], minDelay=1, maxDelay=1)
    await page.run("client.connect()")
    lost = await page.event("disconnect")
    assert lost == {"code": 3002, "reason": "invalid token", "reconnect": False}
    # another client does what takes much longer than the delay
    await page.connected(proxy.url)
    await page.subscribe(unique)
    assert proxy.connections == 2
    assert await asked(page) == 0


async def test_token_is_renewed_when_it_expires(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"chat:{unique}"
    renewed = connection_token("17", ttl=300, info={"renewed": True})
    token = connection_token("17", ttl=SOON)
    await page.connected(server.socket, TOKENS, token=token, answers=[renewed])
    await page.subscribe(channel)
    assert await conn_info(page, channel) is None

    async with asyncio.timeout(TIMEOUT):
        while (info := await conn_info(page, channel)) is None:
            pass

    assert info == {"renewed": True}
    assert await page.unread("disconnect") == []
    assert await asked(page) == 1


async def test_renewal_that_fails_is_tried_again(server: Server, page: ClientPage) -> None:
    token = connection_token("17", ttl=SOON)
    answers = ["error", connection_token("17", ttl=300)]
    await page.connected(server.socket, TOKENS, token=token, answers=answers)
    refreshed = """frames.some((frame) => frame.includes('"method":10'))"""
    await page.run(f"while (!{refreshed}) await new Promise((go) => setTimeout(go, 10))")
    assert await page.error("await client.presence('news')") == 108  # still connected
    assert [error["temporary"] for error in await page.unread("error")] == [True]
    assert await page.unread("disconnect") == []


async def test_client_that_was_closed_as_expired_connects_with_a_new_token(
    hasty_server: Server, page: ClientPage
) -> None:
    """The renewal hangs until the server has closed the connection."""
    await page.open(hasty_server.address)
    token = connection_token("17", ttl=SOON)  # loading the page may take as long
    await page.connected(hasty_server.socket, HANGING, token=token, good=connection_token("17"))
    lost = await page.event("disconnect")
    await page.event("connect")
    assert lost == {"code": 3005, "reason": "expired", "reconnect": True}
    assert await asked(page) == 2
    assert await page.unread("error") == []  # the old token was not tried once more


async def test_page_is_who_is_logged_in(server: Server, page: ClientPage, unique: str) -> None:
    """By the site's view for tokens, and by the tag `realtime_config`."""
    visitor, pk = log_in(server)
    assert visitor.http.get("/client").headers["Cache-Control"] == "private"
    await page.open(server.address, dict(visitor.http.cookies))
    await page.make(server.socket, VIEWS)
    await page.connect()
    await page.subscribe(f"{unique}#{pk}")
    await page.open(server.address, dict(visitor.http.cookies))
    await page.run("window.client = realtime.Client.fromPage(); client.connect()")
    await page.run("await client.subscribe(args[0]).ready()", f"{unique}#{pk}")


async def test_view_of_the_site_tells_others_to_give_up(server: Server, page: ClientPage) -> None:
    await page.make(server.socket, VIEWS)
    await page.run("client.connect()")
    assert await page.event("disconnect") == {"code": 6, "reason": "no token", "reconnect": False}
