"""Sentinel: where the master is, and what happens when it moves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis import blocking as blocking_module
from realtime.redis import pool
from realtime.redis.blocking import BlockingRedis
from realtime.redis.connection import Connection
from realtime.redis.hosts import Timeouts
from tests.redis.listening import Listener
from tests.redis.scripted_server import OK, ScriptedServer, array, naming
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer

PASSWORD = "not-for-logs"

Entry = dict[str, Any]
Ask = Callable[..., Awaitable[Any]]


def entry_of(sentinel: Sentinel, **more: Any) -> Entry:
    host, port = sentinel.address.split(":")
    return {"sentinels": [(host, int(port))], "master_name": sentinel.master_name, **more}


async def test_sentinel_that_is_not_there(ask: Ask, unused_url: str) -> None:
    port = int(unused_url.rpartition(":")[2].partition("/")[0])
    entry = {
        "sentinels": [("127.0.0.1", port)],
        "master_name": "m",
        "password": PASSWORD,
        "sentinel_kwargs": {"password": PASSWORD},
    }

    with pytest.raises(EngineUnavailable, match=f"^sentinel://127.0.0.1:{port}/m/0: ") as caught:
        await ask(entry, "PING")

    assert PASSWORD not in str(caught.value)


async def test_sentinel_that_does_not_know_the_name(
    ask: Ask, own_sentinel: Callable[..., Sentinel]
) -> None:
    entry = entry_of(own_sentinel()) | {"master_name": "other"}
    with pytest.raises(EngineUnavailable, match=r"no master found; .*does not know this name"):
        await ask(entry, "PING")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(array(b"127.0.0.1", b"master"), id="port-is-no-number"),
        pytest.param(array(b"127.0.0.1", b"65536"), id="port-too-large"),
        pytest.param(array(b"127.0.0.1", b"0"), id="port-zero"),
        pytest.param(array(b"\xff", b"6379"), id="host-of-bytes"),
        pytest.param(array(1, 6379), id="numbers"),
        pytest.param(array(b"127.0.0.1"), id="host-only"),
        pytest.param(array(), id="empty"),
        pytest.param(b":1\r\n", id="number"),
    ],
)
async def test_invalid_answer_of_a_sentinel(
    ask: Ask, script_server: Callable[..., Awaitable[ScriptedServer]], answer: bytes
) -> None:
    sentinel = await script_server(lambda command: answer if command[0] == b"SENTINEL" else OK)
    entry = {"sentinels": [sentinel.place], "master_name": "m"}
    with pytest.raises(EngineUnavailable, match=r"no master found; .*does not know this name"):
        await ask(entry, "PING")


async def test_sentinel_that_hangs_leaves_time_to_the_next(
    ask: Ask, own_sentinel: Callable[..., Sentinel]
) -> None:
    entry = entry_of(own_sentinel())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        entry["sentinels"].insert(0, silent.getsockname())
        assert await ask(entry, "PING", timeouts=Timeouts(connect=2.0)) == b"PONG"


async def test_threads_go_to_the_new_master_with_the_calls_after_a_timeout(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    own_redis: Callable[..., RedisServer],
    open_blocking: Callable[..., BlockingRedis],
) -> None:
    """However many connections to the old one there are: each would cost a time-out."""
    old, new = own_redis(), own_redis()
    masters = [old]

    async def wait_side_by_side(server: RedisServer) -> None:
        """Have three threads wait for the same server, each on a connection of its own."""
        calls = [asyncio.to_thread(blocking.execute, "BLPOP", "queue", 0) for _ in range(3)]
        tasks = [asyncio.create_task(call) for call in calls]
        with server.client() as client:
            while client.info("clients")["blocked_clients"] < 3:
                assert not any(task.done() for task in tasks)
                await asyncio.sleep(0.01)
            client.rpush("queue", 1, 2, 3)
        await asyncio.gather(*tasks)

    sentinel = await script_server(naming(masters))
    blocking = open_blocking(
        {"sentinels": [sentinel.place], "master_name": "m"}, Timeouts(answer=1.5)
    )
    await wait_side_by_side(old)
    old.freeze()
    masters[0] = new
    with pytest.raises(EngineUnavailable):
        await asyncio.to_thread(blocking.execute, "PING")

    await wait_side_by_side(new)


async def test_sentinels_that_answer_slowly_are_asked_less_often(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    open_blocking: Callable[..., BlockingRedis],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that does not answer costs its time-out before each command that asks."""
    server = await script_server(lambda command: OK)
    now, took = 1000.0, 0.25

    def find(*_: object) -> tuple[str, int]:
        nonlocal now
        now += took
        return server.place

    for module in (blocking_module, pool):
        monkeypatch.setattr(module, "find_master", find)
    monkeypatch.setattr(blocking_module, "time", SimpleNamespace(monotonic=lambda: now))
    blocking = open_blocking({"sentinels": [server.place], "master_name": "m"})
    began = now
    waited = 0.0
    for _ in range(600):  # a minute, a command each 100 ms
        before = now
        await asyncio.to_thread(blocking.execute, "PING")
        waited += now - before
        now += 0.1

    assert 0 < waited < 0.1 * (now - began)


@pytest.mark.parametrize("way", ["loop", "thread"])
async def test_old_master_is_left_when_the_sentinels_name_another_one(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    own_redis: Callable[..., RedisServer],
    open_connection: Callable[..., Connection],
    open_blocking: Callable[..., BlockingRedis],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """In a planned failover it goes on to answer, and drops what it accepted later."""
    monkeypatch.setattr("realtime.redis.master.MASTER_CHECK_INTERVAL", 0.05)
    monkeypatch.setattr("realtime.redis.blocking.MASTER_CHECK_INTERVAL", 0.05)
    old, new = own_redis(), own_redis()
    masters = [old]
    sentinel = await script_server(naming(masters))
    entry = {"sentinels": [sentinel.place], "master_name": "m"}
    connection, thread = open_connection(entry), open_blocking(entry)

    async def execute(*command: str) -> Any:
        with contextlib.suppress(EngineUnavailable):  # the one that was under way
            if way == "loop":
                return await connection.execute(*command)
            return await asyncio.to_thread(thread.execute, *command)

    assert await execute("SET", "a", "1") == b"OK"
    masters[0] = new

    with new.client() as client:
        async with asyncio.timeout(60):
            while client.get("a") is None:
                await execute("SET", "a", "2")
    with old.client() as client:
        before = client.get("a")
        await execute("SET", "a", "3")
        assert client.get("a") == before


async def test_subscriptions_leave_the_old_master_when_the_sentinels_name_another_one(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    own_redis: Callable[..., RedisServer],
    listen: Callable[..., Listener],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime.redis.master.MASTER_CHECK_INTERVAL", 0.05)
    old, new = own_redis(), own_redis()
    masters = [old]
    sentinel = await script_server(naming(masters))
    listener = listen({"sentinels": [sentinel.place], "master_name": "m"})
    await listener.subscribe("news")
    masters[0] = new

    await listener.records(lambda: "restored" in listener.changes)

    assert new.pubsub_channels() == {"news"}


async def test_all_find_the_new_master_after_a_failover(
    own_sentinel: Callable[..., Sentinel],
    open_connection: Callable[..., Connection],
    open_blocking: Callable[..., BlockingRedis],
    listen: Callable[..., Listener],
) -> None:
    sentinel = own_sentinel(password=PASSWORD, sentinel_password=f"{PASSWORD}2")
    entry = entry_of(sentinel, password=PASSWORD, sentinel_kwargs={"password": f"{PASSWORD}2"})
    connection, blocking, listener = open_connection(entry), open_blocking(entry), listen(entry)
    await listener.subscribe("news")
    await connection.execute("SET", "before", "1")
    await asyncio.to_thread(blocking.execute, "GET", "before")

    await asyncio.to_thread(sentinel.failover)

    await listener.records(lambda: "restored" in listener.changes)
    assert await connection.execute("SET", "after", "1") == b"OK"
    assert await asyncio.to_thread(blocking.execute, "PUBLISH", "news", "hello") == 1
    await listener.records(lambda: listener.messages == [("news", b"hello")])
    with sentinel.master.client() as client:
        assert client.get("after") == b"1"
