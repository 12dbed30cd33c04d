"""The doctor at Redis, and at processes that share one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.console import examine, front_proxy, statuses
from tests.redis_server import RedisServer
from tests.server import Server, free_port, wait_until

KEPT: dict[str, Any] = {"history_size": 5, "history_lifetime": 60}

OwnRedis = Callable[..., RedisServer]


def test_healthy_redis_passes(own_redis: OwnRedis, tmp_path: Path) -> None:
    redis = own_redis(persistent=True)

    found = examine(tmp_path, {**KEPT, "redis_url": redis.url})

    checks = [name for name in found if name.startswith("redis")]
    assert checks == [
        "redis",
        "redis role",
        "redis latency",
        "redis eviction",
        "redis persistence",
        "redis subscribers",
        "redis clock",
    ]
    assert set(statuses(found, *checks)) == {"ok"}


def test_password_of_redis_is_not_printed(own_redis: OwnRedis, tmp_path: Path) -> None:
    redis = own_redis(password="hidden")

    found = examine(tmp_path, {"redis_url": redis.url})

    assert found["redis"]["status"] == "ok"
    assert "hidden" not in str(found)


@pytest.mark.parametrize(
    ("policy", "limit", "status"),
    [
        ("noeviction", "100mb", "ok"),
        ("allkeys-lru", "0", "ok"),
        ("allkeys-lru", "100mb", "warn"),
        ("volatile-ttl", "100mb", "warn"),
    ],
)
def test_eviction_is_weighed_by_the_limit(
    own_redis: OwnRedis, tmp_path: Path, policy: str, limit: str, status: str
) -> None:
    redis = own_redis(arguments=("--maxmemory", limit, "--maxmemory-policy", policy))

    found = examine(tmp_path, {"redis_url": redis.url})

    assert found["redis eviction"]["status"] == status


@pytest.mark.parametrize(
    ("options", "status"),
    [(KEPT, "warn"), ({**KEPT, "redis_epoch_per_run": True}, "ok"), ({}, "skip")],
    ids=["history", "new epoch", "no history"],
)
def test_redis_without_a_disk_is_weighed_by_what_is_kept(
    redis_server: RedisServer, tmp_path: Path, options: dict[str, Any], status: str
) -> None:
    found = examine(tmp_path, {**options, "redis_url": redis_server.url})

    assert found["redis persistence"]["status"] == status


@pytest.mark.parametrize(
    ("limit", "status"),
    [("33554432 8388608 60", "ok"), ("0 0 0", "ok"), ("1048576 1048576 60", "warn")],
)
def test_small_buffers_of_subscribers_are_noticed(
    own_redis: OwnRedis, tmp_path: Path, limit: str, status: str
) -> None:
    redis = own_redis(arguments=("--client-output-buffer-limit", "pubsub", *limit.split()))

    found = examine(tmp_path, {"redis_url": redis.url})

    assert found["redis subscribers"]["status"] == status


def test_redis_that_hides_its_settings_is_no_failure(own_redis: OwnRedis, tmp_path: Path) -> None:
    """As hosted ones do."""
    redis = own_redis(arguments=("--rename-command", "CONFIG", ""))

    found = examine(tmp_path, {"redis_url": redis.url})

    assert statuses(found, "redis", "redis eviction", "redis subscribers") == ["ok", "ok", "skip"]


def test_replica_fails(own_redis: OwnRedis, tmp_path: Path) -> None:
    redis = own_redis(arguments=("--replicaof", "127.0.0.1", str(free_port())))

    found = examine(tmp_path, {"redis_url": redis.url})

    assert found["redis role"]["status"] == "fail"
    assert "redis_sentinels" in found["redis role"]["advice"]


def test_cluster_fails(own_redis: OwnRedis, tmp_path: Path) -> None:
    redis = own_redis(arguments=("--cluster-enabled", "yes"))

    found = examine(tmp_path, {"redis_url": redis.url})

    assert found["redis"]["status"] == "fail"
    assert "Cluster" in found["redis"]["found"]


def test_redis_far_away_is_noticed(redis_server: RedisServer, tmp_path: Path) -> None:
    with front_proxy(redis_server.port, delay=0.01) as proxy:
        found = examine(tmp_path, {"redis_url": f"redis://127.0.0.1:{proxy.port}/0"})

    assert found["redis latency"]["status"] == "warn"


def test_redis_that_is_away_fails_and_nothing_more_is_asked(tmp_path: Path) -> None:
    found = examine(tmp_path, {"redis_url": f"redis://127.0.0.1:{free_port()}/0"})

    assert found["redis"]["status"] == "fail"
    assert [name for name in found if name.startswith("redis ")] == []


def test_each_shard_is_looked_at(redis_server: RedisServer, tmp_path: Path) -> None:
    urls = f"{redis_server.url},redis://127.0.0.1:{free_port()}/0"

    found = examine(tmp_path, {"redis_url": urls})

    assert statuses(found, "redis 1", "redis 1 role", "redis 2") == ["ok", "ok", "fail"]
    assert "redis 2 role" not in found


# processes


@pytest.fixture
def options(redis_server: RedisServer, unique: str) -> dict[str, Any]:
    return {"redis_url": redis_server.url, "redis_prefix": unique}


def test_processes_that_share_redis_are_counted(
    own_server: Callable[..., Server], options: dict[str, Any], tmp_path: Path
) -> None:
    servers = [own_server(**options) for _ in range(2)]
    for server in servers:
        server.api("info")  # a node starts with the first request

    with front_proxy(*(server.port for server in servers)) as proxy:
        found = examine(tmp_path, options, "--url", proxy.address)

    assert found["processes"]["status"] == "ok"
    assert found["processes"]["found"].startswith("2 processes")


def test_service_in_another_redis_fails(
    own_server: Callable[..., Server], options: dict[str, Any], tmp_path: Path
) -> None:
    server = own_server(**options)

    found = examine(tmp_path, {**options, "redis_prefix": "another"}, "--url", server.address)

    assert found["processes"]["status"] == "fail"
    assert "redis_prefix" in found["processes"]["advice"]


def test_service_with_redis_and_settings_without_are_told_apart(
    own_server: Callable[..., Server], options: dict[str, Any], tmp_path: Path
) -> None:
    servers = [own_server(**options) for _ in range(2)]
    for server in servers:
        server.api("info")
    wait_until(
        lambda: len(servers[0].api("info")["result"]["nodes"]) == 2, what="two nodes in the list"
    )

    found = examine(tmp_path, {}, "--url", servers[0].address)

    assert found["processes"]["status"] == "warn"
    assert "redis_url" in found["processes"]["advice"]
