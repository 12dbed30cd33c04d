"""The client module in a browser: what was missed while the connection was away."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.client_module.page import KEPT, ClientPage
from tests.live.conftest import NewProxy
from tests.scripted_server import Line, ScriptedServer
from tests.server import Server
from tests.tcp_proxy import TcpProxy


@pytest.fixture(params=["server", "seq_server"], ids=["offset", "seq and gen"])
async def either(request: pytest.FixtureRequest) -> Server:
    """Runs a test once per way to write positions."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def proxy(either: Server, new_proxy: NewProxy) -> TcpProxy:
    """A proxy in front of that server."""
    return await new_proxy(either)


def publish(server: Server, channel: str, *numbers: int) -> None:
    for number in numbers:
        server.publish(channel, number)


async def test_missed_publications_come_in_order_and_once(
    either: Server, proxy: TcpProxy, page: ClientPage, channel: str
) -> None:
    await page.connected(proxy.url, fallback=False)
    assert not (await page.subscribe(channel))["isResubscribe"]
    publish(either, channel, 1)
    assert await page.data(channel, 1) == [1]

    for first in (2, 6):
        async with page.away(proxy):
            publish(either, channel, *range(first, first + 3))
        again = await page.event("sub:subscribed", channel)
        publish(either, channel, first + 3)

        received = await page.events("sub:publication", channel, 4)
        assert [each["data"] for each in received] == [first, first + 1, first + 2, first + 3]
        assert [each["offset"] for each in received] == [first, first + 1, first + 2, first + 3]
        assert [each["recovered"] for each in received] == [True, True, True, False]
        assert again["isResubscribe"]
        assert again["recovered"]
        assert again["recoverable"]
    assert await page.unread("sub:publication", channel) == []
    assert (await page.run("return subscriptions.get(args[0]).position", channel))["offset"] == 9


async def test_missed_publications_of_a_server_side_subscription_come_in_order_and_once(
    either: Server, proxy: TcpProxy, page: ClientPage, channel: str
) -> None:
    token = connection_token("17", channels=[channel])
    publish(either, channel, 1)
    await page.connected(proxy.url, token=token, fallback=False)
    assert not (await page.event("subscribed", channel))["isResubscribe"]
    publish(either, channel, 2)
    assert await page.data(channel, 1, "publication") == [2]

    async with page.away(proxy):
        await page.event("subscribing", channel)
        publish(either, channel, 3, 4)
    again = await page.event("subscribed", channel)
    publish(either, channel, 5)

    assert await page.data(channel, 3, "publication") == [3, 4, 5]
    assert await page.unread("publication", channel) == []
    assert again["isResubscribe"]
    assert again["recovered"]
    assert [each["data"] for each in again["publications"]] == [3, 4]


async def test_too_many_missed_publications_are_not_called_recovered(
    either: Server, proxy: TcpProxy, page: ClientPage, channel: str
) -> None:
    await page.connected(proxy.url, fallback=False)
    await page.subscribe(channel)
    async with page.away(proxy):
        publish(either, channel, *range(1, KEPT + 3))
    again = await page.event("sub:subscribed", channel)
    assert not again["recovered"]
    assert await page.data(channel, KEPT) == list(range(3, KEPT + 3))


async def test_connecting_again_by_hand_recovers_and_subscribing_again_does_not(
    either: Server, page: ClientPage, channel: str
) -> None:
    """Client object, rule 4."""
    await page.connected(either.socket)
    await page.subscribe(channel)
    await page.run("client.disconnect()")
    publish(either, channel, 1)
    await page.connect()
    assert (await page.event("sub:subscribed", channel))["recovered"]
    assert await page.data(channel, 1) == [1]

    await page.run("subscriptions.get(args[0]).unsubscribe()", channel)
    publish(either, channel, 2)
    await page.run("subscriptions.get(args[0]).subscribe()", channel)
    again = await page.event("sub:subscribed", channel)
    assert not again["isResubscribe"]
    assert again["publications"] == []


async def test_subscribing_since_a_position_recovers_what_came_after_it(
    either: Server, page: ClientPage, channel: str
) -> None:
    await page.connected(either.socket)
    await page.subscribe(channel)
    publish(either, channel, 1)
    await page.data(channel, 1)
    since = await page.run("return subscriptions.get(args[0]).position", channel)
    publish(either, channel, 2, 3)
    await page.connected(either.socket)

    first = await page.run(
        """
        const subscription = client.subscribe(args[0], { since: args[1] });
        return new Promise((resolve) => subscription.on("subscribed", resolve));
        """,
        channel,
        since,
    )

    assert first["recovered"]
    assert not first["isResubscribe"]
    assert [each["data"] for each in first["publications"]] == [2, 3]


async def test_channel_without_recovery_is_restored_without(
    either: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    channel = f"chat:{unique}"
    await page.connected(proxy.url, fallback=False)
    await page.subscribe(channel)
    publish(either, channel, 1)
    await page.data(channel, 1)

    async with page.away(proxy):
        publish(either, channel, 2)
    again = await page.event("sub:subscribed", channel)
    publish(either, channel, 3)

    assert await page.data(channel, 1) == [3]
    assert again["isResubscribe"]
    assert not again["recoverable"]
    assert await page.run("return subscriptions.get(args[0]).position", channel) is None


async def test_large_position_of_seq_and_gen_is_sent_as_one_offset(page: ClientPage) -> None:
    """docs/protocol.md, 3.8: gen holds the high 32 bits of what the server writes."""
    asked: list[dict[str, Any]] = []

    async def script(line: Line) -> None:
        await line.accept()
        command = await line.command("subscribe")
        asked.append(command["params"])
        result = {"recoverable": True, "seq": 7, "gen": 2, "epoch": "e"}
        await line.send({"id": command["id"], "result": result})
        await line.close(3001, '{"reason":"shutdown","reconnect":true}')

    async with page.scripted(script, "subscribe('news')"):
        await page.events("sub:subscribed", "news", 2)
        await page.run("client.disconnect()")

    assert asked[1] == {
        "channel": "news",
        "recover": True,
        "offset": 2 * 2**32 + 7,
        "epoch": "e",
    }


def pushed(offset: int) -> dict[str, Any]:
    return {"result": {"channel": "news", "data": {"data": offset, "offset": offset}}}


@pytest.mark.parametrize("server_side", [False, True], ids=["client-side", "server-side"])
async def test_gap_between_publications_is_filled_by_another_connection(
    page: ClientPage, server_side: bool
) -> None:
    """What a broken HTTP response may lose is noticed, whatever the server thinks."""
    result = {"recoverable": True, "offset": 1, "epoch": "e"}
    missed = [{"data": offset, "offset": offset} for offset in (3, 4)]
    again = {"recoverable": True, "offset": 4, "epoch": "e", "recovered": True} | {
        "publications": missed
    }

    async def script(line: Line) -> None:
        found = result if line.number == 1 else again
        await line.accept(**({"subs": {"news": found}} if server_side else {}))
        if not server_side:
            await line.reply("subscribe", result=found)
        if line.number == 1:
            await line.send(pushed(2), pushed(2), pushed(4))

    async with ScriptedServer(script) as server:
        await page.make(server.url)
        await page.run("if (!args[0]) subscribe('news'); client.connect()", server_side)

        name = "publication" if server_side else "sub:publication"
        assert await page.data("news", 3, name) == [2, 3, 4]

        assert (await page.event("disconnect"))["reason"] == "insufficient state"
        assert await page.unread(name, "news") == []


RECOVERED = {
    "recoverable": True,
    "recovered": True,
    "offset": 3,
    "epoch": "e",
    "publications": [{"data": offset, "offset": offset} for offset in (1, 2, 3)],
}


@pytest.mark.parametrize(
    ("call", "told"), [("client.disconnect()", [1, 2, 3]), ("news.unsubscribe()", [1])]
)
async def test_recovered_publications_when_a_handler_ends_them(
    page: ClientPage, call: str, told: list[int]
) -> None:
    """Where it disconnects, the position is behind them all, so they would not come again."""

    async def script(line: Line) -> None:
        await line.accept()
        await line.reply("subscribe", result=RECOVERED)

    first = f"const news = subscribe('news'); news.on('publication', () => {call})"
    async with page.scripted(script, first):
        await page.event("sub:unsubscribed", "news")
        assert [each["data"] for each in await page.unread("sub:publication", "news")] == told
        await page.run("client.disconnect()")
