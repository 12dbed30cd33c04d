"""Options that have no effect without another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import override_settings

from realtime.checks import effects
from realtime.config import sources
from realtime.config.merging import Merged
from realtime.config.names import NEWER_NAMES
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.config.reader import read
from tests.unit.checks.system_checks import found, ids

URL = "http://127.0.0.1/ask"
HISTORY = {"history_size": 10, "history_lifetime": 60}
REDIS = {"redis_url": "redis://h"}
LISTED = {"namespaces": [{"name": "chat"}]}

WITHOUT_EFFECT: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        {
            "database": "other",
            "database_url": "postgresql://h/d",
            "database_notify_url": "postgresql://h/d",
            "database_poll": 0.1,
            "database_schema": "other",
            "database_history_meta_ttl": 100,
        },
        {},
        {"engine": "postgresql"},
    ),
    (
        dict.fromkeys(
            """
            join_on_read
            allow_recovery allow_positioning force_positioning allow_history_for_client
            allow_history_for_subscriber history_disable_for_client
            """.split(),  # noqa: SIM905 - read as words
            True,
        )
        | {"force_recovery_mode": "cache", "history_meta_ttl": 600},
        {},
        HISTORY,
    ),
    ({"allow_history_for_anonymous": True}, {}, HISTORY),
    (
        {"allow_history_for_anonymous": True},
        HISTORY | {"allow_history_for_subscriber": False},
        {"allow_history_for_subscriber": True},
    ),
    (
        dict.fromkeys(
            """
            allow_presence_for_client allow_presence_for_subscriber allow_presence_for_anonymous
            presence_disable_for_client
            """.split(),  # noqa: SIM905 - read as words
            True,
        ),
        {},
        {"presence": True},
    ),
    ({"presence_maps": ["chat"]}, {}, {"presence": True}),
    (
        {"allow_presence_for_anonymous": True},
        {"presence": True, "allow_presence_for_client": False},
        {"allow_presence_for_client": True},
    ),
    ({"subscribe_to_publish": True}, {}, {"publish": True}),
    ({"allow_publish_for_anonymous": True}, {}, {"allow_publish_for_subscriber": True}),
    ({"allow_publish_for_anonymous": True}, {}, {"publish": True}),
    ({"force_push_join_leave": True}, {}, {"join_leave": True}),
    (
        {
            "map_key_ttl": 5,
            "map_max_keys": 5,
            "map_max_bytes": 5,
            "map_publish": "client",
            "map_key": "user",
            "map_remove_on_unsubscribe": True,
        },
        {},
        {"map": "recoverable", "map_key": "client"},
    ),
    ({"map_key_ttl": 5}, {"map": "persistent"}, {"map": "recoverable"}),
    (
        dict.fromkeys(
            ("publish", "allow_publish_for_client", "allow_publish_for_subscriber"), True
        ),
        {"map": "recoverable"},
        {"map": ""},
    ),
    ({"allow_publish_for_anonymous": True}, {"map": "recoverable"}, {"map_publish": "client"}),
    ({"auto_cache_recover": True}, HISTORY, {"force_recovery_mode": "cache"}),
    (
        dict.fromkeys(
            """
            proxy_subscribe anonymous allow_subscribe_for_anonymous allow_user_limited_channels
            """.split(),  # noqa: SIM905 - read as words
            True,
        ),
        {"server_side": True},
        {"server_side": False},
    ),
    (
        {"channel_user_separator": ";"},
        {"channel_user_boundary": ""},
        {"channel_user_boundary": "!"},
    ),
    ({"user_personal_channel_namespace": "chat"}, LISTED, {"user_subscribe_to_personal": True}),
    (
        {"user_personal_single_connection": True},
        {"presence": True},
        {"user_subscribe_to_personal": True},
    ),
    (
        {
            "token_audience": "a",
            "token_audience_regex": "a",
            "token_issuer": "a",
            "token_issuer_regex": "a",
            "token_user_id_claim": "a",
            "disallow_anonymous_connection_tokens": True,
            "token_lifetime": 60,
        },
        {},
        {"token_hmac_secret_key": "k" * 32},
    ),
    (
        {
            f"subscription_token_{name}": "a"
            for name in ("audience", "audience_regex", "issuer", "issuer_regex", "user_id_claim")
        },
        {"token_hmac_secret_key": "k" * 32},
        {"subscription_token_hmac_secret_key": "k" * 32},
    ),
    (
        {"separate_subscription_token_config": True},
        {"token_hmac_secret_key": "k" * 32},
        {"subscription_token_jwks_public_endpoint": URL},
    ),
    *(
        (
            {f"{prefix}_hmac_previous_secret_key_valid_until": 1_900_000_000},
            {f"{prefix}_hmac_secret_key": "k" * 32},
            {f"{prefix}_hmac_previous_secret_key": "p" * 32},
        )
        for prefix in ("token", "subscription_token")
    ),
    *(
        (
            {
                f"{prefix}_{name}": "k" * 32
                for name in (
                    *("hmac_secret_key", "hmac_previous_secret_key"),
                    *("rsa_public_key", "ecdsa_public_key"),
                )
            },
            {f"{prefix}_jwks_public_endpoint": URL},
            {f"{prefix}_jwks_public_endpoint": ""},
        )
        for prefix in ("token", "subscription_token")
    ),
    (
        {"api_error_mode": "transport", "api_insecure": True},
        {"api_disable": True},
        {"api_disable": False},
    ),
    (
        {"admin_password": "p", "admin_insecure": True, "admin_name": "a", "admin_accent": "teal"},
        {},
        {"admin": True},
    ),
    ({"admin_insecure_in_production": True}, {}, {"admin": True, "admin_insecure": True}),
    ({"admin_insecure_in_production": True}, {"admin": True}, {"admin_insecure": True}),
    ({"memory_history_meta_ttl": 5}, REDIS, {"redis_url": ""}),
    (
        {
            "redis_password": "p",
            "redis_db": 1,
            "redis_tls": True,
            "redis_prefix": "p",
            "redis_partitions": 8,
            "redis_history_meta_ttl": 100,
            "redis_connect_timeout": 2,
            "redis_read_timeout": 6,
            "redis_epoch_per_run": True,
            "redis_wait_replicas": 1,
        },
        {},
        REDIS,
    ),
    ({"redis_wait_timeout": 0.1}, REDIS, {"redis_wait_replicas": 1}),
    ({"redis_wait_timeout": 0.1}, {}, REDIS | {"redis_wait_replicas": 1}),
    ({"redis_tls_skip_verify": True}, REDIS, {"redis_tls": True}),
    ({"redis_tls_skip_verify": True}, REDIS, {"redis_url": "rediss://h"}),
    ({"redis_port": "7"}, {}, {"redis_host": "h"}),
    ({"redis_host": "h", "redis_port": "7"}, REDIS, {"redis_url": "", "redis_host": "h"}),
    (
        {"redis_sentinel_password": "p"},
        {"redis_host": "h"},
        {"redis_host": "", "redis_sentinels": "h:1", "redis_master_name": "m"},
    ),
    (
        {"websocket_handler_prefix": "/ws"},
        {"websocket_disable": True},
        {"websocket_disable": False},
    ),
    (
        {"websocket_message_size_limit": 9},
        {"websocket_disable": True, "sockjs_disable": True},
        {"uni_websocket": True},
    ),
    ({"uni_error_mode": "transport"}, {}, {"uni_sse": True}),
    ({"uni_error_mode": "transport"}, {}, {"uni_http_stream": True}),
    (
        {"sockjs_handler_prefix": "/s", "sockjs_iframe": True, "sockjs_heartbeat_delay": 5},
        {"sockjs_disable": True, "allowed_origins": ["https://example.org"]},
        {"sockjs_disable": False},
    ),
    (
        {"sockjs_url": "/s.js", "sockjs_integrity": "sha384-a"},
        {"allowed_origins": ["https://example.org"]},
        {"sockjs_iframe": True},
    ),
    ({"health_handler_prefix": "/h"}, {}, {"health": True}),
    ({"metrics_handler_prefix": "/m"}, {}, {"metrics_key": "k" * 16}),
    *(
        (
            {
                f"proxy_{kind}_timeout": 3.0,
                f"proxy_{kind}_http_headers": ["a"],
                f"proxy_{kind}_emulated_headers": ["a"],
            }
            | ({f"proxy_{kind}_include_connection_meta": True} if kind != "connect" else {}),
            {},
            {f"proxy_{kind}_endpoint": URL},
        )
        for kind in ("connect", "refresh", "subscribe", "publish", "rpc")
    ),
    *(
        (
            {f"proxy_{kind}_endpoint": URL},
            LISTED,
            {"namespaces": [{"name": "chat", f"proxy_{kind}": True}]},
        )
        for kind in ("subscribe", "publish")
    ),
    (
        {"proxy_include_connection_meta": True},
        {"proxy_connect_endpoint": URL},
        {"proxy_rpc_endpoint": URL},
    ),
    ({"proxy_extra_http_headers": ["a"]}, {}, {"proxy_connect_endpoint": URL}),
]
"""Options without effect; where they have none; what gives them one."""

ELSEWHERE: Mapping[str, str] = {
    "history_size": "W028",
    "history_lifetime": "W028",
    "history_recover": "E007",
    "force_recovery": "E007",
    "leave_delay": "E050",
    "durable": "E047",
    "proxy_publish": "W010",
    "channel_namespace_boundary": "W030",
    "user_subscribe_to_personal": "E023",
    "api_key": "W033",
    "admin": "W016",
    "redis_master_name": "E016",
    "redis_sentinels": "E016",
    "channel_layer": "E018",
    "address_connection_rate": "W065",
}
"""Option → the check of another module that reports what it lacks."""

ALONE = frozenset(
    """
    presence join_leave server_side allow_subscribe_for_client allow_tags_filter
    allowed_delta_types channel_regex map
    publication_data_format

    answers_keep answers_max_size answers_per_user
    channel_max_length channel_private_prefix channel_user_boundary client_insecure
    client_anonymous client_channel_limit client_user_connection_limit client_queue_max_size
    client_recovery_max_size client_recovery_max_publication_limit
    client_connect_include_server_time client_presence_ping_interval
    client_presence_expire_interval client_expired_close_delay client_expired_sub_close_delay
    client_stale_close_delay client_channel_position_check_delay
    client_history_max_publication_limit client_connection_limit client_connection_rate_limit
    ping_interval pong_timeout v3_use_offset token_jwks_public_endpoint
    subscription_token_jwks_public_endpoint admin_secret trusted_proxies engine
    session_authentication json_encoder page_margin hook_timeout hook_workers
    allowed_origins proxy_sets_root_path site_body_max_size websocket_disable sockjs_disable events
    http_stream sse uni_http_stream uni_sse uni_websocket api_disable drain_seconds name
    metrics_key metrics_addresses health overload_lag client_command_rates user_connection_limit
    user_channel_limit user_command_rates proxy_connect_endpoint proxy_refresh_endpoint
    proxy_rpc_endpoint
    """.split()  # noqa: SIM905 - read as words
)
"""Options that have an effect by themselves. A limit has one for what may come, and a secret may be
there before its use."""


def without_effect(options: Mapping[str, Any]) -> set[str]:
    """The options that the check names, each with a hint that names what is missing."""
    config, _problems = read(options)
    merged = Merged()
    merged.add("settings", options)
    gathered = sources.Sources(merged.options, [], [], {}, [])
    messages = effects.check_needs(sources.Report(gathered, config, []))
    assert all(message.hint and message.id == "realtime.W060" for message in messages)
    return {message.msg.partition(" has no effect: ")[0] for message in messages}


def test_options_that_others_install_are_not_reported() -> None:
    """As on the ready site, which makes a key of its own."""
    own = {"token_jwks_public_endpoint": URL}
    installed = {
        "token_hmac_secret_key": "k" * 32,
        "namespaces": [{"name": "demo", "allow_recovery": True}],
    }

    with override_settings(REALTIME_DEFAULTS=installed):
        assert "realtime.W060" not in ids(found(**own))
        assert "realtime.W060" in ids(found(**own, token_hmac_secret_key="m" * 32))


CASES = [
    pytest.param({name: value}, where, remedy, id=f"{number} {name}")
    for number, (given, where, remedy) in enumerate(WITHOUT_EFFECT)
    for name, value in given.items()
]


@pytest.mark.parametrize(("given", "where", "remedy"), CASES)
def test_option_without_effect_is_found(
    given: dict[str, Any], where: dict[str, Any], remedy: dict[str, Any]
) -> None:
    (name,) = given
    if name not in CHANNEL_OPTION_FIELDS:
        assert name in without_effect(where | given)
        assert name not in without_effect(where | given | remedy)
        return
    assert f"{name} of the top level" in without_effect(where | given)
    assert f"{name} of the top level" not in without_effect(where | given | remedy)
    inside = f"{name} of namespace 'chat'"
    assert inside in without_effect({"namespaces": [{"name": "chat"} | where | given]})
    # a namespace inherits nothing
    assert inside in without_effect(remedy | {"namespaces": [{"name": "chat"} | where | given]})
    assert inside not in without_effect({"namespaces": [{"name": "chat"} | where | given | remedy]})


def test_every_option_has_an_effect_by_itself_or_a_check() -> None:
    rows = {
        name
        for need in (*effects.OF_CHANNELS, *effects.OF_THE_SERVICE)
        for name in need.options.split()
    }
    options = {*CONFIG_FIELDS, *CHANNEL_OPTION_FIELDS}

    assert rows <= options
    assert options - rows - ELSEWHERE.keys() == ALONE
    tried = {name for given, *_ in WITHOUT_EFFECT for name in given}
    # these name the engine, and for the last one see below
    untried = {"redis_url", "redis_cluster_addrs", "redis_sentinels", "redis_master_name"}
    assert rows - tried == untried | {"typed_channels"}


def test_typed_channels_need_a_declaration() -> None:
    assert without_effect({"typed_channels": "log"}) == {"typed_channels"}


@pytest.mark.parametrize(
    ("newer", "older"),
    [(newer, older) for newer, older in NEWER_NAMES.items() if older in CHANNEL_OPTION_FIELDS],
)
def test_newer_name_is_read_as_the_option(newer: str, older: str) -> None:
    options = {newer: 10 if "history" in newer else True, "server_side": True}
    assert without_effect(options) == without_effect({older: options[newer], "server_side": True})


@pytest.mark.parametrize("engine", ["memory", "dummy"])
def test_engine_that_is_named_turns_the_options_of_redis_off(engine: str) -> None:
    assert without_effect({"engine": engine, "redis_epoch_per_run": True, **REDIS}) == set()
