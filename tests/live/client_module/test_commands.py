"""The client module in a browser: commands, their frames, members, handlers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import connection_token
from tests.live.client_module.page import ClientPage
from tests.server import Server
from tests.tcp_proxy import TcpProxy

SUBSCRIPTION = "const subscription = subscriptions.get(args[0]);"


@pytest.fixture
def channel(unique: str) -> str:
    """A channel with everything but recovery."""
    return f"chat:{unique}"


@pytest.fixture
async def connected(server: Server, page: ClientPage) -> ClientPage:
    """The page, connected as user 17 with a name."""
    await page.connected(server.socket, token=connection_token("17", info={"name": "Ada"}))
    return page


async def test_commands_have_their_answers(connected: ClientPage, unique: str) -> None:
    """The functions of the site are those of tests/site/chat/realtime.py."""
    channel, client = f"chat:{unique}", await connected.run("return client.id")
    info = {"user": "17", "client": client, "connInfo": {"name": "Ada"}}
    await connected.subscribe(channel)

    await connected.run(f"{SUBSCRIPTION} await subscription.publish({{ n: [1, null] }})", channel)
    publication = {"channel": channel, "data": {"n": [1, None]}, "info": info}
    told = await connected.event("sub:publication", channel)
    assert told == publication | {"offset": 1, "recovered": False}
    empty: list[object] = [None, 0, False, "", [], {}]
    for data in empty:
        await connected.run("await client.publish(args[0], args[1])", channel, data)
    assert await connected.data(channel, len(empty)) == empty
    presence = await connected.run(f"{SUBSCRIPTION} return subscription.presence()", channel)
    assert presence == {client: info}
    stats = await connected.run(f"{SUBSCRIPTION} return subscription.presenceStats()", channel)
    assert stats == {"numClients": 1, "numUsers": 1}

    assert await connected.run("return client.rpc('add', {a: 1, b: 2})") == 3
    assert await connected.error("await client.rpc('add', 'nothing')") == 1003
    assert await connected.error("await client.publish(args[0], 1)", unique) == 103
    await connected.subscribe("seen#17")
    await connected.run("client.send(args[0])", unique)
    assert await connected.data("seen#17", 1) == [unique], "the site publishes what it got"


async def test_mistakes_that_would_end_the_connection_are_thrown(connected: ClientPage) -> None:
    for script in (
        "await client.publish('news', undefined)",
        "await client.publish('', 1)",
        "client.subscribe('')",
        "client.subscribe(undefined)",
        "await client.presence('')",
        "await client.history(5)",
    ):
        assert await connected.error(script) is None, f"no TypeError: {script}"
    assert await connected.error("await client.history('news')") == 108  # still connected


@pytest.mark.parametrize("server_name", ["server", "seq_server"])
async def test_history_is_told_oldest_first(
    request: pytest.FixtureRequest, page: ClientPage, channel: str, server_name: str
) -> None:
    server: Server = request.getfixturevalue(server_name)
    for number in (1, 2, 3):
        server.publish(channel, number)
    await page.connected(server.socket)
    await page.subscribe(channel)
    history = await page.run(f"{SUBSCRIPTION} return subscription.history()", channel)
    assert [(each["offset"], each["data"]) for each in history] == [(1, 1), (2, 2), (3, 3)]


async def test_rpc_without_function_is_not_available(
    serve: Callable[..., Server], page: ClientPage
) -> None:
    await page.connected(serve().socket)
    assert await page.error("await client.rpc('add', {a: 1, b: 2})") == 108


async def test_commands_wait_for_the_connection_and_the_subscription(
    server: Server, page: ClientPage, channel: str
) -> None:
    await page.make(server.socket, token=connection_token("17"))
    script = """
        client.connect();
        const subscription = subscribe(args[0]);
        await Promise.all([client.publish(args[0], 1), subscription.publish(2)]);
        return (await subscription.history()).map(({ data }) => data);
    """
    assert sorted(await page.run(script, channel)) == [1, 2]


async def test_commands_of_a_disconnected_client_are_rejected_at_once(
    connected: ClientPage, unique: str
) -> None:
    """Nothing would be sent, so the error is not that of an answer which did not come."""
    await connected.subscribe(unique)
    await connected.run("client.disconnect()")
    for script in (
        "await client.publish('news', 1)",
        "client.send(1)",
        "await subscriptions.get(args[0]).publish(1)",
        "client.connect(); const ready = client.ready(); client.disconnect(); await ready;",
    ):
        assert await connected.error(script, unique) == 3, script  # DISCONNECTED


async def test_commands_that_have_waited_long_enough_are_forgotten(page: ClientPage) -> None:
    """A page that goes on publishing while it is offline does not fill the memory."""
    await page.make("ws://127.0.0.1:9/", timeouts={"command": 1})
    script = """
        client.connect();
        const subscription = client.subscribe("news");
        const command = () => Promise.allSettled([client.rpc("x"), subscription.presence()]);
        for (let n = 0; n < 100; n += 1) await command();
    """
    before = await page.promises()

    await page.run(script)

    assert await page.promises() - before < 100
    await page.run("client.disconnect()")


async def test_commands_of_one_turn_leave_in_one_frame(connected: ClientPage, unique: str) -> None:
    channels = [f"chat:{unique}-{number}" for number in range(3)]
    await connected.sent()
    script = """
        for (const channel of args) subscribe(channel);
        await Promise.all(args.map((channel) => client.publish(channel, 1)));
        return frames;
    """

    frames = await connected.run(script, *channels)

    assert [len(frame.split("\n")) for frame in frames] == [6]
    for channel in channels:
        assert await connected.data(channel, 1) == [1]


async def test_subscriptions_are_restored_in_one_frame(
    proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    channels = [f"{unique}-{number}" for number in range(20)]
    await page.connected(proxy.url)
    for channel in channels:
        await page.subscribe(channel)
    await page.sent()
    proxy.cut()
    for channel in channels:
        await page.event("sub:subscribed", channel)
    assert [len(frame) for frame in await page.sent()] == [1, len(channels)]


async def test_what_is_too_large_for_a_frame_is_sent_in_several(
    connected: ClientPage, channel: str
) -> None:
    """A frame of more than 65536 bytes would end the connection."""
    await connected.subscribe(channel)
    data = "\u20ac" * 10_000  # 30 000 bytes
    script = "await Promise.all([1, 2, 3, 4].map(() => client.publish(args[0], args[1])))"
    await connected.run(script, channel, data)
    assert await connected.data(channel, 4) == [data] * 4


async def test_members_are_told_to_one_another(
    connected: ClientPage, server: Server, channel: str
) -> None:
    first = await connected.run("return client.id")
    await connected.subscribe(channel)
    assert (await connected.event("sub:join", channel))["info"]["client"] == first

    script = """
        const other = new realtime.Client(args[1], { token: args[2] });
        other.connect();
        await other.ready();
        const { id } = other;
        await other.subscribe(args[0]).ready();
        other.disconnect();
        return id;
    """
    second = await connected.run(script, channel, server.socket, connection_token("18"))

    expected = {"channel": channel, "info": {"user": "18", "client": second}}
    assert await connected.event("sub:join", channel) == expected
    assert await connected.event("sub:leave", channel) == expected


async def test_server_unsubscribes(connected: ClientPage, server: Server, channel: str) -> None:
    await connected.subscribe(channel)
    server.api("unsubscribe", channel=channel, user="17")
    await connected.event("sub:unsubscribed", channel)
    assert await connected.run("return subscriptions.get(args[0]).state", channel) == "unsubscribed"
    assert await connected.error("await subscriptions.get(args[0]).publish(1)", channel) == 4


async def test_client_unsubscribes_at_once(
    connected: ClientPage, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    await connected.subscribe(channel)
    script = f"{SUBSCRIPTION} subscription.unsubscribe(); return subscription.state"
    assert await connected.run(script, channel) == "unsubscribed"
    assert await connected.error("await client.presence(args[0])", channel) == 103
    server.publish(channel, 1)
    await connected.subscribe(unique)
    assert await connected.unread("sub:publication", channel) == []
    assert len(await connected.unread("sub:unsubscribed", channel)) == 1


async def test_subscription_that_is_given_up_before_its_reply_is_not_made(
    connected: ClientPage, channel: str
) -> None:
    await connected.run("subscribe(args[0]).unsubscribe()", channel)
    await connected.run("subscribe(args[0])", channel)
    await connected.event("sub:subscribed", channel)
    assert await connected.unread("sub:subscribed", channel) == []
    assert await connected.unread("sub:error", channel) == []


async def test_handler_that_throws_hurts_nobody_else(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.make(server.socket, token=connection_token("17"))
    script = """
        for (const name of ["state", "connect"]) client.on(name, () => { throw new Error(name); });
        const subscription = client.subscribe(args[0]);
        for (const name of ["subscribed", "publication"]) {
          subscription.on(name, () => { throw new Error(name); });
        }
        subscribe(args[0]);
        client.connect();
    """
    await page.run(script, unique)
    await page.event("sub:subscribed", unique)

    server.publish(unique, 1)
    server.publish(unique, 2)

    assert await page.data(unique, 2) == [1, 2]
    thrown = await page.run("return failures.splice(0)")
    names = ["state", "state", "connect", "subscribed", "publication", "publication"]
    assert thrown == [f"Uncaught Error: {name}" for name in names]


async def test_handler_that_disconnects_hears_nothing_more(
    connected: ClientPage, channel: str
) -> None:
    await connected.subscribe(channel)
    script = f"""
        {SUBSCRIPTION}
        subscription.on("publication", () => client.disconnect());
        await Promise.allSettled([1, 2, 3].map((n) => client.publish(args[0], n)));
    """
    await connected.run(script, channel)
    assert await connected.data(channel, 1) == [1]
    assert await connected.unread("sub:publication", channel) == []
