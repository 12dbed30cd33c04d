"""Scripts that Redis forgets, by SCRIPT FLUSH, run in the order of the calls, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from realtime.errors import EngineUnavailable, NoReply
from realtime.redis import link
from realtime.redis.commands import Script, ScriptCall, Wait
from realtime.redis.connection import Connection
from realtime.redis.hosts import Timeouts
from tests.redis.scripted_server import OK, ScriptedServer
from tests.redis_server import RedisServer

NOTE = Script.of("note", "return redis.call('RPUSH', KEYS[1], ARGV[1])")
"""Adds a number to a list; returns the length of the list."""

CALLS = 1000

Run = Callable[[Connection, int], Awaitable[int]]


async def run(connection: Connection, number: int) -> int:
    return await connection.call(ScriptCall(NOTE, ["notes"], [number]))


async def run_confirmed(connection: Connection, number: int) -> int:
    return await connection.call(ScriptCall(NOTE, ["notes"], [number]), Wait(0, 100))


def forget(command: list[bytes]) -> bytes:
    """Answer as a Redis that forgets each script at once, and never answers ECHO."""
    if command[0] == b"EVALSHA":
        return b"-NOSCRIPT No matching script\r\n"
    if command[0] == b"ECHO":
        return b""
    return b":7\r\n" if command[0] == b"EVAL" else OK


RUNS: Sequence[Run] = (run, run_confirmed)


@pytest.mark.parametrize("call", RUNS)
@pytest.mark.parametrize("forgetful_time", [0.0, link.FORGETFUL_TIME])
async def test_scripts_run_in_the_order_of_the_calls_while_redis_forgets_them(
    own_redis: Callable[..., RedisServer],
    open_connection: Callable[..., Connection],
    monkeypatch: pytest.MonkeyPatch,
    call: Run,
    forgetful_time: float,
) -> None:
    monkeypatch.setattr(link, "FORGETFUL_TIME", forgetful_time)
    connection = open_connection(own_redis().url)
    await connection.execute("PING")

    calls: list[Awaitable[object]] = []
    for number in range(CALLS):
        calls.append(asyncio.ensure_future(call(connection, number)))
        if number % 7 == 0:
            calls.append(asyncio.ensure_future(connection.execute("SCRIPT", "FLUSH")))
        await asyncio.sleep(0)  # so that others begin while replies arrive
    await asyncio.gather(*calls)

    noted = [int(number) for number in await connection.execute("LRANGE", "notes", 0, -1)]
    assert noted == list(range(CALLS))


async def test_link_that_is_lost_before_the_script_is_sent_again_is_replaced(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    open_connection: Callable[..., Connection],
) -> None:
    server = await script_server(forget)
    connection = open_connection(server.url, Timeouts(connect=20.0, answer=0.1))
    assert await run(connection, 0) == 7

    replies = await asyncio.gather(
        run(connection, 1), connection.execute("ECHO", "late"), return_exceptions=True
    )

    assert replies[0] == 7
    assert str(replies[1]).endswith("no answer within 0.1 s")
    assert server.connections == 2


async def test_close_ends_the_wait_for_other_replies(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    open_connection: Callable[..., Connection],
) -> None:
    server = await script_server(forget)
    connection = open_connection(server.url)
    assert await run(connection, 0) == 7
    calls = asyncio.gather(
        run(connection, 1), connection.execute("ECHO", "late"), return_exceptions=True
    )
    while connection._link is not None:
        await asyncio.sleep(0)

    await connection.close()

    assert [str(reply).endswith("closed here") for reply in await calls] == [True, True]


async def test_call_that_a_later_one_has_overtaken_is_refused(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    open_connection: Callable[..., Connection],
) -> None:
    run_in_full: list[bytes] = []

    def answer(command: list[bytes]) -> bytes:
        if command[0] == b"EVALSHA" and command[-1] != b"2":
            return b"-NOSCRIPT No matching script\r\n"
        if command[0] == b"EVAL":
            run_in_full.append(command[-1])
        return b":7\r\n" if command[0] in (b"EVAL", b"EVALSHA") else OK

    connection = open_connection((await script_server(answer)).url)
    await run(connection, 0)
    # another process brings the script between the first call and the second
    first, *others = await asyncio.gather(
        *(run(connection, number) for number in (1, 2, 3)),
        connection.call(ScriptCall(NOTE, ["other notes"], [4])),
        return_exceptions=True,
    )

    assert isinstance(first, EngineUnavailable)
    assert not isinstance(first, NoReply)
    assert others == [7, 7, 7]
    assert run_in_full == [b"0", b"3", b"4"]
