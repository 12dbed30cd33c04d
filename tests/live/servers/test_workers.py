"""`python -m realtime --workers N`: one port, several processes, one supervisor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import httpx
import pytest

from tests.chaos.rolling import crowd, options, restart, workers_of
from tests.live.clusters import nodes
from tests.live.configurations import SHUTDOWN, Connect
from tests.processes import run_python, start_python
from tests.redis_server import RedisServer
from tests.server import API_KEY, ROOT, SECRET, STOP_TIMEOUT, Server, wait_until

OwnRedis = Callable[..., RedisServer]
CLIENTS = 50
"""Of each worker."""


@pytest.fixture
def supervised(own_redis: OwnRedis, tmp_path: Path) -> Iterator[Server]:
    """Two workers and their supervisor."""
    server = Server(
        tmp_path,
        {**options(CLIENTS), "redis_url": own_redis().url},
        server="realtime",
        arguments=["--workers", "2"],
    )
    try:
        wait_until(lambda: len(workers_of(server)) == 2, what="two workers")
        yield server
    finally:
        server.discard()
        print(f"--- the supervisor wrote:\n{server.log[-4000:]}")  # noqa: T201


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_clients_miss_nothing_while_all_workers_are_restarted(supervised: Server) -> None:
    async with crowd(supervised, 2 * CLIENTS) as groups:
        await restart(supervised, groups, 2)
        for group in groups:
            assert group.publishers.failures == []
            assert set(group.subscribers.closes) <= {3001}
            assert False not in group.subscribers.recovered
    old, new = workers_of(supervised)[:2], workers_of(supervised)[2:]
    assert [is_alive(pid) for pid in (*old, *new)] == [False, False, True, True]


async def test_worker_that_dies_is_replaced_and_the_other_one_keeps_its_clients(
    supervised: Server, connect: Connect
) -> None:
    dead, alive = workers_of(supervised)
    clients = [await connect(supervised, user=f"{n}") for n in range(10)]

    os.kill(dead, signal.SIGKILL)
    wait_until(lambda: len(workers_of(supervised)) == 3, what="a third worker")

    assert f"Worker {dead} ended with status -9" in supervised.log
    kept = sum(node["num_clients"] for node in nodes(supervised) if str(alive) in node["name"])
    os.kill(supervised.pid, signal.SIGTERM)
    closes = [(await client.closed())[0] for client in clients]
    assert closes.count(SHUTDOWN[0]) == kept
    assert supervised.wait() == 0
    assert [is_alive(pid) for pid in workers_of(supervised)] == [False] * 3
    assert "Traceback" not in supervised.log


async def test_workers_stay_where_new_ones_cannot_start_until_their_supervisor_is_killed(
    supervised: Server, tmp_path: Path, connect: Connect
) -> None:
    before = workers_of(supervised)
    client = await connect(supervised)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "redis_prefix": 17}))

    os.kill(supervised.pid, signal.SIGHUP)
    wait_until(lambda: "Rolling restart stopped" in supervised.log, what="the reason")
    assert "redis_prefix" in supervised.log.rpartition("Rolling restart stopped")[2]
    assert workers_of(supervised) == before
    assert "result" in supervised.api("info")

    os.kill(supervised.pid, signal.SIGKILL)
    assert await client.closed() == SHUTDOWN
    wait_until(
        lambda: not any(map(is_alive, workers_of(supervised))), STOP_TIMEOUT, "the workers' end"
    )


REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "memory": ({}, "--workers needs Redis or PostgreSQL"),
    "no Redis there": ({"redis_url": "redis://127.0.0.1:1/0"}, "127.0.0.1:1/0"),
    "options with a mistake": ({"presence": "perhaps"}, "presence"),
}


@pytest.mark.parametrize(("given", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_reason_is_told_where_the_service_cannot_start(
    tmp_path: Path, given: dict[str, Any], reason: str
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"token_hmac_secret_key": SECRET, "api_key": API_KEY, **given}))

    ended = run_python(
        ["-m", "realtime", "--workers", "2", "--port", "0", "tests.site.asgi:application"],
        ROOT,
        {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "SERVICE_CONFIG_FILE": str(config),
        },
    )

    assert ended.returncode == 1
    assert reason in ended.stderr.rpartition("Could not start: ")[2]
    assert ended.stderr.count("Could not start") == 1
    assert "Traceback" not in ended.stderr


def test_second_address_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.sock"
    ended = run_python(
        ["-m", "realtime", "--uds", str(path), "-p", "0", "tests.site.asgi:application"],
        ROOT,
        {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )
    assert (ended.returncode, path.exists()) == (1, False)
    assert "listens at one address" in ended.stderr


async def test_service_listens_at_a_path_and_takes_it_away(tmp_path: Path) -> None:
    path = tmp_path / "service.sock"
    arguments = ["-m", "realtime", "--uds", str(path), "--uds-mode", "600"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with open(os.devnull, "rb") as nothing, TemporaryFile() as output:
        process = start_python(
            [*arguments, "tests.site.asgi:application"],
            ROOT,
            environment,
            (nothing, output, output),
        )
        try:
            transport = httpx.AsyncHTTPTransport(uds=str(path), retries=50)
            await asyncio.to_thread(wait_until, path.exists, STOP_TIMEOUT)
            async with httpx.AsyncClient(transport=transport, base_url="http://site") as caller:
                response = await caller.get("/connection/websocket", timeout=STOP_TIMEOUT)
            mode = stat.S_IMODE(path.stat().st_mode)
        finally:
            process.terminate()
            status = process.wait(STOP_TIMEOUT)

    assert response.status_code == 400
    assert (mode, status, path.exists()) == (0o600, 0, False)
