"""PubSub: messages of subscribed channels arrive, in order, and no others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis import pubsub_link
from realtime.redis.connection import Connection
from realtime.redis.hosts import Timeouts
from realtime.redis.pubsub_link import PubSubLink
from tests.redis.listening import Listener, only_this_task
from tests.redis.scripted_server import OK, ScriptedServer, array
from tests.redis_server import RedisServer
from tests.unit.parts import Clock, turns

Listening = Callable[..., Listener]

BURST = "for n = 1, tonumber(ARGV[1]) do redis.call('publish', KEYS[1], n) end"


async def test_messages_arrive_in_order_and_completely(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    listener = listen(redis_server.url)
    await listener.subscribe(unique)
    await connection.execute("EVAL", BURST, 1, unique, 20_000)
    await listener.records(lambda: len(listener.events) >= 20_000)
    assert listener.events == [(unique, b"%d" % number) for number in range(1, 20_001)]


async def test_messages_that_arrived_together_are_handed_over_in_one_turn(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    turns: list[int] = []
    turn = 0

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if len(turns) < 1000:
            loop.call_soon(next_turn)

    loop = asyncio.get_running_loop()
    listener = listen(redis_server.url, on_message=lambda data: turns.append(turn))
    await listener.subscribe(unique)

    loop.call_soon(next_turn)
    # a script publishes at once, so most of it is in the socket when the loop looks
    await connection.execute("EVAL", BURST, 1, unique, 1000)
    await listener.records(lambda: len(listener.events) >= 1000)

    assert len(set(turns)) < 100


async def test_exception_in_a_handler_is_logged_and_delivery_continues(
    listen: Listening,
    redis_server: RedisServer,
    connection: Connection,
    unique: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail_once(data: bytes) -> None:
        if data == b"1":
            raise RuntimeError("a handler of the test")

    listener = listen(redis_server.url, on_message=fail_once)
    await listener.subscribe(unique)

    await connection.execute("EVAL", BURST, 1, unique, 3)

    await listener.records(lambda: len(listener.events) >= 3)
    assert listener.messages == [(unique, b"1"), (unique, b"2"), (unique, b"3")]
    assert caplog.text.count("RuntimeError: a handler of the test") == 1
    assert listener.changes == []


async def test_subscribe_returns_when_redis_has_confirmed(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    listener = listen(redis_server.url)

    for number in range(50):
        await listener.subscribe(f"{unique}-{number}")
        assert await connection.execute("PUBLISH", f"{unique}-{number}", b"\x00\xff") == 1
    await listener.records(lambda: len(listener.events) >= 50)
    assert listener.events == [(f"{unique}-{number}", b"\x00\xff") for number in range(50)]
    await only_this_task()


async def test_name_that_is_subscribed_to_is_not_subscribed_to_again(
    listen: Listening, own_redis: Callable[..., RedisServer]
) -> None:
    redis = own_redis()
    listener = listen(redis.url)
    await listener.subscribe("first")  # with which it connects

    for _ in range(3):
        await listener.subscribe("x")
    assert redis.command_calls()["subscribe"] == 2

    listener.unsubscribe("x")
    await listener.subscribe("x")
    assert redis.command_calls()["subscribe"] == 3
    assert redis.pubsub_channels() == {"first", "x"}


async def test_no_message_is_delivered_after_unsubscribe(
    script_server: Callable[..., Awaitable[ScriptedServer]], listen: Listening
) -> None:
    """Also none that Redis sent before it executed the command."""
    answers = {
        (b"CLIENT", b"SETNAME"): OK,
        (b"SUBSCRIBE", b"x"): array(b"subscribe", b"x", 1),
        (b"UNSUBSCRIBE", b"x"): array(b"message", b"x", b"late") + array(b"unsubscribe", b"x", 0),
        (b"SUBSCRIBE", b"y"): array(b"subscribe", b"y", 1),
    }
    server = await script_server(lambda command: answers[command[0], command[1]])
    listener = listen(server.url)
    await listener.subscribe("x")

    listener.unsubscribe("x")
    await listener.subscribe("y")

    assert listener.events == []


@pytest.mark.parametrize(
    ("calls", "subscribed"),
    [
        pytest.param("su", 0, id="subscribe-unsubscribe"),
        pytest.param("sus", 1, id="subscribe-unsubscribe-subscribe"),
        pytest.param("susu", 0, id="twice-both"),
        pytest.param("uss", 1, id="subscribed-twice"),
        pytest.param("ssu", 0, id="subscribed-twice-then-left"),
    ],
)
@pytest.mark.parametrize("connected", [True, False])
async def test_calls_take_effect_in_their_order(
    listen: Listening,
    redis_server: RedisServer,
    connection: Connection,
    unique: str,
    calls: str,
    subscribed: int,
    connected: bool,
) -> None:
    listener = listen(redis_server.url)
    if connected:
        await listener.subscribe(unique + "-first")

    async with asyncio.timeout(60):
        await asyncio.gather(*(listener.change(unique, call == "s") for call in calls))
    await listener.subscribe(unique + "-last")

    assert await connection.execute("PUBLISH", unique, "x") == subscribed


async def test_thousands_of_names_are_subscribed_to_at_once(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    listener = listen(redis_server.url)
    names = [f"{unique}-{number}" for number in range(3 * pubsub_link.MAX_NAMES_PER_COMMAND + 1)]
    await asyncio.gather(*(listener.subscribe(name) for name in names))
    counts = await connection.execute("PUBSUB", "NUMSUB", *names)
    assert counts[1::2] == [1] * len(names)


async def test_cancelled_caller_does_not_stop_another_one_with_the_same_name(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    listener = listen(redis_server.url)
    first = asyncio.create_task(listener.subscribe(unique))
    second = asyncio.create_task(listener.subscribe(unique))
    await asyncio.sleep(0)
    first.cancel()

    await second
    assert await connection.execute("PUBLISH", unique, "x") == 1


class HeldServer:
    """Confirms a name of its connection only when a test lets it."""

    def __init__(self) -> None:
        self.held: list[bytes] = []

    def answer(self, command: list[bytes]) -> bytes:
        match command:
            case [b"SUBSCRIBE" as kind, b"x"]:
                self.held.append(array(kind.lower(), b"x", 1))
                return b""
            case [(b"SUBSCRIBE" | b"UNSUBSCRIBE") as kind, name]:
                held, self.held = (self.held, []) if name == b"go-on" else ([], self.held)
                return b"".join(held) + array(kind.lower(), name, 1)
        return OK


async def test_caller_whose_name_was_given_up_confirms_no_later_subscription(
    script_server: Callable[..., Awaitable[ScriptedServer]], listen: Listening
) -> None:
    server = await script_server(HeldServer().answer)
    listener = listen(server.url)
    await listener.subscribe("connected")
    first = asyncio.create_task(listener.subscribe("x"))
    await asyncio.sleep(0)
    listener.unsubscribe("x")
    second = asyncio.create_task(listener.subscribe("x"))
    await first

    third = asyncio.create_task(listener.subscribe("x"))
    await turns()
    assert [second.done(), third.done()] == [False, False]

    await listener.subscribe("go-on")
    await asyncio.gather(second, third)


async def test_caller_that_gives_up_leaves_a_later_one_its_time(
    script_server: Callable[..., Awaitable[ScriptedServer]], listen: Listening
) -> None:
    clock = Clock(asyncio.get_running_loop())
    server = await script_server(HeldServer().answer)
    listener = listen(server.url, Timeouts(answer=3))
    await listener.subscribe("connected")
    first = asyncio.create_task(listener.subscribe("x"))
    await turns()
    await clock.advance(2)
    second = asyncio.create_task(listener.subscribe("x"))
    await turns()
    await clock.advance(2)

    with pytest.raises(EngineUnavailable, match="not subscribed within 3 s"):
        await first
    assert not second.done()

    await listener.subscribe("go-on")
    await second
    assert [b"UNSUBSCRIBE", b"x"] not in server.commands


async def test_name_that_is_not_allowed_is_refused_and_not_wanted(
    listen: Listening, own_redis: Callable[..., RedisServer]
) -> None:
    redis = own_redis()
    with redis.client() as client:
        client.execute_command("ACL", "SETUSER", "ann", "on", ">x", "+@all", "resetchannels", "&a*")
    listener = listen(redis.url.replace("//", "//ann:x@"))
    await listener.subscribe("allowed")

    with pytest.raises(EngineUnavailable, match="NOPERM"):
        await listener.subscribe("forbidden")

    redis.kill_pubsub()
    await listener.records(lambda: "restored" in listener.changes)
    assert redis.pubsub_channels() == {"allowed"}


async def test_unexpected_error_while_it_connects_is_logged_and_another_attempt_follows(
    listen: Listening,
    own_redis: Callable[..., RedisServer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis = own_redis()
    listener = listen(redis.url)
    await listener.subscribe("x")
    subscribe_all = PubSubLink.subscribe_all
    failures = [RuntimeError("a defect")]

    def fail_once(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return subscribe_all(*args)

    monkeypatch.setattr(PubSubLink, "subscribe_all", fail_once)
    redis.kill_pubsub()
    await listener.records(lambda: "restored" in listener.changes)

    with redis.client() as client:
        assert client.publish("x", "hello") == 1  # on one connection
    assert caplog.text.count("RuntimeError: a defect") == 1


async def test_silent_connection_is_asked_and_stays(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    listen: Listening,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pubsub_link, "PING_INTERVAL", 0.05)
    answers = {
        b"CLIENT": OK,
        b"SUBSCRIBE": array(b"subscribe", b"x", 1),
        b"PING": array(b"pong", b""),
    }
    server = await script_server(lambda command: answers[command[0]])
    listener = listen(server.url, Timeouts(answer=0.4))
    await listener.subscribe("x")

    await server.asked(5)

    assert [command[0] for command in server.commands[2:5]] == [b"PING"] * 3
    assert (server.connections, listener.changes) == (1, [])


async def test_silent_connection_without_names_is_asked_and_stays(
    listen: Listening,
    own_redis: Callable[..., RedisServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis answers such a PING in another form."""
    monkeypatch.setattr(pubsub_link, "PING_INTERVAL", 0.05)
    redis = own_redis()
    listener = listen(redis.url, Timeouts(answer=0.4))
    await listener.subscribe("x")
    listener.unsubscribe("x")
    async with asyncio.timeout(60):
        while redis.command_calls().get("ping", 0) < 5:
            await asyncio.sleep(0.01)

    await listener.subscribe("x")

    assert listener.changes == []


async def test_close_fails_waiting_callers_and_leaves_no_task(
    listen: Listening,
    unused_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "realtime.redis")
    listener = listen(unused_url)
    waiting = asyncio.create_task(listener.subscribe("x"))
    await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await listener.close()
        with pytest.raises(EngineUnavailable, match="closed here"):
            await waiting

    with pytest.raises(EngineUnavailable, match="closed here"):
        await listener.subscribe("y")
    listener.unsubscribe("x")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert listener.changes == []


async def test_close_calls_neither_on_lost_nor_on_restored(
    listen: Listening, redis_server: RedisServer, connection: Connection, unique: str
) -> None:
    listener = listen(redis_server.url)
    await listener.subscribe(unique)

    await listener.close()

    async with asyncio.timeout(60):
        while await connection.execute("PUBSUB", "NUMSUB", unique) != [unique.encode(), 0]:
            await asyncio.sleep(0.01)
    assert listener.events == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
