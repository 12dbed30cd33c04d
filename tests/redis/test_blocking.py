"""BlockingRedis: commands of threads without an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis.blocking import BlockingRedis
from realtime.redis.commands import Request, Script, ScriptCall
from realtime.redis.hosts import Timeouts
from tests.redis.conftest import SLACK
from tests.redis_server import RedisServer
from tests.server import ROOT, wait_until

Opening = Callable[..., BlockingRedis]
Starting = Callable[..., RedisServer]

ECHO = Script.of("echo", "return {KEYS[1], ARGV[1]}")
WRONG = Script.of("wrong", "return {1, {2, redis.error_reply('MINE that is wrong')}}")
SET = Script.of("set", "return redis.call('set', KEYS[1], '1')")


@pytest.fixture
def client(open_blocking: Opening, redis_server: RedisServer) -> BlockingRedis:
    return open_blocking(redis_server.url)


def test_batch_is_executed_in_order_in_one_round_trip(
    open_blocking: Opening, own_redis: Starting
) -> None:
    """Scripts that Redis does not know yet do not fall behind."""
    redis = own_redis()
    client = open_blocking(redis.url)
    push = Script.of("push", "return redis.call('rpush', KEYS[1], ARGV[1])")
    also = Script.of("also", "return redis.call('rpush', KEYS[1], 'also ' .. ARGV[1])")
    requests: list[Request] = [
        ScriptCall(push, ["list"], ["1"]),
        ("RPUSH", "list", "2"),
        ScriptCall(also, ["list"], ["3"]),
        ScriptCall(push, ["list"], ["4"]),
        (b"RPUSH", "list", 5),
    ]

    assert client.run_many(requests) == [1, 2, 3, 4, 5]
    calls = redis.command_calls()
    assert (calls["eval"], calls["evalsha"]) == (2, 1), "a text is sent once"
    assert client.run_many(requests) == [6, 7, 8, 9, 10]

    once = [b"1", b"2", b"also 3", b"4", b"5"]
    assert client.execute("LRANGE", "list", 0, -1) == once * 2


def test_scripts_that_only_read_are_known_by_their_digest(
    open_blocking: Opening, own_redis: Starting
) -> None:
    redis = own_redis()
    client = open_blocking(redis.url)
    calls = [ScriptCall(ECHO, ["k"], [number]) for number in range(5)]
    expected = [[b"k", b"%d" % number] for number in range(5)]

    assert client.read_many(calls) == expected
    assert redis.command_calls()["eval"] == 1
    assert client.read_many(calls) == expected
    assert redis.command_calls()["eval"] == 1
    client.execute("SCRIPT", "FLUSH")
    assert client.read_many([*calls, ScriptCall(WRONG, [], [])])[:5] == expected
    assert client.read_many([]) == client.run_many([]) == []


def test_refused_request_is_an_exception_among_the_replies(
    open_blocking: Opening, redis_server: RedisServer, unique: str
) -> None:
    client = open_blocking(redis_server.url, max_connections=1)
    for _ in range(2):  # each gives the only connection back
        with pytest.raises(EngineUnavailable):
            client.execute("NONSENSE")

    replies = client.run_many(
        [("SET", unique, "x"), ("HGET", unique, "y"), ScriptCall(WRONG, [], []), ("GET", unique)]
    )

    assert (replies[0], replies[3]) == (b"OK", b"x")
    assert isinstance(replies[1], EngineUnavailable)
    assert "wrong kind of value" in str(replies[1])
    assert isinstance(replies[2], EngineUnavailable)
    assert "MINE that is wrong" in str(replies[2])


def test_commands_start_no_event_loop_and_no_thread(
    client: BlockingRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: made.append("loop"))
    monkeypatch.setattr(threading.Thread, "start", lambda self: made.append("thread"))

    client.execute("PING")
    client.call(ScriptCall(ECHO, ["k"], ["v"]))
    client.run_many([ScriptCall(ECHO, ["k"], ["v"])])

    assert made == []


def test_many_threads_get_their_own_replies(client: BlockingRedis) -> None:
    def ask(number: int) -> list[object]:
        return [client.execute("ECHO", f"{number}:{turn}") for turn in range(50)]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(ask, range(16)))

    assert results == [[f"{number}:{turn}".encode() for turn in range(50)] for number in range(16)]


# failures


def test_connection_closed_while_idle_does_not_fail_the_next_command(
    open_blocking: Opening, own_redis: Starting
) -> None:
    redis = own_redis()
    client = open_blocking(redis.url)
    client.execute("PING")

    with redis.client() as other:
        other.execute_command("CLIENT", "KILL", "TYPE", "normal")
    assert client.execute("ECHO", "1") == b"1"
    redis.restart(empty=True)
    assert client.run_many([ScriptCall(ECHO, ["k"], ["v"])]) == [[b"k", b"v"]]


def test_frozen_redis_fails_in_time_and_works_again_when_it_goes_on(
    open_blocking: Opening, own_redis: Starting
) -> None:
    redis = own_redis()
    client = open_blocking(redis.url, Timeouts(connect=0.3, answer=0.4))
    client.execute("PING")
    redis.freeze()

    for ask in (
        lambda: client.execute("ECHO", "late"),  # on an open connection
        lambda: client.call(ScriptCall(ECHO, ["k"], ["late"])),  # on one that has to be opened
        lambda: client.run_many([("ECHO", "late")]),
    ):
        started = time.monotonic()
        with pytest.raises(EngineUnavailable, match=r"[Tt]imeout|timed out"):
            ask()
        assert time.monotonic() - started < SLACK
    redis.resume()

    assert client.execute("ECHO", "now") == b"now"


def test_wait_for_a_free_connection_is_bounded_by_the_connect_timeout(
    open_blocking: Opening, own_redis: Starting
) -> None:
    redis = own_redis()
    client = open_blocking(redis.url, Timeouts(connect=0.3), max_connections=1)
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(client.execute, "BLPOP", "list", 0)
        wait_until(lambda: redis.command_calls().get("blpop") == 1 or is_blocked(redis))

        started = time.monotonic()
        with pytest.raises(EngineUnavailable, match="No connection available"):
            client.execute("PING")
        took = time.monotonic() - started

        with redis.client() as other:
            other.rpush("list", "x")
        assert holding.result() == [b"list", b"x"]
    assert 0.3 <= took < SLACK
    assert client.execute("PING") == b"PONG"


def is_blocked(redis: RedisServer) -> bool:
    with redis.client() as client:
        return bool(client.info("clients")["blocked_clients"] == 1)


def test_replica_refuses_a_batch_and_the_next_command_connects_anew(
    open_blocking: Opening, own_redis: Starting
) -> None:
    client = open_blocking(own_redis().url)
    client.execute("REPLICAOF", "127.0.0.1", "1")
    before = client.execute("CLIENT", "ID")

    replies = client.run_many([("SET", "k", "1"), ("GET", "k"), ScriptCall(SET, ["k"], [])])

    assert [type(reply) for reply in replies] == [EngineUnavailable, type(None), EngineUnavailable]
    assert client.execute("CLIENT", "ID") > before


def test_closed_client_can_be_used_again(client: BlockingRedis) -> None:
    client.execute("PING")
    client.close()
    assert client.execute("PING") == b"PONG"


FORK = textwrap.dedent(
    """
    import os, sys
    from realtime.redis.blocking import BlockingRedis
    from realtime.redis.hosts import Host, Timeouts

    client = BlockingRedis(Host({"address": sys.argv[1]}), Timeouts())
    mine = client.execute("CLIENT", "ID")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        replies = [client.execute("ECHO", f"child {n}") for n in range(200)]
        right = replies == [b"child %d" % n for n in range(200)]
        right = right and client.execute("CLIENT", "ID") != mine
        os.write(write, b"right" if right else b"wrong")
        os._exit(0)
    replies = [client.execute("ECHO", f"parent {n}") for n in range(200)]
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 10) == b"right"
    assert replies == [b"parent %d" % n for n in range(200)]
    assert client.execute("CLIENT", "ID") == mine
    print("done")
    """
)


def test_forked_process_has_connections_of_its_own(redis_server: RedisServer) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, redis_server.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (result.stdout, result.stderr) == ("done\n", "")
