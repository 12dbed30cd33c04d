"""Mistakes in options: each is reported under the id of its check, and what is right is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.config.reader import load, read
from realtime.config.redis_options import hosts
from tests.unit.config.option_rules import rules

Options = dict[str, Any]

KEPT = {"history_size": 10, "history_lifetime": 60}
RECOVERED = {**KEPT, "history_recover": True}
PERSONAL = {"user_subscribe_to_personal": True}
SINGLE = {**PERSONAL, "user_personal_single_connection": True}
IN_CHAT = {"user_personal_channel_namespace": "chat"}
SENTINELS = {"redis_master_name": "main", "redis_sentinels": "10.0.0.1:26379,10.0.0.2:26380"}
PARTITIONS = {"redis_partitions": 128}
SHOWING = {"map": "recoverable", "map_key": "client"}


def chat(**options: object) -> Options:
    """A namespace."""
    return {"namespaces": [{"name": "chat", **options}]}


def each(name: str, *values: object) -> list[Options]:
    return [{name: value} for value in values]


MISTAKES: dict[str, list[Options]] = {
    "E002": [
        *({name: True} for name in ("Presence", "precense", "namespace", "")),
        chat(api_key="x"),
    ],
    "E003": [
        *each("presence", 1, "true", None),
        *each("history_size", "10", True, 1.5),
        *each("channel_max_length", "255"),
        *each("client_channel_limit", None),
        *each("api_key", 5, b"key"),
        *each("name", ["a"]),
        *each("allowed_origins", "https://a.example", ["https://a.example", 5]),
        *each("namespaces", {}, "chat", "5", ["chat"], 5),
        *each("history_ttl", "300", "", "s", "5 s", "1d", "500ms", "\u0661s", True),
        *each("engine", 1),
        *each("redis_url", ["redis://h"]),
        *each("redis_port", True, 6379.0),
        *each("redis_host", 1),
        *each("redis_db", "0"),
        *each("redis_sentinels", [("10.0.0.1", 26379)], 1),
        *each("redis_tls", 1),
    ],
    "E004": [
        *each("history_size", -1),
        *each("history_lifetime", -1, 2**53 + 1, 10**400),
        *each("history_ttl", "-5s", 3 * "999999999999h"),
        *each("channel_max_length", -1),
        *each("client_stale_close_delay", -1),
        *each("client_queue_max_size", 2**53 + 1, 10**400),
        *each("hook_timeout", 2**53 + 1, 10**400),
        *each("client_presence_ping_interval", 0, -1),
        *each("client_presence_expire_interval", 0, -1),
        *each("redis_connect_timeout", 0),
        *each("redis_read_timeout", 0),
        *each("force_recovery_mode", "snapshot"),
        *each("publication_data_format", "binary", "JSON"),
        *each("map", "stream", "Ephemeral"),
        *(each(name, 0)[0] for name in ("map_key_ttl", "map_max_keys", "map_max_bytes")),
    ],
    "E005": [
        *(
            {"namespaces": [{"name": name}]}
            for name in (
                *("", "a", "a.b", "a b", "a:b", "chat\n", "$chat", "é-é", "a/b"),
                *(None, 5, ["ab"]),
            )
        ),
        {"namespaces": [{"presence": True}]},
    ],
    "E006": [{"namespaces": [{"name": "ab"}, {"name": "ab"}]}],
    "E007": [
        *({**RECOVERED, missing: 0} for missing in KEPT),
        *(chat(**{**RECOVERED, missing: 0}) for missing in KEPT),
        {"force_recovery": True},
        {"force_recovery": True, "history_size": 10},
        {"force_recovery": True, "history_ttl": "60s"},
    ],
    "E008": [{**PERSONAL, **IN_CHAT}],
    "E009": [SINGLE, {**SINGLE, **IN_CHAT, "presence": True, **chat()}],
    "E011": each("allowed_origins", ["http://["]),
    "E012": [
        {"client_presence_ping_interval": ping, "client_presence_expire_interval": 60}
        for ping in (60, 61)
    ],
    "E013": each("engine", "Redis", "nats", " "),
    "E056": [
        chat(presence=True, presence_maps=["nowhere"]),
        chat(presence=True, presence_maps=["chat"]),
        {"presence": True, "presence_maps": [""]},
        *(
            {"presence": True, "presence_maps": ["chat"], **chat(**{**SHOWING, **changed})}
            for changed in (
                {"map": ""},
                {"map": "persistent"},
                {"map_key": ""},
                {"map_publish": "client"},
                {"map_remove_on_unsubscribe": True},
            )
        ),
        {
            "presence": True,
            "presence_maps": ["chat"],
            "channel_namespace_boundary": "",
            **chat(**SHOWING),
        },
    ],
    "E057": [
        *({"map": "ephemeral", name: value} for name, value in KEPT.items()),
        chat(map="persistent", join_on_read=True),
        chat(map="recoverable", force_recovery_mode="cache"),
        chat(map="recoverable", map_remove_on_unsubscribe=True),
        chat(map="recoverable", map_remove_on_unsubscribe=True, map_key="user"),
    ],
    "E062": [
        *each("database_url", "redis://h", "h:5432"),
        *each("database_url", "postgresql://h/?foo=x", "postgresql://h/%zz", "postgresql://h:x"),
        *each("database_notify_url", "postgresql://h:99999", "postgresql://a:0,b:1/d"),
        *each("database_notify_url", "mysql://h"),
        *each("database_schema", "", "a b", "1a", "A", "x" * 64, "pg_x", "information_schema"),
        *each("database_history_meta_ttl", 1, 59),
        {"database": "a", "database_url": "postgresql://h"},
        {"database_poll": 0.1, "database_notify_url": "postgresql://h"},
        {"database_poll": 10.1},
        {"engine": "postgresql", "channel_max_length": 0},
        {"engine": "postgresql", "channel_max_length": 1001},
    ],
    "E014": each(
        "redis_url",
        *("http://h:6379", "REDIS://h", "h:6379", "redis:h", "redis://", "redis://:6379"),
        *("redis:///0", "redis://h:port", "redis://h:65536", "redis://[::1", "redis://h/main"),
        *("redis://h/1/2", "redis://u:1#2@h", "redis://u:1?2@h", "redis://u:1/2@h", "unix://"),
        *("redis://h,", " "),
    ),
    "E015": [
        *each("redis_host", "h:6379", "redis://h", "a,,b"),
        *(
            {"redis_host": "h", "redis_port": port}
            for port in ("x", "0", 65536, -1, "\u0661", "7,8")
        ),
        {"redis_port": "7,8"},
        {"redis_host": "a,b,c", "redis_port": "7,8"},
    ],
    "E016": [
        {"redis_sentinels": "h:26379"},
        {"redis_master_name": "main"},
        {**SENTINELS, "redis_url": "redis://h"},
        *(
            {**SENTINELS, "redis_sentinels": address}
            for address in ("h", "h:x", ":26379", "::1:26379", "redis://h:26379", "h:1,")
        ),
        {**SENTINELS, "redis_master_name": "one,,two"},
    ],
    "E017": [{"redis_history_meta_ttl": 59}, *each("history_meta_ttl", 1, 59)],
    "E018": [{"engine": "memory", "channel_layer": "default"}],
    "E020": each("proxy_rpc_endpoint", "app/rpc"),
    "E023": [
        {**PERSONAL, "channel_user_boundary": ""},
        {**PERSONAL, "allow_user_limited_channels": False},
    ],
    "E026": each("websocket_handler_prefix", "ws"),
    "E028": [{"redis_wait_replicas": 1, "redis_wait_timeout": 5}],
    "E040": [
        {"ping_interval": 8, "pong_timeout": 8},
        {"ping_interval": "5s", "pong_timeout": "6s"},
    ],
    "E041": [
        *each("channel_regex", "[", "(", "*a", "(?=a)"),
        *(chat(channel_regex=expression) for expression in ("[", "(", "*a", "(?=a)")),
    ],
    "E045": each("metrics_addresses", ["10.0.0.0/33"], ["localhost"]),
    "E048": each("client_command_rates", "often"),
    "E053": [
        {"redis_partitions": 1025},
        {**PARTITIONS, "redis_url": "redis://a,redis://b"},
        {**PARTITIONS, "redis_host": "a,b"},
        {**PARTITIONS, "redis_prefix": "a{b}"},
        {"redis_cluster_addrs": "h:1", "redis_prefix": "a{b}"},
    ],
    "E054": [
        {"redis_cluster_addrs": "h:1", "redis_url": "redis://h"},
        {"redis_cluster_addrs": "h:1", "redis_sentinels": "h:1", "redis_master_name": "m"},
        {"redis_cluster_addrs": "h:1", "redis_db": 1},
        *each(
            "redis_cluster_addrs",
            *(
                "h",
                "h:1,",
                "unix:///s",
                "redis://h:1/2",
                "h:1,redis://:p@h2:1",
                "h:1,rediss://h2:1",
            ),
            "rediss://h:1?a=b,rediss://h2:1",
        ),
    ],
}


@pytest.mark.parametrize(
    ("check", "options"),
    [(check, row) for check, rows in MISTAKES.items() for row in rows],
    ids=repr,
)
def test_mistake_has_the_id_of_its_check(check: str, options: Options) -> None:
    assert rules(options) == [check]


RIGHT: list[Options] = [
    *each("map", "", "ephemeral"),
    {"map": "recoverable", "history_size": 5, "force_recovery": True},
    {**RECOVERED, **chat(**RECOVERED)},
    {"namespaces": [{"name": "ab"}, {"name": "AB"}]},
    {"redis_streams": True, "port": "8000"},
    *each("database_url", "postgresql://", "postgresql://u:p@a:1,b:/d?sslmode=require"),
    *({name: 2**53} for name in ("history_lifetime", "client_queue_max_size", "hook_timeout")),
    *each("redis_connect_timeout", 1),
    *each("redis_read_timeout", 1),
    PERSONAL,
    IN_CHAT,
    {**PERSONAL, **IN_CHAT, **chat()},
    {**SINGLE, "presence": True},
    {**SINGLE, **IN_CHAT, **chat(presence=True)},
    {**PERSONAL, "allow_user_limited_channels": False, "allow_subscribe_for_client": False},
    {**PERSONAL, "server_side": True},
    *(
        {"client_presence_ping_interval": ping, "client_presence_expire_interval": expire}
        for ping, expire in ((25, 60), (1, 2), (59, 60))
    ),
    {"ping_interval": 25, "pong_timeout": 8},
    {"ping_interval": 2, "pong_timeout": 1.9},
    {**PARTITIONS, "redis_partitions": 0, "redis_url": "redis://a,redis://b"},
    *each("redis_history_meta_ttl", 0, 60),
    *each("history_meta_ttl", 0, 60),
    {"redis_history_meta_ttl": 60, "history_size": 10, "history_lifetime": 300},
    *each(
        "redis_url",
        *("redis://h:6379/15", "redis://h/", "rediss://u:p%2C%23@[::1]:7/0?ssl_ca_certs=/ca.pem"),
        *("unix:///run/redis.sock?db=1", "unix://:p@/run/redis.sock"),
    ),
    *each(
        "redis_cluster_addrs",
        *("10.0.0.1:6379", "a:1,b:2, [::1]:3", "redis://:p@h:6379", "a:1,redis://b:2"),
        *(["a:1", "b:2", " [::1]:3"], ["a:1", "redis://b:2"]),
        "rediss://u:p@h:6379/0?ssl_ca_certs=/ca.pem,h2:6379",
        "rediss://u:p@h:6379/0?ssl_ca_certs=/ca.pem,rediss://u:p@h2:6379?ssl_ca_certs=/ca.pem",
    ),
]


@pytest.mark.parametrize("options", RIGHT, ids=repr)
def test_options_that_fit_together_are_no_mistake(options: Options) -> None:
    assert rules(options) == []


def test_wrong_url_among_several_is_told_by_its_number() -> None:
    _, (problem,) = read({"redis_url": "redis://a,http://b,redis://c"})
    assert problem.message.startswith("URL 2 of redis_url ")


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


SECRET = "do-not-show-me"


SECRETS = """
redis_url redis_password redis_sentinel_password token_hmac_secret_key secret api_key admin_password
admin_secret
""".split()  # noqa: SIM905 - read as words


@pytest.mark.parametrize("option", SECRETS)
def test_secret_does_not_show(option: str) -> None:
    value = f"redis://:{SECRET}@h" if option == "redis_url" else SECRET
    assert SECRET not in repr(load({option: value}))
    _, problems = read({option: [SECRET]})
    assert problems
    assert SECRET not in str(problems)


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
