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
from realtime.redis.commands import Script
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from tests.redis.scripted_server import OK, ScriptedServer, array
from tests.redis_server import RedisServer

ECHO = Script.of("echo", "return {KEYS[1], ARGV[1]}")
WRONG = Script.of("wrong", "return {1, {2, redis.error_reply('MINE that is wrong')}}")

Scripting = Callable[..., Awaitable[ScriptedServer]]


async def test_command_gets_its_reply(connection: Connection, unique: str) -> None:
    assert await connection.execute("SET", unique, b"\x00\xff") == b"OK"
    assert await connection.execute(b"GET", unique) == b"\x00\xff"
    assert await connection.execute("APPEND", unique, 12) == 4
    assert await connection.execute("GET", unique + "-none") is None
    assert await connection.execute("MGET", unique, "none") == [b"\x00\xff12", None]
    assert await connection.execute("ECHO", "é") == "é".encode()


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
    connection: Connection, unique: str
) -> None:
    lengths = await asyncio.gather(
        *(connection.execute("RPUSH", unique, number) for number in range(1000))
    )

    assert lengths == list(range(1, 1001))
    kept = await connection.execute("LRANGE", unique, 0, -1)
    assert kept == [b"%d" % number for number in range(1000)]


async def test_commands_of_one_turn_leave_in_one_write(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)
    await connection.execute("FIRST")
    server.chunks.clear()

    await asyncio.gather(*(connection.execute("SET", "k", number) for number in range(100)))

    assert len(server.commands) == 102  # the handshake has one
    assert len(server.chunks) == 1


async def test_ten_thousand_callers_at_once_before_the_first_connection(
    open_connection: Callable[..., Connection], redis_server: RedisServer
) -> None:
    connection = open_connection(redis_server.url)

    replies = await asyncio.gather(*(connection.execute("ECHO", n) for n in range(10_000)))

    assert replies == [b"%d" % number for number in range(10_000)]


async def test_callers_share_one_attempt_to_connect(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)

    await asyncio.gather(*(connection.execute("PING") for _ in range(20)))

    assert server.connections == 1


async def test_connection_is_opened_by_the_first_command(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)
    await connection.close()

    assert server.connections == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


# scripts


async def test_script_gets_keys_and_arguments(connection: Connection) -> None:
    assert await connection.run(ECHO, ["k"], ["v"]) == [b"k", b"v"]


async def test_script_is_sent_in_full_once_for_each_link(
    script_server: Scripting, open_connection: Callable[..., Connection]
) -> None:
    server = await script_server(lambda command: OK)
    connection = open_connection(server.url)

    await asyncio.gather(*(connection.run(ECHO, ["k"], [n]) for n in range(3)))

    sha = ECHO.sha.encode()
    assert server.commands[1:] == [
        [b"EVAL", ECHO.text.encode(), b"1", b"k", b"0"],
        [b"EVALSHA", sha, b"1", b"k", b"1"],
        [b"EVALSHA", sha, b"1", b"k", b"2"],
    ]


async def test_script_that_redis_forgot_is_sent_again(
    own_redis: Callable[..., RedisServer], open_connection: Callable[..., Connection]
) -> None:
    connection = open_connection(own_redis().url)
    await connection.run(ECHO, ["k"], ["1"])
    await connection.execute("SCRIPT", "FLUSH")

    replies = await asyncio.gather(*(connection.run(ECHO, ["k"], [n]) for n in range(50)))

    assert replies == [[b"k", b"%d" % number] for number in range(50)]


# errors


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param(("HGET", "{key}", "field"), "WRONGTYPE", id="wrong-type"),
        pytest.param(("NONSENSE",), "unknown command", id="unknown-command"),
        pytest.param(("GET",), "wrong number of arguments", id="arguments"),
        pytest.param(("EVAL", "return 1 +", 0), "compiling script", id="script"),
        pytest.param(("EVAL", WRONG.text, 0), "MINE that is wrong", id="deep-in-the-reply"),
    ],
)
async def test_refusal_is_an_exception_that_names_host_and_reason(
    connection: Connection,
    redis_server: RedisServer,
    unique: str,
    command: tuple[Any, ...],
    reason: str,
) -> None:
    await connection.execute("SET", unique, "text")
    command = tuple(unique if part == "{key}" else part for part in command)

    with pytest.raises(EngineUnavailable, match=reason) as caught:
        await connection.execute(*command)

    assert str(caught.value).startswith(f"redis://127.0.0.1:{redis_server.port}/0: ")
    assert await connection.execute("GET", unique) == b"text"


async def test_refusal_by_a_script_is_an_exception(connection: Connection) -> None:
    for _ in ("in full", "by its digest"):
        with pytest.raises(EngineUnavailable, match="MINE that is wrong"):
            await connection.run(WRONG, [], [])


async def test_refusal_reaches_only_its_caller(connection: Connection) -> None:
    results = await asyncio.gather(
        connection.execute("ECHO", "1"),
        connection.execute("NONSENSE"),
        connection.execute("ECHO", "2"),
        return_exceptions=True,
    )

    assert results[0] == b"1"
    assert isinstance(results[1], EngineUnavailable)
    assert results[2] == b"2"


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


async def test_cancelled_caller_that_connects_does_not_stop_the_others(
    open_connection: Callable[..., Connection], redis_server: RedisServer
) -> None:
    connection = open_connection(redis_server.url)
    first = asyncio.create_task(connection.execute("ECHO", "1"))
    second = asyncio.create_task(connection.execute("ECHO", "2"))
    await asyncio.sleep(0)
    first.cancel()

    assert await second == b"2"
    assert first.cancelled()


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
            return (await connection.run(ECHO, ["k"], [number]))[1]
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
