"""The client module in a browser: events of channels with their reasons, and their handlers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.client_module.page import ClientPage
from tests.server import Server
from tests.tcp_proxy import TcpProxy

STATES = """
    window.told = [];
    const room = subscribe(args[0]);
    for (const name of ["subscribing", "subscribed", "unsubscribed"]) {
      room.on(name, ({ code = null, reason = null }) => {
        told.push([name, room.state, code, reason]);
      });
    }
"""


async def told(page: ClientPage) -> list[Any]:
    found: list[Any] = await page.run("return told.splice(0)")
    return found


async def test_state_and_event_of_a_channel_tell_the_same(
    proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    await page.connected(proxy.url)
    await page.run(STATES, unique)
    await page.event("sub:subscribed", unique)
    assert await told(page) == [["subscribed", "subscribed", None, None]]

    proxy.cut()
    await page.event("sub:subscribed", unique)
    lost, again = await told(page)
    assert lost[:3] == ["subscribing", "subscribing", 1006]
    assert again[1] == "subscribed"

    await page.run("client.disconnect()")
    assert await told(page) == [["unsubscribed", "unsubscribed", 3, "client"]]

    await page.run("client.connect()")
    await page.event("sub:subscribed", unique)
    assert [each[:3] for each in await told(page)] == [
        ["subscribing", "subscribing", 0],
        ["subscribed", "subscribed", None],
    ]

    await page.run("subscriptions.get(args[0]).unsubscribe(); client.disconnect()", unique)
    assert await told(page) == [["unsubscribed", "unsubscribed", 4, "client"]]


async def test_channel_that_the_server_ends_or_refuses_has_its_code(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    await page.subscribe(unique)
    server.api("unsubscribe", channel=unique, user="17")
    await page.run("subscribe('strange:channel')")
    for channel, code, reason in (
        (unique, 2000, "server"),
        ("strange:channel", 102, "namespace not found"),
    ):
        expected = {"channel": channel, "code": code, "reason": reason}
        assert await page.event("sub:unsubscribed", channel) == expected


async def test_earlier_names_of_events_and_fields_go_on(
    server: Server, page: ClientPage, unique: str
) -> None:
    channel = f"chat:{unique}"
    await page.connected(server.socket)
    script = """
        window.told = [];
        const room = client.subscribe(args[0]);
        for (const name of ["subscribe", "publish", "unsubscribe"]) {
          room.on(name, () => told.push(name));
        }
        await room.ready();
        const stats = await client.presenceStats(args[0]);
        return [stats.num_users, stats.num_clients, Object.keys(stats)];
    """
    assert await page.run(script, channel) == [1, 1, ["numClients", "numUsers"]]
    server.publish(channel, 1)
    await page.run("while (told.length < 2) await new Promise((go) => setTimeout(go, 5))")
    await page.run("client.disconnect(); client.disconnect()")

    assert await told(page) == ["subscribe", "publish", "unsubscribe"]


HANDLERS = """
    window.got = [];
    const room = client.subscribe(args[0]);
    const push = (name) => ({ data }) => got.push(name + data);
"""


ENDS: dict[str, tuple[str, list[str]]] = {
    "once": ('room.once("publication", push("a"));', ["a1"]),
    "off": ('const a = push("a"); room.on("publication", a); room.off("publication", a);', []),
    "off after once": (
        'const a = push("a"); room.once("publication", a); room.off("publish", a);',
        [],
    ),
    "once stopped": ('room.once("publication", push("a"))();', []),
    "signal": (
        "const { signal } = (window.ctl = new AbortController());"
        'room.on("publication", push("a"), { signal });'
        'room.on("publication", () => ctl.abort());',
        ["a1"],
    ),
    "aborted signal": ('room.on("publication", push("a"), { signal: AbortSignal.abort() });', []),
    "twice": (
        'const a = push("a"); room.on("publication", a); room.on("publication", a);',
        ["a1", "a2"],
    ),
    "by itself": (
        'const off = room.on("publication", ({ data }) => { got.push("a" + data); off(); });',
        ["a1"],
    ),
}


async def test_handler_is_called_as_long_as_it_is_wanted(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    for number, (name, (script, expected)) in enumerate(ENDS.items()):
        channel = f"{unique}-{number}"
        await page.run(HANDLERS + script + "await room.ready()", channel)
        await page.run("subscribe(args[0])", channel)  # its handler comes last
        server.publish(channel, 1)
        server.publish(channel, 2)
        assert await page.data(channel, 2) == [1, 2]
        assert await page.run("return got") == expected, name


@pytest.mark.parametrize(
    "call",
    [
        "client.ready(options)",
        "client.subscribe('news').ready(options)",
        "client.rpc('x', 1, options)",
    ],
)
async def test_waiting_ends_with_its_timeout_or_signal(page: ClientPage, call: str) -> None:
    await page.make("ws://127.0.0.1:9/", timeouts={"command": 60_000})
    await page.run("client.connect()")

    assert await page.error(f"const options = {{ timeout: 1 }}; await {call}") == 1  # TIMEOUT
    script = f"""
        const options = {{ signal: AbortSignal.abort(new Error("enough")) }};
        const later = new AbortController();
        const reasons = [await {call}.catch(({{ message }}) => message)];
        options.signal = later.signal;
        const waiting = {call};
        later.abort(new Error("stop"));
        return [...reasons, await waiting.catch(({{ message }}) => message)];
    """
    assert await page.run(script) == ["enough", "stop"]
    await page.run("client.disconnect()")


async def test_command_under_way_ends_with_its_signal(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    script = """
        const controller = new AbortController();
        const call = client.rpc("add", { a: 1, b: 2 }, { signal: controller.signal });
        queueMicrotask(() => queueMicrotask(() => controller.abort(new Error("enough"))));
        return call.catch(({ message }) => message);
    """
    assert await page.run(script) == "enough"
    assert await page.run("return client.rpc('add', { a: 1, b: 2 })") == 3


async def test_handler_that_was_ended_is_not_called(
    server: Server, page: ClientPage, unique: str
) -> None:
    """By one before it; and the signal of an earlier call ends no later one."""
    await page.connected(server.socket)
    script = """
        window.got = [];
        const room = client.subscribe(args[0]);
        const parts = [client.channel(args[0]), client.channel(args[0])];
        const ended = () => got.push("ended");
        room.on("subscribed", () => {
          room.off("subscribed", ended);
          for (const part of parts) part.release();
        });
        room.on("subscribed", ended);
        for (const part of parts) part.on("subscribed", ended);
        const earlier = new AbortController();
        const push = () => got.push("subscribed");
        room.on("subscribed", push, { signal: earlier.signal })();
        room.on("subscribed", push);
        earlier.abort();
        room.on("subscribed", () => got.push("last"));
        await room.ready();
        return got;
    """
    assert await page.run(script, unique) == ["subscribed", "last"]


@pytest.mark.parametrize(
    ("call", "state"), [("connect", "connected"), ("disconnect", "disconnected")]
)
async def test_handler_may_connect_and_disconnect(
    server: Server, page: ClientPage, unique: str, call: str, state: str
) -> None:
    """While the client connects: it opens one connection, or none."""
    await page.make(server.socket, token=connection_token("17"))
    script = """
        const opened = [];
        const { WebSocket } = window;
        window.WebSocket = class extends WebSocket {
          constructor(url) {
            super(url);
            opened.push(this);
          }
        };
        const room = client.subscribe(args[0]);
        client.connect();
        client.disconnect();
        opened.length = 0;
        room.on("subscribing", () => client[args[1]]());
        client.connect();
        if (args[1] === "connect") await room.ready();
        const { state } = client;
        client.disconnect();
        return [opened.length, state, opened.filter((each) => each.readyState < 2).length];
    """

    assert await page.run(script, unique, call) == [1, state, 0]


async def test_history_is_read_in_parts(server: Server, page: ClientPage, channel: str) -> None:
    for number in (1, 2, 3, 4):
        server.publish(channel, number)
    await page.connected(server.socket)
    await page.run("await client.subscribe(args[0]).ready()", channel)
    script = """
        const room = client.subscribe(args[0]);
        const { epoch } = room.position;
        const data = async (options) => (await room.history(options)).map((each) => each.data);
        return [
          await data({ limit: 2 }),
          await data({ limit: 2, reverse: true }),
          await data({ since: { offset: 2, epoch } }),
          await data({ since: { offset: 1, epoch }, limit: 1, timeout: 20_000 }),
        ];
    """

    assert await page.run(script, channel) == [[1, 2], [4, 3], [3, 4], [2]]
    other = "await client.history(args[0], { since: { offset: 2, epoch: 'other' } })"
    assert await page.error(other, channel) == 112  # UNRECOVERABLE
