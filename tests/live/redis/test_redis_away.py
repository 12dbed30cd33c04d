"""Publishing while Redis is away, frozen or refuses, and in the same process afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import connection_token, start_server
from tests.live.processes import (
    SET_UP,
    Outcome,
    Worker,
    call_view,
    environment,
    output,
    worker,
)
from tests.protocol_client import open_client
from tests.redis_server import RedisServer
from tests.server import Server

PASSWORD = "the-secret-of-redis"
CONNECT_TIMEOUT = 1
READ_TIMEOUT = 1
SLACK = 10.0
"""Seconds that a busy machine may add to the timeouts."""

OPTIONS: dict[str, Any] = {
    "redis_prefix": "away",
    "redis_connect_timeout": CONNECT_TIMEOUT,
    "redis_read_timeout": READ_TIMEOUT,
    "namespaces": [
        {
            "name": "kept",
            "presence": True,
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        }
    ],
}

Call = Callable[..., Any]


# what can be wrong


@contextmanager
def away(server: RedisServer) -> Iterator[None]:
    """Connections are refused."""
    server.kill()
    try:
        yield
    finally:
        server.start()


@contextmanager
def set_to(server: RedisServer, option: str, value: str) -> Iterator[None]:
    """An option of Redis is another one; old connections are gone."""
    with server.client() as client:
        before = client.config_get(option)[option]
        client.config_set(option, value)
        client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        try:
            yield
        finally:
            client.config_set(option, before)


@contextmanager
def read_only(server: RedisServer) -> Iterator[None]:
    """It is no master any more."""
    with server.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            yield
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")


FAULTS: dict[str, Callable[[RedisServer], Any]] = {
    "away": away,
    "frozen": RedisServer.frozen,
    "another password": lambda server: set_to(server, "requirepass", "another-secret"),
    "too many clients": lambda server: set_to(server, "maxclients", "1"),
    "out of memory": lambda server: set_to(server, "maxmemory", "1"),
    "read-only": read_only,
}


# who publishes

CALLERS = [
    ("worker", "call"),
    ("worker", "fork"),
    ("worker", "asyncio-run"),
    ("server", "sync-view"),
    ("server", "async-view"),
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    directory = tmp_path_factory.mktemp("redis")
    server = RedisServer(directory, password=PASSWORD, persistent=True).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory: pytest.TempPathFactory, own: RedisServer) -> Iterator[Worker]:
    directory = tmp_path_factory.mktemp("process")
    with worker(environment(directory, {**OPTIONS, "redis_url": own.url})) as process:
        yield process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, own: RedisServer) -> Iterator[Server]:
    process = start_server(tmp_path_factory, **OPTIONS, redis_url=own.url)
    yield process
    process.kill()
    process.stop()


@pytest.fixture
def calls(server: Server, one_worker: Worker) -> dict[str, Call]:
    """Place → a function that calls a function there: {"result"}, or {"error", "message"}."""

    def of(process: str, place: str) -> Call:
        if process == "worker":
            return partial(one_worker.call, place)
        return partial(call_view, server, place)

    return {f"{process} {place}": of(process, place) for process, place in CALLERS}


def check_unavailable(outcome: Outcome, own: RedisServer) -> None:
    """It was told what is wrong, in time, and without secrets."""
    assert outcome.get("error") in ("EngineUnavailable", "NoReply"), outcome
    assert f"redis://127.0.0.1:{own.port}/0: " in outcome["message"]
    assert "secret" not in outcome["message"]
    assert outcome["seconds"] < CONNECT_TIMEOUT + READ_TIMEOUT + SLACK


@pytest.mark.parametrize("fault", FAULTS)
async def test_failed_publish_raises_in_time_and_the_next_one_after_it_succeeds(
    server: Server, own: RedisServer, calls: dict[str, Call], fault: str, unique: str
) -> None:
    channel = f"kept:{unique}"
    before, failed, after = ([f"{place} {when}" for place in calls] for when in "123")
    async with open_client(server.socket, token=connection_token("17")) as client:
        await client.result("subscribe", {"channel": channel})
        for call, data in zip(calls.values(), before, strict=True):
            assert "error" not in call("publish", channel, data)

        with FAULTS[fault](own):
            for call, data in zip(calls.values(), failed, strict=True):
                check_unavailable(call("publish", channel, data), own)

        for call, data in zip(calls.values(), after, strict=True):
            outcome = call("publish", channel, data)
            assert "error" not in outcome, (data, outcome)
        [*_, call] = calls.values()
        kept = [entry["data"] for entry in call("history", channel)["result"]]
        received = [(await client.publication())["data"] for _ in kept]
    assert [data for data in kept if data not in failed] == before + after
    # where Redis was frozen it was sent, and may be done when Redis goes on
    assert len(kept) == len(set(kept)) if fault == "frozen" else kept == before + after
    assert received == kept


FUNCTIONS: dict[str, list[Any]] = {
    "publish": ["kept:a", 1],
    "broadcast": [["kept:a", "b"], 1],
    "subscribe": ["17", "kept:a"],
    "unsubscribe": ["17", "kept:a"],
    "disconnect": ["17"],
    "refresh": ["17"],
    "block": ["17", 1],
    "unblock": ["17"],
    "blocked": [],
    "presence": ["kept:a"],
    "presence_stats": ["kept:a"],
    "history": ["kept:a"],
    "history_remove": ["kept:a"],
    "position": ["kept:a"],
    "positions": [["kept:a", "kept:b"]],
    "channels": [],
    "info": [],
    "nodes": [],
    "connections": ["17"],
    "subscribers": [["kept:a"]],
    "round_trip": [],
}


def test_every_function_raises_in_time_and_works_afterwards(
    own: RedisServer, calls: dict[str, Call]
) -> None:
    with away(own):
        for call in calls.values():
            for name, arguments in FUNCTIONS.items():
                check_unavailable(call(name, *arguments), own)
    for call in calls.values():
        for name, arguments in FUNCTIONS.items():
            outcome = call(name, *arguments)
            assert "error" not in outcome, (name, outcome)


def test_server_logged_no_secret(
    server: Server, own: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # an outage is one line, so only a server without earlier ones is certain to write its reason
    fresh = start_server(tmp_path_factory, **OPTIONS, redis_url=own.url)
    try:
        assert "error" not in call_view(fresh, "async-view", "publish", "a", 1)
        with set_to(own, "requirepass", "another-secret"):
            outcome = call_view(fresh, "async-view", "publish", "a", 1)
            assert outcome["error"] == "EngineUnavailable"
            assert fresh.api("publish", channel="a", data=1)["error"]["code"] == 300
        assert "invalid username-password pair" in fresh.log
    finally:
        fresh.kill()
        fresh.stop()

    assert "secret" not in fresh.log
    assert "secret" not in server.log  # after every fault


# programs of their own


def test_process_that_begins_without_redis_publishes_when_it_is_there(
    tmp_path: Path, own_redis: Callable[..., RedisServer]
) -> None:
    server = own_redis()
    server.kill()
    variables = environment(tmp_path, {**OPTIONS, "redis_url": server.url})
    with worker(variables) as process:
        for way in ("call", "fork", "asyncio-run"):
            check_unavailable(process.call(way, "publish", "kept:a", "failed"), server)
        server.start()
        for way in ("call", "fork", "asyncio-run"):
            assert "error" not in process.call(way, "publish", "kept:a", way)

    kept = output(SET_UP + "print([e['data'] for e in realtime.history('kept:a')])", variables)
    assert kept == ["['call', 'fork', 'asyncio-run']"]
