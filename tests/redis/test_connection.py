"""Connection: commands out, replies in, each to its caller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.errors import EngineUnavailable
from realtime.redis import link
from realtime.redis.commands import Script, ScriptCall
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from tests.redis.conftest import Way
from tests.redis.scripted_server import OK, ScriptedServer, array
from tests.redis_server import RedisServer

ECHO = Script.of("echo", "return {KEYS[1], ARGV[1]}")
WRONG = Script.of("wrong", "return {1, {2, redis.error_reply('MINE that is wrong')}}")

Scripting = Callable[..., Awaitable[ScriptedServer]]


async def test_command_gets_the_reply_of_redis_itself(
    open_way: Callable[..., Way], redis_server: RedisServer, unique: str
) -> None:
    """No reply is made into something else, as redis-py does for many commands."""
    way = open_way(redis_server.url)
    assert await way("execute", "SET", unique, b"\x00\xff") == b"OK"
    assert await way("execute", b"GET", unique) == b"\x00\xff"
    assert await way("execute", "APPEND", unique, 12) == 4
    assert await way("execute", "MGET", unique, "none") == [b"\x00\xff12", None]
    assert await way("execute", "ECHO", "é") == "é".encode()
    await way("execute", "HSET", unique + "-hash", "a", 1)
    assert await way("execute", "HGETALL", unique + "-hash") == [b"a", b"1"]
    assert await way("execute", "EXISTS", unique) == 1
    await way("execute", "ZADD", unique + "-zset", "1.5", "a")
    assert await way("execute", "ZRANGE", unique + "-zset", 0, -1, "WITHSCORES") == [b"a", b"1.5"]


async def test_big_reply_arrives_whole(connection: Connection) -> None:
    data = b"x" * 5_000_000
    assert await connection.execute("ECHO", data) == data


async def test_reply_that_arrives_byte_by_byte_is_put_together(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    reply = array(b"hello", 42)
    server = await script_server(lambda command: OK if command[0] == b"CLIENT" else b"", drip=reply)
    assert await open_connection(server.url).execute("GET", "x") == [b"hello", 42]


async def test_commands_of_many_callers_are_done_in_the_order_of_the_calls(
    open_connection: Callable[..., Connection], redis_server: RedisServer, unique: str
) -> None:
    """Also where they come before the first connection."""
    connection = open_connection(redis_server.url)

    lengths = await asyncio.gather(
        *(connection.execute("RPUSH", unique, number) for number in range(10_000))
    )

    assert lengths == list(range(1, 10_001))
    kept = await connection.execute("LRANGE", unique, 0, -1)
    assert kept == [b"%d" % number for number in range(10_000)]


async def test_callers_share_one_attempt_to_connect_and_one_write_in_each_turn(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)
    await asyncio.gather(*(connection.execute("FIRST") for _ in range(20)))
    server.chunks.clear()

    await asyncio.gather(*(connection.execute("SET", "k", number) for number in range(100)))

    assert len(server.commands) == 121  # the handshake has one
    assert (len(server.chunks), server.connections) == (1, 1)


async def test_connection_is_opened_by_the_first_command(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)
    await connection.close()
    assert server.connections == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


# scripts


async def test_script_is_run_also_when_redis_does_not_know_it(
    own_redis: Callable[..., RedisServer], open_way: Callable[..., Way]
) -> None:
    way = open_way(own_redis().url)
    for number in (b"1", b"2", b"3"):
        assert await way("call", ScriptCall(ECHO, ["k"], [number])) == [b"k", number]
    await way("execute", "SCRIPT", "FLUSH")
    assert await way("call", ScriptCall(ECHO, ["k"], ["4"])) == [b"k", b"4"]


async def test_script_is_sent_in_full_once_for_each_link(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)

    await asyncio.gather(*(connection.call(ScriptCall(ECHO, ["k"], [n])) for n in range(3)))

    sha = ECHO.sha.encode()
    assert server.commands[1:] == [
        [b"EVAL", ECHO.text.encode(), b"1", b"k", b"0"],
        [b"EVALSHA", sha, b"1", b"k", b"1"],
        [b"EVALSHA", sha, b"1", b"k", b"2"],
    ]


# errors


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        pytest.param(("execute", "HGET", "{key}", "field"), "wrong kind of value", id="wrong-type"),
        pytest.param(("execute", "NONSENSE"), "unknown command", id="unknown-command"),
        pytest.param(("execute", "GET"), "wrong number of arguments", id="arguments"),
        pytest.param(("execute", "EVAL", "return 1 +", 0), "compiling script", id="syntax"),
        pytest.param(("execute", "EVAL", WRONG.text, 0), "MINE that is wrong", id="deep"),
        pytest.param(("call", ScriptCall(WRONG, [], [])), "MINE that is wrong", id="script"),
    ],
)
async def test_refusal_is_an_exception_that_names_host_and_reason(
    open_way: Callable[..., Way],
    redis_server: RedisServer,
    unique: str,
    call: tuple[Any, ...],
    reason: str,
) -> None:
    way = open_way(redis_server.url)
    await way("execute", "SET", unique, "text")
    call = tuple(unique if part == "{key}" else part for part in call)

    for _ in range(2):  # the second time Redis knows the script by its digest
        with pytest.raises(EngineUnavailable, match=reason) as caught:
            await way(*call)

    assert str(caught.value).startswith(f"redis://127.0.0.1:{redis_server.port}/0: ")
    assert await way("execute", "GET", unique) == b"text"


async def test_each_caller_gets_an_exception_of_its_own(
    open_connection: Callable[..., Connection], unused_url: str
) -> None:
    connection = open_connection(unused_url)

    errors = await asyncio.gather(
        *(connection.execute("PING") for _ in range(3)), return_exceptions=True
    )

    assert all(isinstance(error, EngineUnavailable) for error in errors)
    assert len({id(error) for error in errors}) == 3


async def test_wrong_argument_raises_type_error(connection: Connection) -> None:
    with pytest.raises(TypeError):
        await connection.execute("ECHO", None)  # type: ignore[arg-type]
    assert await connection.execute("ECHO", "1") == b"1"


# cancelling


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["echo", "script", "refused", "big"]),
        st.one_of(st.none(), st.integers(0, 6)),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60)
@given(calls=CALLS, connected=st.booleans())
def test_replies_match_their_commands_whoever_is_cancelled(
    redis_server: RedisServer, calls: list[tuple[str, int | None]], connected: bool
) -> None:
    """`calls`: what each caller asks, and after how many turns of the loop it is cancelled."""

    async def ask(connection: Connection, kind: str, number: int) -> Any:
        if kind == "script":
            return (await connection.call(ScriptCall(ECHO, ["k"], [number])))[1]
        if kind == "refused":
            return await connection.execute(f"NONSENSE{number}")
        padding = "x" * 100_000 if kind == "big" else ""
        return (await connection.execute("ECHO", f"{number}:{padding}")).partition(b":")[0]

    async def scenario() -> None:
        connection = Connection(Host({"address": redis_server.url}), Timeouts())
        if connected:
            await connection.execute("PING")
        tasks = [
            asyncio.create_task(ask(connection, kind, number))
            for number, (kind, _) in enumerate(calls)
        ]
        for turn in range(7):
            for task, (_, cancelled_after) in zip(tasks, calls, strict=True):
                if cancelled_after == turn:
                    task.cancel()
            await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        last = await connection.execute("ECHO", "last")
        await connection.close()
        assert last == b"last"
        for number, ((kind, cancelled_after), result) in enumerate(
            zip(calls, results, strict=True)
        ):
            if isinstance(result, asyncio.CancelledError):
                assert cancelled_after is not None
            elif kind == "refused":
                assert isinstance(result, EngineUnavailable)
                # the quotes around the name differ between versions of Redis
                assert re.search(rf"\bNONSENSE{number}\b", str(result))
            else:
                assert result == b"%d" % number

    asyncio.run(scenario())


# closing


async def test_close_fails_waiting_callers_and_leaves_no_task(
    open_connection: Callable[..., Connection], redis_server: RedisServer, unique: str
) -> None:
    connection = open_connection(redis_server.url)
    await connection.execute("PING")
    waiting = asyncio.create_task(connection.execute("BLPOP", unique, 0))
    await asyncio.sleep(0)

    await connection.close()

    with pytest.raises(EngineUnavailable, match="closed here"):
        await waiting
    with pytest.raises(EngineUnavailable, match="closed here"):
        await connection.execute("PING")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_close_ends_an_attempt_to_connect(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: b"")
    connection = open_connection(server.url, Timeouts(connect=30))
    waiting = asyncio.create_task(connection.execute("PING"))
    await server.asked(1)  # the handshake, which is never answered

    async with asyncio.timeout(link.CLOSE_TIMEOUT + 1):
        await connection.close()
        with pytest.raises(EngineUnavailable, match="closed here"):
            await waiting


def test_host_serves_two_loops_one_after_another(redis_server: RedisServer) -> None:
    host = Host({"address": redis_server.url})

    async def ask(number: int) -> Any:
        connection = Connection(host, Timeouts())
        try:
            return await connection.execute("ECHO", number)
        finally:
            await connection.close()

    assert [asyncio.run(ask(number)) for number in (1, 2)] == [b"1", b"2"]
