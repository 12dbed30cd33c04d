"""Options of the Redis engine: which engine they choose and which shards they name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from channels_redis.utils import create_pool

from realtime.config.options import CONFIG_FIELDS
from realtime.config.reader import load
from realtime.config.redis_options import hosts, uses_redis

DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(
        """
        engine redis_url redis_host redis_port redis_password redis_master_name redis_sentinels
        redis_sentinel_password redis_prefix redis_cluster_addrs channel_layer
        """.split(),  # noqa: SIM905 - read as words
        "",
    ),
    "redis_db": 0,
    "redis_tls": False,
    "redis_tls_skip_verify": False,
    "redis_partitions": 0,
    "redis_history_meta_ttl": 30 * 24 * 3600,
    "redis_wait_replicas": 0,
    "redis_wait_timeout": 0.5,
    "redis_connect_timeout": 1,
    "redis_read_timeout": 5,
    "redis_epoch_per_run": False,
}

SENTINELS = {"redis_master_name": "main", "redis_sentinels": "10.0.0.1:26379,10.0.0.2:26380"}
ADDRESSES = [("10.0.0.1", 26379), ("10.0.0.2", 26380)]


def shards(**options: object) -> list[dict[str, object]]:
    return hosts(load(options))


def test_addresses_of_a_cluster_have_the_credentials_of_all() -> None:
    found = shards(redis_cluster_addrs="a:1,redis://b:2", redis_password="p", redis_tls=True)
    assert found == [
        {"address": "rediss://a:1", "password": "p"},
        {"address": "rediss://b:2", "password": "p"},
    ]


@pytest.mark.parametrize("name", DEFAULTS)
def test_option_has_its_documented_default(name: str) -> None:
    assert getattr(load({}), name) == DEFAULTS[name]


def test_every_option_of_redis_is_listed_here() -> None:
    assert {name for name in CONFIG_FIELDS if name.startswith("redis_")} <= set(DEFAULTS)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"engine": "memory"}, False, id="memory"),
        pytest.param({"engine": "redis"}, True, id="redis"),
        pytest.param({"redis_url": "redis://h"}, True, id="URL"),
        pytest.param({"redis_host": "h"}, True, id="host"),
        pytest.param(SENTINELS, True, id="Sentinels"),
        pytest.param({"channel_layer": "default"}, True, id="layer"),
        pytest.param({"engine": "memory", "redis_url": "redis://h"}, False, id="memory anyway"),
        ({"redis_port": "6380", "redis_password": "p", "redis_prefix": "p"}, False),
    ],
)
def test_engine_is_the_one_chosen_or_redis_if_one_is_named(
    options: dict[str, object], expected: bool
) -> None:
    assert uses_redis(load(options)) is expected


# which shards


@pytest.mark.parametrize("options", [{"engine": "redis"}, {"channel_layer": "default"}])
def test_redis_that_is_not_named_is_the_local_one(options: dict[str, object]) -> None:
    assert shards(**options) == [{"host": "127.0.0.1", "port": 6379, "db": 0}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"redis_url": "redis://u:p@h:1/2"}, [{"address": "redis://u:p@h:1/2"}]),
        pytest.param(
            {"redis_url": "redis://a, rediss://b,unix:///run/redis"},
            [{"address": "redis://a"}, {"address": "rediss://b"}, {"address": "unix:///run/redis"}],
            id="several",
        ),
        pytest.param(
            {"redis_url": "redis://a", "redis_host": "b", "redis_port": "7"},
            [{"address": "redis://a"}],
            id="wins over host and port",
        ),
        pytest.param(
            {"redis_url": "redis://a", "redis_password": "p", "redis_db": 3},
            [{"address": "redis://a", "password": "p", "db": 3}],
            id="password and database beside it",
        ),
        pytest.param(
            {"redis_url": "redis://a,unix:///s", "redis_tls": True},
            [{"address": "rediss://a"}, {"address": "unix:///s"}],
            id="TLS turned on",
        ),
        pytest.param(
            {"redis_url": "redis://a,rediss://b", "redis_tls_skip_verify": True},
            [
                {"address": "redis://a"},
                {"address": "rediss://b", "ssl_cert_reqs": "none", "ssl_check_hostname": False},
            ],
            id="certificates of those with TLS",
        ),
    ],
)
def test_urls_are_shards(options: dict[str, object], expected: list[object]) -> None:
    assert shards(**options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"redis_host": "a"}, [("a", 6379)], id="port by default"),
        pytest.param({"redis_host": "a", "redis_port": "7"}, [("a", 7)], id="port"),
        pytest.param({"redis_host": "a", "redis_port": 7}, [("a", 7)], id="integer"),
        ({"redis_host": "a,b", "redis_port": "7"}, [("a", 7), ("b", 7)]),
        ({"redis_host": "a, b", "redis_port": "7, 8"}, [("a", 7), ("b", 8)]),
        pytest.param({"redis_host": "::1"}, [("::1", 6379)], id="IPv6"),
        pytest.param({"engine": "redis", "redis_port": "7"}, [("127.0.0.1", 7)], id="port only"),
    ],
)
def test_hosts_are_shards(options: dict[str, object], expected: list[tuple[str, int]]) -> None:
    assert shards(**options) == [{"host": host, "port": port, "db": 0} for host, port in expected]


def test_host_has_password_database_and_tls() -> None:
    assert shards(
        redis_host="a", redis_password="p", redis_db=3, redis_tls=True, redis_tls_skip_verify=True
    ) == [
        {
            "host": "a",
            "port": 6379,
            "db": 3,
            "password": "p",
            "ssl": True,
            "ssl_cert_reqs": "none",
            "ssl_check_hostname": False,
        }
    ]


def test_certificates_are_verified_unless_told_otherwise() -> None:
    assert shards(redis_host="a", redis_tls=True) == [
        {"host": "a", "port": 6379, "db": 0, "ssl": True}
    ]


def test_skipped_verification_without_tls_has_no_effect() -> None:
    assert shards(redis_host="a", redis_tls_skip_verify=True) == [
        {"host": "a", "port": 6379, "db": 0}
    ]


def test_master_names_are_shards_with_the_same_sentinels() -> None:
    options = {**SENTINELS, "redis_master_name": "one, two"}
    assert shards(**options) == [
        {"sentinels": ADDRESSES, "master_name": "one", "db": 0},
        {"sentinels": ADDRESSES, "master_name": "two", "db": 0},
    ]


def test_sentinels_have_a_password_of_their_own() -> None:
    options = {**SENTINELS, "redis_password": "p", "redis_sentinel_password": "s", "redis_db": 3}

    assert shards(**options) == [
        {
            "sentinels": ADDRESSES,
            "master_name": "main",
            "db": 3,
            "password": "p",
            "sentinel_kwargs": {"password": "s"},
        }
    ]


@pytest.mark.parametrize("make", [list, tuple])
def test_sentinels_may_be_a_list(make: type) -> None:
    options = {**SENTINELS, "redis_sentinels": make(["10.0.0.1:26379", "10.0.0.2:26380"])}
    assert shards(**options)[0]["sentinels"] == ADDRESSES


def test_sentinel_may_have_an_ipv6_address() -> None:
    options = {**SENTINELS, "redis_sentinels": "[::1]:26379"}
    assert shards(**options)[0]["sentinels"] == [("::1", 26379)]


@pytest.mark.parametrize(
    ("options", "scheme", "connects_to"),
    [
        pytest.param({"redis_url": "redis://:p@h:7/2"}, "redis", ("h", 7, 2), id="URL"),
        ({"redis_url": "redis://h:7", "redis_db": 2}, "redis", ("h", 7, 2)),
        ({"redis_url": "redis://h:7/2", "redis_db": 9}, "redis", ("h", 7, 2)),
        pytest.param(
            {"redis_url": "redis://h:7/2", "redis_tls": True, "redis_tls_skip_verify": True},
            "rediss",
            ("h", 7, 2),
            id="URL with TLS",
        ),
        ({"redis_host": "h", "redis_port": 7, "redis_db": 2}, "redis", ("h", 7, 2)),
    ],
)
def test_shard_is_one_that_channels_redis_connects_to(
    options: dict[str, object], scheme: str, connects_to: tuple[str, int, int]
) -> None:
    (shard,) = shards(**options)
    connection = create_pool(shard).make_connection()
    assert (connection.host, connection.port, connection.db) == connects_to
    assert type(connection).__name__ == {"redis": "Connection", "rediss": "SSLConnection"}[scheme]


def test_sentinels_are_those_that_channels_redis_asks() -> None:
    (shard,) = shards(**SENTINELS, redis_sentinel_password="s", redis_tls=True)
    pool = create_pool(shard)
    assert pool.service_name == "main"
    asked = [client.connection_pool.connection_kwargs for client in pool.sentinel_manager.sentinels]
    assert [(of["host"], of["port"]) for of in asked] == ADDRESSES
    assert {of["password"] for of in asked} == {"s"}
