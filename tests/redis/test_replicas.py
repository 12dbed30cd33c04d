"""Waiting for replicas: what is acknowledged is on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from realtime.errors import EngineUnavailable, NoReply
from realtime.redis.blocking import BlockingRedis
from realtime.redis.commands import Request, Script, ScriptCall, Wait
from realtime.redis.connection import Connection
from realtime.redis.replicas import TooFewReplicas
from tests.redis_server import RedisServer
from tests.redis_server import replica_of as start_replica

WAIT = Wait(1, 2000)
"""Long enough for a replica that is there."""
SHORT = Wait(1, 50)
"""For a replica that is not."""

PUSH: Script[int] = Script.of("push", "return redis.call('RPUSH', KEYS[1], ARGV[1])")

Run = Callable[..., Coroutine[Any, Any, int]]


class Pair:
    """A Redis and its replica."""

    def __init__(self, master: RedisServer, replica: RedisServer) -> None:
        self.master = master
        self.replica = replica

    def replicated(self) -> int:
        """How many entries the replica has."""
        with self.replica.client() as client:
            return int(client.llen("list"))

    def waits(self) -> int:
        """How often the master was asked to wait."""
        return self.master.command_calls().get("wait", 0)


@pytest.fixture
def pair(own_redis: Callable[..., RedisServer]) -> Pair:
    master = own_redis()
    return Pair(master, start_replica(own_redis, master))


@pytest.fixture(params=["loop", "thread"])
def run(
    request: pytest.FixtureRequest,
    pair: Pair,
    open_connection: Callable[..., Connection],
    open_blocking: Callable[..., BlockingRedis],
) -> Run:
    """Run a script with one key and one argument, and wait for replicas."""
    connection, blocking = open_connection(pair.master.url), open_blocking(pair.master.url)

    async def on_loop(script: Script[int], argument: Any, wait: Wait) -> int:
        return await connection.call(ScriptCall(script, ("list",), (argument,)), wait)

    async def in_thread(script: Script[int], argument: Any, wait: Wait) -> int:
        return await asyncio.to_thread(
            blocking.call, ScriptCall(script, ("list",), (argument,)), wait
        )

    return on_loop if request.param == "loop" else in_thread


async def test_replicas_have_what_was_confirmed(pair: Pair, run: Run) -> None:
    for number in range(1, 21):
        assert await run(PUSH, "a", WAIT) == number
        assert pair.replicated() == number


async def test_replica_that_does_not_answer_makes_the_outcome_unknown(pair: Pair, run: Run) -> None:
    reason = "0 of 1 replicas confirmed it within 50 ms"
    with pair.replica.frozen(), pytest.raises(NoReply, match=reason) as caught:
        await run(PUSH, "a", SHORT)

    assert isinstance(caught.value, TooFewReplicas)
    assert await run(PUSH, "b", WAIT) == 2, "the first one took effect"
    assert pair.replicated() == 2


async def test_script_that_redis_forgot_is_sent_again(pair: Pair, run: Run) -> None:
    await run(PUSH, "a", WAIT)
    with pair.master.client() as client:
        client.script_flush()
    assert await run(PUSH, "b", WAIT) == 2
    assert pair.replicated() == 2


async def test_script_that_fails_is_certain_not_to_have_been_run(pair: Pair, run: Run) -> None:
    with pair.master.client() as client:
        client.set("list", "no list")
    with pytest.raises(EngineUnavailable, match="WRONGTYPE") as caught:
        await run(PUSH, "a", WAIT)
    assert not isinstance(caught.value, NoReply)


async def test_outcome_is_unknown_when_the_connection_breaks_meanwhile(
    pair: Pair, run: Run
) -> None:
    with pair.replica.frozen():
        running = asyncio.create_task(run(PUSH, "a", Wait(1, 4000)))
        with pair.master.client() as client:
            async with asyncio.timeout(60):
                while not client.info("clients")["blocked_clients"]:
                    await asyncio.sleep(0.01)
            client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        with pytest.raises(NoReply):
            await running


async def test_one_wait_serves_all_that_were_sent_before_it(
    pair: Pair, open_connection: Callable[..., Connection]
) -> None:
    connection = open_connection(pair.master.url)
    await connection.call(ScriptCall(PUSH, ("list",), ("first",)), WAIT)
    before = pair.waits()

    numbers = await asyncio.gather(
        *(connection.call(ScriptCall(PUSH, ("list",), (n,)), WAIT) for n in range(500))
    )

    assert numbers == [*range(2, 502)]
    assert pair.replicated() == 501
    assert pair.waits() == before + 1


async def test_callers_that_come_while_others_wait_are_served_by_the_next_wait(
    pair: Pair, open_connection: Callable[..., Connection]
) -> None:
    connection = open_connection(pair.master.url)
    await connection.call(ScriptCall(PUSH, ("list",), ("first",)), WAIT)
    before = pair.waits()
    with pair.replica.frozen():
        first = asyncio.create_task(connection.call(ScriptCall(PUSH, ("list",), (0,)), WAIT))
        with pair.master.client() as client:
            async with asyncio.timeout(60):
                while not client.info("clients")["blocked_clients"]:
                    await asyncio.sleep(0.01)
        others = [
            asyncio.create_task(connection.call(ScriptCall(PUSH, ("list",), (n,)), WAIT))
            for n in range(1, 50)
        ]
        await asyncio.sleep(0)
        others[0].cancel()

    assert await first == 2
    assert await asyncio.gather(*others[1:]) == [*range(4, 52)]
    assert pair.replicated() == 51
    assert pair.waits() == before + 2


async def test_threads_wait_once_for_a_batch(
    pair: Pair, open_blocking: Callable[..., BlockingRedis]
) -> None:
    blocking = open_blocking(pair.master.url)
    calls = [ScriptCall(PUSH, ("list",), (n,)) for n in range(20)]

    assert await asyncio.to_thread(blocking.run_many, calls, [WAIT] * 20) == [*range(1, 21)]
    assert (pair.replicated(), pair.waits()) == (20, 1)

    with pair.replica.frozen():
        requests: list[Request] = [calls[0], ("GET", "list"), calls[1]]
        results = await asyncio.to_thread(blocking.run_many, requests, [SHORT] * len(requests))
    assert [type(result) for result in results] == [
        TooFewReplicas,
        EngineUnavailable,
        TooFewReplicas,
    ]
