"""Connection: a Redis that is away, hangs, refuses, or is not the master any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from realtime.errors import EngineUnavailable, NoReply
from realtime.redis import link
from realtime.redis.blocking import BlockingRedis
from realtime.redis.commands import Script, ScriptCall
from realtime.redis.connection import Connection
from realtime.redis.hosts import Timeouts
from tests.redis.conftest import DEFAULT, SLACK, Way
from tests.redis.scripted_server import OK, ScriptedServer
from tests.redis_server import RedisServer

Opening = Callable[..., Connection]
Starting = Callable[..., RedisServer]
Ask = Callable[..., Awaitable[Any]]
Scripting = Callable[..., Awaitable[ScriptedServer]]

SET = Script.of("set", "return redis.call('set', KEYS[1], '1')")
GET = Script.of("get", "return redis.call('get', KEYS[1])")


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        pytest.param(None, NoReply, id="none"),
        pytest.param(b"", NoReply, id="none-in-time"),
        pytest.param(b"!garbage\r\n", NoReply, id="none-that-is-one"),
        pytest.param(b"-ERR no\r\n", EngineUnavailable, id="refusal"),
        pytest.param(b"-READONLY no\r\n", EngineUnavailable, id="refusal-of-a-replica"),
    ],
)
async def test_failure_says_whether_the_command_may_have_been_run_and_is_not_repeated(
    script_server: Scripting,
    open_way: Callable[..., Way],
    reply: bytes | None,
    failure: type[EngineUnavailable],
) -> None:
    server = await script_server(lambda command: reply if command[0] == b"INCR" else OK)
    way = open_way(server.url, Timeouts(answer=0.5) if reply == b"" else DEFAULT)

    with pytest.raises(EngineUnavailable) as caught:
        await way("execute", "INCR", "n")

    assert type(caught.value) is failure
    assert await way("execute", "PING") == b"OK"
    assert [command[0] for command in server.commands].count(b"INCR") == 1


async def test_batch_is_not_repeated(
    script_server: Scripting, open_blocking: Callable[..., BlockingRedis]
) -> None:
    server = await script_server(lambda command: b"" if command[0] == b"INCR" else OK)
    client = open_blocking(server.url, Timeouts(answer=0.5))

    with pytest.raises(EngineUnavailable):
        await asyncio.to_thread(client.run_many, [("INCR", "n")])

    assert await asyncio.to_thread(client.run_many, [("PING",)]) == [b"OK"]
    assert [command[0] for command in server.commands].count(b"INCR") == 1


async def test_command_that_was_not_sent_was_not_run(ask: Ask, unused_url: str) -> None:
    with pytest.raises(EngineUnavailable, match=rf"^{unused_url}: .*(refused|failed)") as caught:
        await ask(unused_url, "PING")
    assert type(caught.value) is EngineUnavailable


async def test_host_has_no_address(open_connection: Opening) -> None:
    with pytest.raises(EngineUnavailable, match=r"^redis://no\.\.host:6379/0: no connection"):
        await open_connection("redis://no..host").execute("PING")


async def test_redis_that_starts_later_is_found(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis()
    redis.stop()
    connection = open_connection(redis.url)
    with pytest.raises(EngineUnavailable):
        await connection.execute("PING")

    redis.start()

    assert await connection.execute("PING") == b"PONG"


async def test_lost_connection_fails_waiting_callers_and_the_next_command_connects_anew(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis()
    connection = open_connection(redis.url)
    await connection.execute("PING")
    waiting = asyncio.create_task(connection.execute("BLPOP", "nothing", 0))
    await asyncio.sleep(0)
    await asyncio.to_thread(redis.restart)

    with pytest.raises(EngineUnavailable, match=r"closed by Redis|connection lost"):
        await waiting
    assert await connection.execute("PING") == b"PONG"


async def test_frozen_redis_fails_in_time_and_works_again_when_it_goes_on(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis()
    connection = open_connection(redis.url, Timeouts(connect=0.3, answer=0.4))
    await connection.execute("PING")
    redis.freeze()

    started = time.monotonic()
    results = await asyncio.gather(
        *(connection.execute("PING") for _ in range(3)), return_exceptions=True
    )
    first = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"no handshake within 0\.3 s"):
        await connection.execute("PING")
    second = time.monotonic()
    redis.resume()

    assert [str(result).partition("0: ")[2] for result in results] == ["no answer within 0.4 s"] * 3
    assert 0.4 <= first - started < SLACK
    assert 0.3 <= second - first < SLACK
    assert await connection.execute("PING") == b"PONG"


async def test_each_command_has_its_own_time(
    script_server: Scripting, open_connection: Opening
) -> None:
    """The timeout counts from when the command was sent, not from the one before it."""
    server = await script_server(lambda command: b"" if command[0] == b"LATE" else OK)
    connection = open_connection(server.url, Timeouts(answer=0.5))
    for _ in range(4):
        await connection.execute("PING")
        await asyncio.sleep(0.15)  # so a timer that was not moved would be due by the end

    started = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"no answer within 0\.5 s"):
        await connection.execute("LATE")

    assert 0.5 <= time.monotonic() - started < SLACK


async def test_command_is_refused_at_once_when_too_many_wait(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis()
    connection = open_connection(redis.url)
    await connection.execute("PING")
    redis.freeze()
    megabyte = b"x" * 1024 * 1024
    allowed = link.MAX_PENDING_BYTES // len(megabyte)
    waiting = [asyncio.create_task(connection.execute("ECHO", megabyte)) for _ in range(allowed)]
    await asyncio.sleep(0)

    with pytest.raises(EngineUnavailable, match="too many commands wait"):
        async with asyncio.timeout(0.1):
            await connection.execute("PING")
    redis.resume()

    assert await asyncio.gather(*waiting) == [megabyte] * allowed
    assert await connection.execute("PING") == b"PONG"


async def test_invalid_reply_breaks_the_connection(
    script_server: Scripting, open_connection: Opening
) -> None:
    server = await script_server(
        lambda command: b"HTTP/1.1 400\r\n" if command[0] == b"GET" else OK
    )
    connection = open_connection(server.url)

    with pytest.raises(EngineUnavailable, match="not a reply of Redis"):
        await connection.execute("GET", "x")

    assert await connection.execute("PING") == b"OK"
    assert server.connections == 2


async def test_reply_without_a_command_breaks_the_connection(
    script_server: Scripting, open_connection: Opening
) -> None:
    server = await script_server(lambda command: OK + OK if command[0] == b"TWICE" else OK)
    connection = open_connection(server.url)
    assert await connection.execute("TWICE") == b"OK"
    assert await connection.execute("PING") == b"OK"
    assert server.connections == 2


# not the master


@pytest.mark.parametrize(
    ("error", "leaves"),
    [
        pytest.param("LOADING Redis is loading the dataset in memory", True, id="loading"),
        pytest.param("READONLY You can't write against a read only replica.", True, id="readonly"),
        pytest.param("MASTERDOWN Link with MASTER is down", True, id="masterdown"),
        pytest.param(
            "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write",
            True,
            id="readonly-in-a-script",
        ),
        pytest.param("OOM command not allowed when used memory > 'maxmemory'.", False, id="oom"),
        pytest.param("BUSY Redis is busy running a script.", False, id="busy"),
        pytest.param("NOPERM this user has no permissions", False, id="noperm"),
    ],
)
async def test_redis_that_is_not_the_master_is_left(
    script_server: Scripting, open_way: Callable[..., Way], error: str, leaves: bool
) -> None:
    """A publisher may repeat the command: it was not executed."""
    server = await script_server(
        lambda command: f"-{error}\r\n".encode() if command[0] == b"GET" else OK
    )
    way = open_way(server.url)

    with pytest.raises(EngineUnavailable) as caught:
        await way("execute", "GET", "x")
    assert await way("execute", "PING") == b"OK"

    assert not isinstance(caught.value, NoReply)
    assert error.partition(" ")[2] in str(caught.value)
    assert server.connections == (2 if leaves else 1)


@pytest.mark.parametrize(
    "write", [("execute", "SET", "k", "1"), ("call", ScriptCall(SET, ["k"], []))]
)
async def test_replica_refuses_writes_and_the_next_command_connects_anew(
    own_redis: Starting, open_way: Callable[..., Way], write: tuple[Any, ...]
) -> None:
    way = open_way(own_redis().url)
    await way("execute", "REPLICAOF", "127.0.0.1", "1")
    before = await way("execute", "CLIENT", "ID")

    with pytest.raises(EngineUnavailable, match="read only replica"):
        await way(*write)

    assert await way("execute", "CLIENT", "ID") > before


async def test_replica_without_its_master_is_left(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis(arguments=["--replica-serve-stale-data", "no"])
    connection = open_connection(redis.url)
    await connection.execute("REPLICAOF", "127.0.0.1", "1")

    with pytest.raises(EngineUnavailable, match="MASTERDOWN"):
        await connection.call(ScriptCall(GET, ["k"], []))

    await connection.execute("REPLICAOF", "NO", "ONE")
    assert await connection.call(ScriptCall(GET, ["k"], [])) is None


async def test_full_redis_refuses_writes(own_redis: Starting, ask: Ask) -> None:
    with pytest.raises(EngineUnavailable, match="maxmemory"):
        await ask(own_redis(arguments=["--maxmemory", "1"]).url, "SET", "k", "1")


async def test_refusal_of_a_redis_with_too_many_clients(
    own_redis: Starting, open_connection: Opening
) -> None:
    redis = own_redis()
    with redis.client() as client:
        client.config_set("maxclients", 1)
        with pytest.raises(EngineUnavailable, match="max number of clients"):
            await open_connection(redis.url).execute("PING")
