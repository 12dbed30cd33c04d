"""PubSub whose connection is lost: it comes back, and reports both."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis import pubsub, pubsub_link
from realtime.redis.hosts import Host, Timeouts
from tests.redis.conftest import SLACK
from tests.redis.listening import Listener, only_this_task
from tests.redis.scripted_server import OK, ScriptedServer, array
from tests.redis_server import RedisServer
from tests.tcp_proxy import TcpProxy

Listening = Callable[..., Listener]
Scripting = Callable[..., Awaitable[ScriptedServer]]


@pytest.fixture
def redis(own_redis: Callable[..., RedisServer]) -> RedisServer:
    return own_redis()


@pytest.fixture
async def proxy(redis: RedisServer) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy(redis.url)
    await proxy.start()
    yield proxy
    await proxy.stop()


async def publish(redis: RedisServer, name: str, data: str) -> int:
    """Returns how many received it."""

    def run() -> int:
        with redis.client() as client:
            return int(client.publish(name, data))

    return await asyncio.to_thread(run)


async def restored(listener: Listener, times: int = 1) -> None:
    await listener.records(lambda: listener.changes.count("restored") >= times)


async def test_each_lost_connection_is_told_once_and_messages_flow_again(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url)
    await listener.subscribe("x")

    for number in (1, 2, 3):
        assert redis.kill_pubsub() == 1
        await restored(listener, number)
        assert await publish(redis, "x", "hello") == 1
        await listener.records(lambda number=number: len(listener.messages) == number)  # type: ignore[misc]
    assert listener.events == ["lost", "restored", ("x", b"hello")] * 3


async def test_first_connection_is_neither_lost_nor_restored(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url)
    redis.stop()
    waiting = asyncio.create_task(listener.subscribe("x"))
    await asyncio.sleep(0)
    await asyncio.to_thread(redis.start)

    await waiting

    assert listener.changes == []
    assert redis.pubsub_channels() == {"x"}


async def test_first_connection_lost_before_everything_was_subscribed_to_is_a_loss(
    script_server: Scripting, listen: Listening
) -> None:
    """One `subscribe` has returned by then, so a caller relies on it."""
    confirmed = array(b"subscribe", b"x", 1)

    def answer(command: list[bytes]) -> bytes | None:
        if command[0] == b"CLIENT":
            return OK
        if command[0] == b"PING":
            return array(b"pong", b"")
        if server.connections == 1 and len(command) == 2:
            return None
        return confirmed * (len(command) - 1)

    server = await script_server(answer)
    listener = listen(server.url)
    names = [f"n{number}" for number in range(pubsub_link.MAX_NAMES_PER_COMMAND + 1)]

    await asyncio.gather(*(listener.subscribe(name) for name in names))
    await restored(listener)

    assert listener.changes == ["lost", "restored"]


async def test_restored_means_that_everything_wanted_is_subscribed_to(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url)
    names = {f"n{number}" for number in range(2 * pubsub_link.MAX_NAMES_PER_COMMAND + 1)}
    await asyncio.gather(*(listener.subscribe(name) for name in names))

    redis.kill_pubsub()
    await restored(listener)

    assert redis.pubsub_channels() == names


async def test_what_is_asked_for_while_lost_holds_when_restored(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url)
    await listener.subscribe("kept")
    await listener.subscribe("left")
    redis.stop()
    await listener.records(lambda: listener.changes == ["lost"])

    listener.unsubscribe("left")
    joining = asyncio.create_task(listener.subscribe("joined"))
    changing = [
        asyncio.create_task(listener.change("changed", wanted)) for wanted in (True, False, True)
    ]
    await asyncio.sleep(0)
    await asyncio.to_thread(redis.start)
    await asyncio.gather(joining, *changing)

    assert redis.pubsub_channels() == {"kept", "joined", "changed"}
    await restored(listener)
    assert listener.changes == ["lost", "restored"]


async def test_subscribe_fails_in_time_while_lost_and_the_name_is_not_wanted(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url, Timeouts(connect=0.2, answer=0.3))
    await listener.subscribe("kept")
    redis.stop()
    await listener.records(lambda: listener.changes == ["lost"])

    started = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"not subscribed within 0\.3 s \(.*refused|failed"):
        await listener.subscribe("late")
    took = time.monotonic() - started
    await asyncio.to_thread(redis.start)
    await restored(listener)

    assert 0.3 <= took < SLACK
    assert redis.pubsub_channels() == {"kept"}


async def test_name_that_was_confirmed_stays_wanted_though_another_call_for_it_fails(
    listen: Listening, redis: RedisServer
) -> None:
    """Another caller relies on it, which does not learn of that call."""
    listener = listen(redis.url, Timeouts(connect=0.2, answer=0.3))
    await listener.subscribe("x")
    redis.stop()
    await listener.records(lambda: listener.changes == ["lost"])

    with pytest.raises(EngineUnavailable, match="not subscribed within"):
        await listener.subscribe("x")
    await asyncio.to_thread(redis.start)
    await restored(listener)

    assert redis.pubsub_channels() == {"x"}


async def test_first_subscribe_fails_in_time_and_stops_trying(
    listen: Listening, unused_url: str
) -> None:
    listener = listen(unused_url, Timeouts(connect=0.2, answer=0.3))
    with pytest.raises(EngineUnavailable, match=f"^{unused_url}: not subscribed within"):
        await listener.subscribe("x")
    await only_this_task()
    assert listener.changes == []


async def test_subscribe_to_a_frozen_redis_fails_in_time_and_the_name_is_not_wanted(
    listen: Listening, redis: RedisServer
) -> None:
    listener = listen(redis.url, Timeouts(answer=0.3))
    await listener.subscribe("kept")
    redis.freeze()

    with pytest.raises(EngineUnavailable, match=r"not subscribed within 0\.3 s"):
        await listener.subscribe("late")
    redis.resume()
    await listener.subscribe("next")

    assert redis.pubsub_channels() == {"kept", "next"}
    assert listener.changes == []


async def test_frozen_redis_is_noticed_without_any_call(
    listen: Listening, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub_link, "PING_INTERVAL", 0.1)
    listener = listen(redis.url, Timeouts(connect=0.2, answer=0.3))
    await listener.subscribe("x")

    redis.freeze()
    started = time.monotonic()
    await listener.records(lambda: listener.changes == ["lost"])
    took = time.monotonic() - started
    redis.resume()
    await restored(listener)

    assert 0.3 <= took < SLACK
    assert await publish(redis, "x", "hello") == 1
    await listener.records(lambda: bool(listener.messages))
    assert listener.events == ["lost", "restored", ("x", b"hello")]


async def test_messages_are_a_sign_of_life(
    script_server: Scripting, listen: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Redis that does not answer PING, but delivers a message, is not lost."""
    monkeypatch.setattr(pubsub_link, "PING_INTERVAL", 0.05)
    answers = {
        b"CLIENT": OK,
        b"SUBSCRIBE": array(b"subscribe", b"x", 1),
        b"PING": array(b"message", b"x", b"hello"),
    }
    server = await script_server(lambda command: answers[command[0]])
    listener = listen(server.url, Timeouts(answer=0.1))
    await listener.subscribe("x")

    await listener.records(lambda: len(listener.events) >= 5)

    assert listener.changes == []


async def test_connection_that_is_refused_is_tried_less_and_less_often_and_comes_back(
    listen: Listening, redis: RedisServer, proxy: TcpProxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "realtime.redis")
    listener = listen(proxy.url)
    await listener.subscribe("x")

    started = time.monotonic()
    proxy.refuse()
    await proxy.reached(6)  # the first one, and five attempts
    assert listener.changes == ["lost"]
    # the fifth attempt comes after four pauses of at least half of 50, 100, 200, 400 ms
    assert time.monotonic() - started >= 0.375
    proxy.allow()
    await restored(listener)

    assert listener.changes == ["lost", "restored"]
    assert redis.pubsub_channels() == {"x"}
    messages = [record.getMessage().split(":")[0] for record in caplog.records]
    assert messages.count("Redis pub/sub was lost") == 1
    assert messages.count("Redis pub/sub is connected again") == 1


async def test_connection_without_names_comes_back_too(listen: Listening, proxy: TcpProxy) -> None:
    listener = listen(proxy.url)
    await listener.subscribe("x")
    listener.unsubscribe("x")

    proxy.cut()
    await restored(listener)

    assert listener.changes == ["lost", "restored"]


async def test_loss_during_the_restoration_is_not_another_loss(
    listen: Listening, redis: RedisServer, proxy: TcpProxy
) -> None:
    listener = listen(proxy.url)
    await asyncio.gather(*(listener.subscribe(f"n{number}") for number in range(5000)))
    redis.freeze()  # what is open now stays unanswered
    proxy.cut()
    await proxy.reached(2)
    proxy.cut()
    await proxy.reached(3)
    redis.resume()
    await restored(listener)

    assert listener.changes == ["lost", "restored"]
    assert len(redis.pubsub_channels()) == 5000


async def test_it_is_not_restored_before_redis_allows_all_of_it(
    listen: Listening, redis: RedisServer
) -> None:
    everything = ("ACL", "SETUSER", "ann", "on", ">x", "+@all", "allchannels")
    with redis.client() as client:
        client.execute_command(*everything)
        proxy = TcpProxy(redis.url)
        await proxy.start()
        listener = listen(proxy.url.replace("//", "//ann:x@"))
        await listener.subscribe("allowed")
        await listener.subscribe("revoked")

        # Redis closes connections that are subscribed to what is not allowed any more
        client.execute_command("ACL", "SETUSER", "ann", "resetchannels", "&allowed")
        await proxy.reached(4)  # the first one, and three attempts
        assert listener.changes == ["lost"]
        client.execute_command(*everything)
        await restored(listener)

    assert listener.changes == ["lost", "restored"]
    assert redis.pubsub_channels() == {"allowed", "revoked"}
    await listener.close()
    await proxy.stop()


async def test_exception_in_a_callback_does_not_keep_it_from_coming_back(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    done = asyncio.Event()

    def fail() -> None:
        raise RuntimeError("a callback of the test")

    def fail_at_last() -> None:
        done.set()
        fail()

    subscribed = pubsub.PubSub(
        Host({"address": redis.url}),
        Timeouts(),
        on_message=lambda name, data: None,
        on_lost=fail,
        on_restored=fail_at_last,
    )
    await subscribed.subscribe("x")
    redis.kill_pubsub()
    async with asyncio.timeout(60):
        await done.wait()

    await subscribed.subscribe("y")

    assert redis.pubsub_channels() == {"x", "y"}
    assert caplog.text.count("RuntimeError: a callback of the test") == 2
    await subscribed.close()
