"""Clients that the server unsubscribes while they subscribe: they are never subscribed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest

from realtime.auth.claims import SubscribeToken
from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import PermissionDenied
from realtime.node.hooks import Caller, Hooks, Identity, Permission
from realtime.node.node import Node
from realtime.payload import Payload
from tests.conftest import connection_token, subscription_token
from tests.unit.clients.suspended.conftest import STEPS
from tests.unit.node.node_parts import EVERYTHING, Connection, publish
from tests.unit.parts import eventually, position_of, turns
from tests.unit.suspended_engine import SuspendedEngine

UNSUB = {"type": 3, "channel": "a", "data": {}}
LEAVE = 2
PERMISSION_DENIED = 103
FORCED = 3012

Open = Callable[..., Any]


# while the engine is slow


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("channel", ["a", ""], ids=["that channel", "every channel"])
async def test_client_unsubscribed_by_the_server_while_it_subscribes_is_not_subscribed(
    node: Node, engine: SuspendedEngine, connect: Open, step: str, channel: str
) -> None:
    connection = await connect()
    engine.hold(step)
    command = connection.subscribe()
    await engine.reached(step)

    await node.unsubscribe_user("17", channel)
    engine.go_on(step)
    await command
    await publish(node, node.config.channel, 1)
    await turns()

    # the last message counts for the client: the reply, and then the push
    assert connection.reply(2) is not None
    assert connection.pushes == [UNSUB]
    assert connection.messages.index({"result": UNSUB}) > connection.messages.index(
        connection.reply(2)
    )
    assert connection.client.session.subscriptions == {}
    assert await engine.presence.get("a") == {}
    assert node.hub.feeds == {}


@pytest.mark.parametrize("step", STEPS)
async def test_client_unsubscribed_by_the_server_while_it_connects_is_not_subscribed(
    node: Node, engine: SuspendedEngine, step: str
) -> None:
    connection = Connection(node)
    engine.hold(step)
    command = connection.say(1, 0, token=connection_token("17", channels=["a"]))
    await engine.reached(step)

    await node.unsubscribe_user("17", "a")
    engine.go_on(step)
    await command
    await turns()

    assert connection.reply(1) is not None
    assert connection.pushes == [UNSUB]
    assert connection.client.session.subscriptions == {}
    assert await engine.presence.get("a") == {}
    assert node.hub.feeds == {}


async def test_client_may_subscribe_again_after_it_was_unsubscribed_on_the_way(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect()
    engine.hold("subscribe")
    command = connection.subscribe()
    await engine.reached("subscribe")
    await node.unsubscribe_user("17", "a")
    engine.go_on("subscribe")
    await command

    await connection.say(3, 1, channel="a")
    await publish(node, node.config.channel, 1)
    await turns()

    assert [push["data"].get("data") for push in connection.pushes] == [None, 1]
    assert list(await engine.presence.get("a")) == [connection.client.id]


async def test_channel_that_waits_for_another_one_of_the_connect_can_be_unsubscribed(
    node: Node, engine: SuspendedEngine
) -> None:
    connection = Connection(node)
    engine.hold("subscribe")
    command = connection.say(1, 0, token=connection_token("17", channels=["b", "a"]))
    await engine.reached("subscribe")
    await node.unsubscribe_user("17", "a")
    engine.go_on("subscribe")
    await command
    await turns()
    assert connection.pushes == [UNSUB]
    assert list(connection.client.session.subscriptions) == ["b"]
    assert list(node.hub.feeds) == ["b"]


async def test_client_gets_no_publication_of_a_channel_from_which_it_was_unsubscribed(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect()
    epoch = (await position_of(node.broker, "a")).epoch
    engine.hold_answer("position")
    command = connection.say(2, 1, channel="a", recover=True, offset=0, epoch=epoch)
    await engine.reached("position")

    await node.unsubscribe_user("17", "a")
    await publish(node, node.config.channel, 1)
    engine.hold("join", "presence.remove")
    engine.go_on("position")
    await engine.reached("presence.remove")
    await publish(node, node.config.channel, 2)
    engine.go_on("join", "presence.remove")
    await command
    await turns()

    reply = connection.reply(2)
    assert reply is not None
    assert "publications" not in reply["result"]
    assert connection.pushes == [UNSUB]


async def test_no_join_comes_after_the_leave_of_a_client_unsubscribed_while_another_join_waits(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    watcher = await connect()
    await watcher.subscribe("b")
    watcher.messages.clear()
    connection = Connection(node)
    engine.hold("join")
    command = connection.say(1, 0, token=connection_token("17", channels=["a", "b"]))
    await engine.reached("join")

    await connection.client.unsubscribe("b")
    engine.go_on("join")
    await command
    await turns()

    assert [message["result"]["type"] for message in watcher.messages] == [LEAVE]


async def test_channels_are_left_at_the_same_time(engine: SuspendedEngine, connect: Open) -> None:
    connection = await connect(channels=["a", "b", "c"])
    engine.hold("presence.remove")
    unsubscribing = asyncio.create_task(connection.client.unsubscribe(""))
    await eventually(lambda: engine.waiting == ["presence.remove"] * 3)
    engine.go_on("presence.remove")
    await unsubscribing
    assert sorted(push["channel"] for push in connection.pushes) == ["a", "b", "c"]


# while the site decides


class SlowHooks(Hooks):
    """Decide about every subscription, when the test says so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def decides(self, channel: str, options: ChannelOptions) -> bool:
        return True

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        self.asked.set()
        await self.answer
        return Identity("17", channels=("a", "b"))

    async def publish(
        self, caller: Caller, channel: str, options: ChannelOptions, data: Payload
    ) -> Payload:
        self.asked.set()
        await self.answer
        return data

    async def subscribe(self, caller: Caller, channel: str, token: str) -> Permission:
        self.asked.set()
        await self.answer
        return Permission()


@pytest.fixture
async def hooks() -> SlowHooks:
    return SlowHooks()


@pytest.fixture
async def asking(engine: SuspendedEngine, hooks: SlowHooks) -> AsyncIterator[Connection]:
    """A client of user 17 at a node with these hooks, connected."""
    options = EVERYTHING | {"publish": True, "subscribe_to_publish": True}
    node = Node(load(options), engine, hooks)
    await node.start()
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17"))
    yield connection
    await node.stop()


@pytest.mark.parametrize("channel", ["a", ""], ids=["that channel", "every channel"])
async def test_client_unsubscribed_while_the_site_decides_is_not_subscribed(
    engine: SuspendedEngine, hooks: SlowHooks, asking: Connection, channel: str
) -> None:
    node = asking.client.node
    command = asking.subscribe()
    await hooks.asked.wait()

    await node.unsubscribe_user("17", channel)
    hooks.answer.set_result(None)
    await command
    await publish(node, node.config.channel, 1)
    await turns()

    assert asking.reply(2) is not None
    assert asking.pushes == [UNSUB]
    assert asking.client.session.subscriptions == {}
    assert await engine.presence.get("a") == {}
    assert node.hub.feeds == {}


async def test_client_refused_by_the_site_after_it_was_unsubscribed_may_ask_again(
    hooks: SlowHooks, asking: Connection
) -> None:
    command = asking.subscribe()
    await hooks.asked.wait()
    await asking.client.node.unsubscribe_user("17", "a")
    hooks.answer.set_exception(PermissionDenied())
    await command
    hooks.answer = asyncio.get_running_loop().create_future()
    hooks.answer.set_result(None)
    await asking.say(3, 1, channel="a")
    assert (asking.reply(2) or {})["error"]["code"] == PERMISSION_DENIED
    assert "error" not in (asking.reply(3) or {})
    assert list(asking.client.session.subscriptions) == ["a"]


@pytest.fixture
async def publishing(hooks: SlowHooks, asking: Connection) -> tuple[Connection, asyncio.Task[None]]:
    """That client, subscribed, and its publish command about which the site is asked."""
    hooks.answer.set_result(None)
    await asking.subscribe()
    asking.messages.clear()
    hooks.asked.clear()
    hooks.answer = asyncio.get_running_loop().create_future()
    command = asking.say(3, 3, channel="a", data=1)
    await hooks.asked.wait()
    return asking, command


async def test_client_unsubscribed_while_the_site_decides_about_its_publication_is_refused(
    engine: SuspendedEngine, hooks: SlowHooks, publishing: tuple[Connection, asyncio.Task[None]]
) -> None:
    connection, command = publishing
    await connection.client.node.unsubscribe_user("17", "a")
    hooks.answer.set_result(None)
    await command
    assert (connection.reply(3) or {})["error"]["code"] == PERMISSION_DENIED
    assert not (await engine.broker.history("a")).publications


async def test_publication_of_a_client_disconnected_while_the_site_decides_is_dropped(
    engine: SuspendedEngine, hooks: SlowHooks, publishing: tuple[Connection, asyncio.Task[None]]
) -> None:
    connection, command = publishing
    await connection.client.node.disconnect_user("17")
    hooks.answer.set_result(None)
    await command
    assert not (await engine.broker.history("a")).publications


async def test_refresh_of_a_subscription_that_ended_while_its_token_was_verified_is_refused(
    hooks: SlowHooks, asking: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = asking.client
    token = subscription_token(client.id, "$a", ttl=100)
    await asking.say(2, 1, channel="$a", token=token)
    verify = client.node.verifier.subscribe

    async def verify_slowly(token: str, now: float) -> SubscribeToken:
        hooks.asked.set()
        await hooks.answer
        return await verify(token, now)

    monkeypatch.setattr(client.node.verifier, "subscribe", verify_slowly)
    command = asking.say(3, 11, channel="$a", token=token)
    await hooks.asked.wait()
    await client.node.unsubscribe_user("17", "$a")
    hooks.answer.set_result(None)
    await command

    assert (asking.reply(3) or {})["error"]["code"] == PERMISSION_DENIED


# while the site says who a client is


class Newcomer(NamedTuple):
    """A client that will be known as user 17, and its connect command."""

    connection: Connection
    command: asyncio.Task[None]


@pytest.fixture
async def newcomer(asking: Connection, hooks: SlowHooks) -> Newcomer:
    connection = Connection(asking.client.node)
    command = connection.say(1, 0)
    await hooks.asked.wait()
    return Newcomer(connection, command)


async def test_client_of_a_user_disconnected_while_it_was_identified_is_disconnected(
    asking: Connection, hooks: SlowHooks, newcomer: Newcomer
) -> None:
    node = asking.client.node
    await node.disconnect_user("17")
    hooks.answer.set_result(None)
    await newcomer.command
    await node.idle()
    assert newcomer.connection.closes == [FORCED]
    assert newcomer.connection.messages == []


@pytest.mark.parametrize(("channel", "left"), [("a", ["b"]), ("", []), ("c", ["a", "b"])])
async def test_client_of_a_user_unsubscribed_while_it_was_identified_is_not_subscribed(
    asking: Connection, hooks: SlowHooks, newcomer: Newcomer, channel: str, left: list[str]
) -> None:
    await asking.client.node.unsubscribe_user("17", channel)
    hooks.answer.set_result(None)
    await newcomer.command
    await turns()
    connection = newcomer.connection
    assert list(connection.client.session.subscriptions) == left
    assert sorted(push["channel"] for push in connection.pushes) == sorted({"a", "b"} - set(left))


async def test_client_is_not_disconnected_with_another_user_or_by_what_came_before(
    asking: Connection, hooks: SlowHooks
) -> None:
    node = asking.client.node
    first, second = Connection(node), Connection(node)
    commands = [first.say(1, 0)]
    await turns()
    await node.disconnect_user("17")
    commands.append(second.say(1, 0))
    await turns()
    await node.disconnect_user("18")

    hooks.answer.set_result(None)
    await asyncio.gather(*commands)
    await node.idle()

    assert (first.closes, second.closes) == ([FORCED], [])
    assert second.reply(1) is not None
    assert not node.identifying._messages
