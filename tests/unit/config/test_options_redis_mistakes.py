"""Options of the Redis engine: mistakes are found, and told without passwords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.config.reader import load, read
from realtime.config.redis_options import hosts
from tests.unit.config.option_rules import rules

SENTINELS = {"redis_master_name": "main", "redis_sentinels": "10.0.0.1:26379,10.0.0.2:26380"}


@pytest.mark.parametrize("engine", ["Redis", "nats", " "])
def test_engine_that_does_not_exist_is_a_mistake(engine: str) -> None:
    assert rules(engine=engine) == ["E013"]


def test_layer_with_the_memory_engine_is_a_mistake() -> None:
    assert rules(engine="memory", channel_layer="default") == ["E018"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine", 1),
        ("redis_url", ["redis://h"]),
        ("redis_port", True),
        ("redis_port", 6379.0),
        ("redis_host", 1),
        ("redis_db", "0"),
        ("redis_sentinels", [("10.0.0.1", 26379)]),
        ("redis_sentinels", 1),
        ("redis_tls", 1),
    ],
)
def test_value_of_the_wrong_type_is_a_mistake(name: str, value: object) -> None:
    assert rules({name: value}) == ["E003"]


@pytest.mark.parametrize("name", ["redis_connect_timeout", "redis_read_timeout"])
def test_timeout_of_no_time_is_a_mistake(name: str) -> None:
    assert rules({name: 0}) == ["E004"]
    assert rules({name: 1}) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"redis_partitions": 1025}, id="too many"),
        pytest.param({"redis_partitions": 128, "redis_url": "redis://a,redis://b"}, id="shards"),
        pytest.param({"redis_partitions": 128, "redis_host": "a,b"}, id="hosts"),
        pytest.param({"redis_partitions": 128, "redis_prefix": "a{b}"}, id="tag in the prefix"),
    ],
)
def test_partitions_that_cannot_work_are_a_mistake(options: dict[str, object]) -> None:
    assert rules(options) == ["E053"]
    assert rules(options | {"redis_partitions": 0}) == []


@pytest.mark.parametrize(
    "addresses",
    [
        "10.0.0.1:6379",
        "a:1,b:2, [::1]:3",
        "redis://:p@h:6379",
        "rediss://u:p@h:6379/0?ssl_ca_certs=/ca.pem,h2:6379",
        "rediss://u:p@h:6379/0?ssl_ca_certs=/ca.pem,rediss://u:p@h2:6379?ssl_ca_certs=/ca.pem",
        "a:1,redis://b:2",
    ],
)
def test_addresses_of_a_cluster_are_no_mistake(addresses: str) -> None:
    assert rules(redis_cluster_addrs=addresses) == []
    assert rules(redis_cluster_addrs=addresses.split(",")) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="another Redis"),
        pytest.param({"redis_url": "", "redis_sentinels": "h:1", "redis_master_name": "m"}, id="s"),
        pytest.param({"redis_url": "", "redis_cluster_addrs": "h"}, id="no port"),
        pytest.param({"redis_url": "", "redis_cluster_addrs": "h:1,"}, id="no address"),
        pytest.param({"redis_url": "", "redis_cluster_addrs": "unix:///s"}, id="socket"),
        pytest.param({"redis_url": "", "redis_cluster_addrs": "redis://h:1/2"}, id="database"),
        pytest.param({"redis_url": "", "redis_db": 1}, id="number of a database"),
        pytest.param(
            {"redis_url": "", "redis_cluster_addrs": "h:1,redis://:p@h2:1"}, id="password"
        ),
        pytest.param({"redis_url": "", "redis_cluster_addrs": "h:1,rediss://h2:1"}, id="TLS"),
        pytest.param(
            {"redis_url": "", "redis_cluster_addrs": "rediss://h:1?a=b,rediss://h2:1"}, id="options"
        ),
    ],
)
def test_cluster_that_cannot_work_is_a_mistake(options: dict[str, object]) -> None:
    named = {"redis_cluster_addrs": "h:1", "redis_url": "redis://h"}
    assert rules(named | options) == ["E054"]


def test_tag_in_the_prefix_of_a_cluster_is_a_mistake() -> None:
    assert rules(redis_cluster_addrs="h:1", redis_prefix="a{b}") == ["E053"]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("redis://h:6379/15", id="host, port, database"),
        pytest.param("redis://h/", id="no database"),
        pytest.param("rediss://u:p%2C%23@[::1]:7/0?ssl_ca_certs=/ca.pem", id="TLS, IPv6, options"),
        pytest.param("unix:///run/redis.sock?db=1", id="socket"),
        pytest.param("unix://:p@/run/redis.sock", id="socket with password"),
    ],
)
def test_url_that_redis_has_is_no_mistake(url: str) -> None:
    assert rules(redis_url=url) == []


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://h:6379", id="other scheme"),
        pytest.param("REDIS://h", id="scheme in capitals"),
        pytest.param("h:6379", id="no scheme"),
        pytest.param("redis:h", id="no slashes"),
        pytest.param("redis://", id="nothing"),
        pytest.param("redis://:6379", id="no host"),
        pytest.param("redis:///0", id="database only"),
        pytest.param("redis://h:port", id="port of letters"),
        pytest.param("redis://h:65536", id="port too large"),
        pytest.param("redis://[::1", id="open bracket"),
        pytest.param("redis://h/main", id="database of letters"),
        pytest.param("redis://h/1/2", id="two databases"),
        pytest.param("redis://u:1#2@h", id="number sign in the password"),
        pytest.param("redis://u:1?2@h", id="question mark in the password"),
        pytest.param("redis://u:1/2@h", id="slash in the password"),
        pytest.param("unix://", id="no socket"),
        pytest.param("redis://h,", id="comma at the end"),
        pytest.param(" ", id="blank"),
    ],
)
def test_url_that_redis_cannot_have_is_a_mistake(url: str) -> None:
    assert rules(redis_url=url) == ["E014"]


def test_wrong_url_among_several_is_told_by_its_number() -> None:
    _, (problem,) = read({"redis_url": "redis://a,http://b,redis://c"})
    assert problem.message.startswith("URL 2 of redis_url ")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"redis_host": "h:6379"}, id="port with the host"),
        pytest.param({"redis_host": "redis://h"}, id="URL as host"),
        pytest.param({"redis_host": "a,,b"}, id="empty host"),
        pytest.param({"redis_host": "h", "redis_port": "x"}, id="port of letters"),
        pytest.param({"redis_host": "h", "redis_port": "0"}, id="port 0"),
        pytest.param({"redis_host": "h", "redis_port": 65536}, id="port too large"),
        pytest.param({"redis_host": "h", "redis_port": -1}, id="negative port"),
        pytest.param({"redis_host": "h", "redis_port": "\u0661"}, id="port in other digits"),
        pytest.param({"redis_host": "h", "redis_port": "7,8"}, id="more ports than hosts"),
        pytest.param({"redis_port": "7,8"}, id="several ports without host"),
        pytest.param({"redis_host": "a,b,c", "redis_port": "7,8"}, id="too few ports"),
    ],
)
def test_hosts_and_ports_that_do_not_fit_are_a_mistake(options: dict[str, object]) -> None:
    assert rules(options) == ["E015"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"redis_sentinels": "h:26379"}, id="no master"),
        pytest.param({"redis_master_name": "main"}, id="no Sentinel"),
        pytest.param({**SENTINELS, "redis_url": "redis://h"}, id="URL as well"),
        pytest.param({**SENTINELS, "redis_sentinels": "h"}, id="no port"),
        pytest.param({**SENTINELS, "redis_sentinels": "h:x"}, id="port of letters"),
        pytest.param({**SENTINELS, "redis_sentinels": ":26379"}, id="no host"),
        pytest.param({**SENTINELS, "redis_sentinels": "::1:26379"}, id="IPv6 without brackets"),
        pytest.param({**SENTINELS, "redis_sentinels": "redis://h:26379"}, id="URL as address"),
        pytest.param({**SENTINELS, "redis_sentinels": "h:1,"}, id="comma at the end"),
        pytest.param({**SENTINELS, "redis_master_name": "one,,two"}, id="empty name"),
    ],
)
def test_sentinels_that_cannot_be_asked_are_a_mistake(options: dict[str, object]) -> None:
    assert rules(options) == ["E016"]


HISTORY = {"history_size": 10, "history_lifetime": 300}


@pytest.mark.parametrize(
    ("ttl", "options", "expected"),
    [
        pytest.param(0, {}, [], id="for ever"),
        pytest.param(59, {}, ["E017"], id="less than a minute"),
        pytest.param(60, {}, [], id="a minute"),
        pytest.param(60, HISTORY, [], id="shorter than history"),
    ],
)
def test_positions_are_remembered_for_a_minute_at_least(
    ttl: int, options: dict[str, object], expected: list[str]
) -> None:
    assert rules({"redis_history_meta_ttl": ttl, **options}) == expected


# secrets

SECRET = "do-not-show-me"


@pytest.mark.parametrize(
    "options",
    [
        {"redis_url": f"redis://:{SECRET}@h"},
        {"redis_password": SECRET},
        {"redis_sentinel_password": SECRET},
    ],
    ids=lambda options: next(iter(options)),
)
def test_secret_does_not_show_in_the_configuration(options: dict[str, object]) -> None:
    assert SECRET not in repr(load(options))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("redis_url", f"http://:{SECRET}@h"),
        ("redis_url", f"redis://:{SECRET}"),
        ("redis_url", f"redis://:{SECRET}@h:port"),
        ("redis_url", f"redis://:{SECRET},{SECRET}@h"),
        ("redis_url", f"redis://:#{SECRET}@h"),
        ("redis_url", f"redis://:/{SECRET}@h"),
        ("redis_host", f"redis://:{SECRET}@h"),
        ("redis_port", f"{SECRET}"),
        ("redis_sentinels", f":{SECRET}@h:26379"),
    ],
)
def test_password_in_a_mistaken_value_is_not_shown(name: str, text: str) -> None:
    _, problems = read({name: text})
    assert problems
    assert SECRET not in str(problems)


@given(st.text(max_size=30))
def test_any_text_as_url_is_a_mistake_or_gives_shards(text: str) -> None:
    config, problems = read({"engine": "redis", "redis_url": text})
    assert problems or hosts(config)
    assert all(problem.id == "E014" for problem in problems)


@given(
    st.text(alphabet="ah1:.,[]@/ -", max_size=12), st.text(alphabet="0123456789, x", max_size=12)
)
def test_any_text_as_hosts_and_ports_is_a_mistake_or_gives_shards(host: str, port: str) -> None:
    config, problems = read({"engine": "redis", "redis_host": host, "redis_port": port})
    assert problems or hosts(config)
    assert all(problem.id == "E015" for problem in problems)
