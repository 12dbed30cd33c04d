"""The doctor at Redis, and at processes that share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.live.tools.command import Findings, examine, examine_alone, front_proxy, statuses
from tests.ports import refusing_port
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.server import Server, wait_until

pytestmark = pytest.mark.django_db  # the doctor counts pending rows

KEPT: dict[str, Any] = {"history_size": 5, "history_lifetime": 60}

OwnRedis = Callable[..., RedisServer]


def test_healthy_redis_passes(own_redis: OwnRedis, tmp_path: Path) -> None:
    redis = own_redis(persistent=True)

    found = examine_alone(tmp_path, {**KEPT, "redis_url": redis.url})

    checks = [name for name in found if name.startswith("redis")]
    assert checks == [
        "redis",
        "redis layout",
        "redis role",
        "redis latency",
        "redis eviction",
        "redis persistence",
        "redis subscribers",
        "redis clock",
    ]
    assert set(statuses(found, *checks)) == {"ok"}


@pytest.mark.parametrize(
    ("options", "status"),
    [(KEPT, "warn"), ({**KEPT, "redis_epoch_per_run": True}, "ok"), ({}, "skip")],
    ids=["history", "new epoch", "no history"],
)
def test_redis_without_a_disk_is_weighed_by_what_is_kept(
    redis_server: RedisServer, options: dict[str, Any], status: str
) -> None:
    found = examine({**options, "redis_url": redis_server.url})
    assert found["redis persistence"]["status"] == status


def test_redis_that_is_away_fails_and_nothing_more_is_asked() -> None:
    found = examine({"redis_url": f"redis://127.0.0.1:{refusing_port()}/0"})
    assert found["redis"]["status"] == "fail"
    assert [name for name in found if name.startswith("redis ")] == []


# many of them, which are the shards of one service


def evicting(policy: str, limit: str) -> dict[str, Any]:
    return {"arguments": ("--maxmemory", limit, "--maxmemory-policy", policy)}


def buffering(limit: str) -> dict[str, Any]:
    return {"arguments": ("--client-output-buffer-limit", "pubsub", *limit.split())}


SERVERS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "password": {"password": "hidden"},
    "noeviction": evicting("noeviction", "100mb"),
    "lru without limit": evicting("allkeys-lru", "0"),
    "lru": evicting("allkeys-lru", "100mb"),
    "ttl": evicting("volatile-ttl", "100mb"),
    "default buffer": buffering("33554432 8388608 60"),
    "no limit of buffers": buffering("0 0 0"),
    "small buffer": buffering("1048576 1048576 60"),
    "hides its settings": {"arguments": ("--rename-command", "CONFIG", "")},
    "replica": {"arguments": ("--replicaof", "127.0.0.1", "1")},
    "cluster": {"arguments": ("--cluster-enabled", "yes")},
}
"""What kind of Redis → how it is started."""


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Findings]:
    """What kind of Redis → what one run of the doctor finds there; "" is the Redis itself."""
    servers: dict[str, RedisServer] = {}
    try:
        for kind, arguments in SERVERS.items():
            servers[kind] = RedisServer(tmp_path_factory.mktemp("redis"), **arguments).start()
        with front_proxy(servers["plain"].port, delay=0.01) as proxy:
            urls = {kind: server.url for kind, server in servers.items()}
            urls["far away"] = f"redis://127.0.0.1:{proxy.port}/0"
            urls["away"] = f"redis://127.0.0.1:{refusing_port()}/0"
            found = examine_alone(
                tmp_path_factory.mktemp("site"), {"redis_url": ",".join(urls.values())}
            )
    finally:
        for server in servers.values():
            server.kill()
    return {
        kind: {
            name.removeprefix(f"redis {number}").strip(): finding
            for name, finding in found.items()
            if name == f"redis {number}" or name.startswith(f"redis {number} ")
        }
        for number, kind in enumerate(urls, 1)
    }


def test_password_of_redis_is_not_printed(shards: Mapping[str, Findings]) -> None:
    assert shards["password"][""]["status"] == "ok"
    assert "hidden" not in str(shards)


JUDGED = [
    ("plain", "", "ok", ""),
    ("plain", "role", "ok", ""),
    ("noeviction", "eviction", "ok", ""),
    ("lru without limit", "eviction", "ok", ""),
    ("lru", "eviction", "warn", ""),
    ("ttl", "eviction", "warn", ""),
    ("default buffer", "subscribers", "ok", ""),
    ("no limit of buffers", "subscribers", "ok", ""),
    ("small buffer", "subscribers", "warn", ""),
    ("hides its settings", "", "ok", ""),  # as hosted ones do
    ("hides its settings", "eviction", "ok", ""),
    ("hides its settings", "subscribers", "skip", ""),
    ("replica", "role", "fail", "redis_sentinels"),
    ("cluster", "layout", "fail", "Cluster"),
    ("far away", "latency", "warn", ""),
    ("away", "", "fail", ""),
]
"""Kind of Redis, check, its status, and a word of what is said."""


@pytest.mark.parametrize(("kind", "check", "status", "word"), JUDGED)
def test_each_redis_is_judged_by_itself(
    shards: Mapping[str, Findings], kind: str, check: str, status: str, word: str
) -> None:
    found = shards[kind][check]
    assert found["status"] == status
    assert word in found["found"] + found["advice"]
    assert kind != "away" or list(shards[kind]) == [""]


def test_cluster_with_partitions_passes(lone_cluster: RedisServer) -> None:
    found = examine({"redis_url": lone_cluster.url, "redis_partitions": 128})
    assert statuses(found, "redis", "redis layout", "redis role") == ["ok"] * 3
    assert "128 partitions" in found["redis layout"]["found"]


def test_nodes_with_another_layout_are_noticed(
    redis_server: RedisServer, servers: list[Server], options: dict[str, Any]
) -> None:
    found = examine({**options, "redis_partitions": 128})
    assert found["redis layout"]["status"] == "fail"
    assert "without hash tags" in found["redis layout"]["found"]


# a cluster


@pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")
def test_every_server_of_a_cluster_is_looked_at(redis_cluster: RedisCluster) -> None:
    for server in redis_cluster.servers:
        server.reset_command_calls()

    found = examine(
        {
            "redis_cluster_addrs": redis_cluster.addresses,
            "redis_password": redis_cluster.servers[0].password,
        }
    )

    for number in (1, 2, 3):
        name = f"redis {number}"
        assert statuses(found, name, f"{name} layout", f"{name} role") == ["ok"] * 3
    asked = [server.command_calls().get("time", 0) for server in redis_cluster.servers]
    assert asked == [1, 1, 1], "the clock of each"


@pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")
def test_server_of_a_cluster_that_is_away_fails_and_the_others_are_looked_at(
    tmp_path: Path,
) -> None:
    cluster = RedisCluster(tmp_path).start()
    try:
        first = cluster.owner(0)
        first.kill()
        found = examine({"redis_cluster_addrs": cluster.addresses})
    finally:
        cluster.kill()

    names = [name for name in ("redis 1", "redis 2", "redis 3") if found[name]["status"] == "fail"]
    assert len(names) == 1
    assert str(first.port) in found[names[0]]["found"]


# processes


@pytest.fixture
def options(redis_server: RedisServer) -> dict[str, Any]:
    return {"redis_url": redis_server.url, "redis_prefix": "doctor"}


@pytest.fixture
def servers(shared_cluster: Callable[..., list[Server]]) -> list[Server]:
    """Two processes with these options, which know each other."""
    servers = shared_cluster(redis_prefix="doctor")
    for server in servers:
        server.api("info")  # a node starts with the first request
    wait_until(
        lambda: all(len(server.api("info")["result"]["nodes"]) == 2 for server in servers),
        what="two nodes in the lists",
    )
    return servers


def test_processes_that_share_redis_are_counted(
    servers: list[Server], options: dict[str, Any]
) -> None:
    with front_proxy(*(server.port for server in servers)) as proxy:
        found = examine(options, "--url", proxy.address)
    assert found["processes"]["status"] == "ok"
    assert found["processes"]["found"].startswith("2 processes")


def test_service_in_another_redis_fails(servers: list[Server], options: dict[str, Any]) -> None:
    found = examine({**options, "redis_prefix": "another"}, "--url", servers[0].address)
    assert found["processes"]["status"] == "fail"
    assert "redis_prefix" in found["processes"]["advice"]


def test_service_with_redis_and_settings_without_are_told_apart(servers: list[Server]) -> None:
    found = examine({}, "--url", servers[0].address)
    assert found["processes"]["status"] == "warn"
    assert "redis_url" in found["processes"]["advice"]
