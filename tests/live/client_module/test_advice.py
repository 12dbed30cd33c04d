"""The client module in a browser: servers that close, stay silent or send nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.client_module.page import ClientPage
from tests.scripted_server import Line

ADVICE = (
    # code and reason, what the page is told
    ((3001, '{"reason":"shutdown","reconnect":true}'), "shutdown", True),
    ((3012, '{"reason":"force disconnect","reconnect":false}'), "force disconnect", False),
    ((4001, '{"reason":"go away","reconnect":false}'), "go away", False),
    ((3001, "going away"), "going away", True),
    ((3001, ""), "connection lost", True),
    ((3001, "null"), "null", True),
    # what something on the way says is no advice to stay away
    ((3001, "1001"), "1001", True),
    ((3001, "{}"), "{}", True),
    # something on the way dropped the reason; the code says enough
    ((3002, ""), "connection lost", False),
)


async def test_advice_of_a_close_frame_is_told_and_followed(page: ClientPage) -> None:
    for close, reason, reconnect in ADVICE:

        async def script(line: Line, close: tuple[int, str] = close) -> None:
            await line.accept()
            if line.number == 1:
                await line.close(*close)

        async with page.scripted(script):
            await page.event("connect")
            lost = {"code": close[0], "reason": reason, "reconnect": reconnect}
            assert await page.event("disconnect") == lost
            if reconnect:
                await page.event("connect")
                await page.run("client.disconnect()")
                await page.event("disconnect")
            else:
                assert not await page.run("return client.reconnecting")


NO_MESSAGES = (
    "no JSON\n",
    '{"id":1,"result":\n',
    "5\n",
    '"text"\n',
    "null\n",
    "[]\n",
    "{}\n",
    '{"result":{"channel":"news"}}\n',
    '{"result":{"type":1,"channel":"news","data":null}}\n',
    '{"result":{"type":77,"channel":"news","data":{}}}\n',
    '{"id":77,"result":{}}\n',
    b'{"result":{"type":4,"data":{}}}\n',
)


async def test_frames_that_are_no_messages_do_not_break_the_client(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        await line.reply("subscribe", result={})
        if line.number <= len(NO_MESSAGES):
            await line.send_frame(NO_MESSAGES[line.number - 1])
            await line.close(3001, "")

    async with page.scripted(script, "subscribe('news')", minDelay=1, maxDelay=1):
        told = await page.events("sub:subscribed", "news", len(NO_MESSAGES) + 1)
        assert [each["isResubscribe"] for each in told] == [False] + [True] * len(NO_MESSAGES)


@pytest.mark.parametrize("code", [102, 100, 110])
async def test_error_on_connect_leads_to_another_connection(page: ClientPage, code: int) -> None:
    """Rules for clients, rule 1."""

    async def script(line: Line) -> None:
        if line.number == 1:
            await line.reply("connect", error={"code": code, "message": "no"})
        else:
            await line.accept()

    async with page.scripted(script) as server:
        await page.event("connect")

        error = await page.event("error")
        assert (error["code"], error["temporary"]) == (code, True)
        assert server.connections == 2


async def test_connect_without_answer_is_tried_again(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        if line.number > 1:
            await line.accept()

    async with page.scripted(script, timeouts={"command": 50}, fallback=False) as server:
        await page.event("connect")
        assert server.connections >= 2  # more, where an answer takes longer than that
        assert await page.error("await client.rpc('slow')") == 1  # TIMEOUT
        lost = len(await page.unread("disconnect"))
        assert lost == server.connections - 1, "no answer to another command loses no connection"


async def test_pending_command_is_rejected_when_the_connection_is_lost(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        if line.number == 1:
            await line.command("rpc")
            await line.close(3001, "")

    async with page.scripted(script):
        await page.event("connect")
        assert await page.error("await client.rpc('slow')") == 2  # CONNECTION_LOST
        await page.event("connect")


async def test_subscription_whose_token_expires_on_its_way_is_made_with_another(
    page: ClientPage,
) -> None:
    """A token of which less than a second is left can be good, and its expiry no future one."""
    tokens: list[str] = []

    async def script(line: Line) -> None:
        await line.accept()
        replies: list[dict[str, Any]] = [
            {"error": {"code": 110, "message": "expired"}},
            {"result": {}},
        ]
        for reply in replies:
            command = await line.command("subscribe")
            tokens.append(command["params"]["token"])
            await line.send({"id": command["id"], **reply})

    async with page.scripted(script):
        await page.event("connect")
        await page.run("""
            let number = 0;
            subscribe("$news", { getToken: async () => `token ${++number}` });
        """)

        error = await page.event("sub:error", "$news")
        assert (error["code"], error["temporary"]) == (110, True)
        await page.event("sub:subscribed", "$news")

    assert tokens == ["token 1", "token 2"]


async def test_caller_goes_on_before_what_follows_the_reply_in_its_frame(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        await line.reply("subscribe", result={})
        command = await line.command("rpc")
        push = {"result": {"channel": "news", "data": {"data": "push"}}}
        await line.send({"id": command["id"], "result": {"data": "reply"}}, push, push)
        await line.close(3012, '{"reason":"force disconnect","reconnect":false}')

    async with page.scripted(script, "subscribe('news')"):
        await page.event("sub:subscribed", "news")
        order = await page.run("""
            const order = [];
            subscriptions.get("news").on("publication", ({ data }) => order.push(data));
            const ended = next("disconnect");
            const ask = async () => client.rpc("anything");
            order.push(await ask());
            await ended;
            return order;
        """)

        assert order == ["reply", "push", "push"]


async def test_messages_before_a_close_are_handled_before_it(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        command = await line.command("rpc")
        await line.send(
            {"id": command["id"], "result": {}}, {"result": {"type": 4, "data": {"data": 1}}}
        )
        await line.close(3012, "")

    async with page.scripted(script):
        await page.event("connect")
        await page.run("await client.rpc('anything'); await next('disconnect')")

        assert await page.unread("message") == [{"data": 1}]


async def test_subscription_that_the_server_makes_later_is_told(page: ClientPage) -> None:
    """Events: the kind Sub."""
    sub = {"recoverable": True, "offset": 1, "epoch": "e"}
    asked: list[Any] = []

    async def script(line: Line) -> None:
        if line.number > 1:
            command = await line.command("connect")
            asked.append(command["params"]["subs"])
            await line.stay()
        await line.accept()
        await line.send({"result": {"type": 5, "channel": "news", "data": sub}})
        await line.send({"result": {"channel": "news", "data": {"data": "hi", "offset": 2}}})
        await line.close(3001, "")

    async with page.scripted(script):
        await page.event("connect")
        assert (await page.event("subscribed", "news"))["recoverable"]
        assert await page.data("news", 1, "publication") == ["hi"]
        await page.event("subscribing", "news")
        await page.run("while (client.state !== 'connecting') await next('state')")
        await page.run("while (frames.length < 2) await new Promise((go) => setTimeout(go, 5))")
        await page.run("client.disconnect()")

    assert asked == [{"news": {"recover": True, "offset": 2, "epoch": "e"}}]


async def test_handler_that_disconnects_hears_of_no_server_side_channel(page: ClientPage) -> None:
    async def script(line: Line) -> None:
        await line.accept(subs={"news": {}})

    async with page.scripted(script):
        await page.event("connect")
        await page.event("subscribed", "news")
        await page.run("client.disconnect()")
        await page.event("unsubscribed", "news")
        await page.event("disconnect")

        await page.run("client.on('connect', () => client.disconnect()); client.connect()")
        await page.event("disconnect")

        assert await page.unread("subscribed", "news") == []
        assert await page.unread("unsubscribed", "news") == []


async def test_unsub_during_a_subscribe_leaves_the_channel_unsubscribed_on_both_sides(
    page: ClientPage,
) -> None:
    """It may be about an earlier subscription, and the server may make this one all the same."""

    async def script(line: Line) -> None:
        await line.accept()
        command = await line.command("subscribe")
        unsub = {"result": {"type": 3, "channel": "news", "data": {}}}
        await line.send(unsub, {"id": command["id"], "result": {}})
        await line.reply("unsubscribe", result={})
        await line.send({"result": {"type": 4, "data": {"data": "unsubscribed"}}})

    async with page.scripted(script, "subscribe('news')"):
        assert await page.event("message") == {"data": "unsubscribed"}
        assert await page.run("return subscriptions.get('news').state") == "unsubscribed"
        assert await page.unread("sub:subscribed", "news") == []


async def test_frame_of_very_many_messages_is_handled_to_its_end(page: ClientPage) -> None:
    """A server may join what has waited for a client."""
    other = {"result": {"channel": "n", "data": {"data": 1}}}

    async def script(line: Line) -> None:
        await line.accept()
        await line.send(*[other] * 150_000, {"result": {"type": 4, "data": {"data": "end"}}})

    async with page.scripted(script):
        await page.event("connect")
        assert await page.event("message") == {"data": "end"}
        assert await page.unread("disconnect") == []
