"""Options: names, defaults, types, ranges, secrets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.config.names import NEWER_NAMES, NOT_USED, OLDER_NAMES
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS, Config
from realtime.config.reader import InvalidOptions, load, read

CHANNEL_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(
        """
        publish subscribe_to_publish anonymous presence presence_disable_for_client join_leave
        history_recover history_disable_for_client server_side proxy_subscribe proxy_publish
        """.split(),  # noqa: SIM905 - read as words
        False,
    ),
    "leave_delay": 0.0,
    "history_size": 0,
    "history_lifetime": 0,
}
"""Every channel option of the specification, with its default."""

NEWER_CHANNEL_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(
        """
        allow_subscribe_for_anonymous allow_publish_for_client allow_publish_for_subscriber
        allow_publish_for_anonymous allow_presence_for_client allow_presence_for_subscriber
        allow_presence_for_anonymous allow_history_for_client allow_history_for_subscriber
        allow_history_for_anonymous force_push_join_leave force_positioning allow_positioning
        force_recovery allow_recovery auto_cache_recover allow_tags_filter
        """.split(),  # noqa: SIM905 - read as words
        False,
    ),
    "allow_subscribe_for_client": True,
    "allow_user_limited_channels": True,
    "force_recovery_mode": "stream",
    "allowed_delta_types": (),
    "channel_regex": "",
    "history_meta_ttl": 0,
    "publication_data_format": "",
}
"""Channel options of later generations, with what they are where no option is set."""

OWN_CHANNEL_DEFAULTS: Mapping[str, object] = {
    "durable": False,
    "join_on_read": False,
    "map": "",
    "map_key_ttl": 60,
    "map_max_keys": 10_000,
    "map_max_bytes": 16_777_216,
    "map_publish": "",
    "map_key": "",
    "map_remove_on_unsubscribe": False,
    "presence_maps": (),
}
"""Channel options that only this service has."""

ALL_CHANNEL_DEFAULTS = {**CHANNEL_DEFAULTS, **NEWER_CHANNEL_DEFAULTS, **OWN_CHANNEL_DEFAULTS}

DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(
        """
        user_subscribe_to_personal user_personal_single_connection client_insecure
        client_anonymous v3_use_offset api_insecure api_disable admin admin_insecure
        websocket_disable sockjs_disable events http_stream sse uni_http_stream uni_sse
        uni_websocket
        """.split(),  # noqa: SIM905 - read as words
        False,
    ),
    **dict.fromkeys(
        """
        user_personal_channel_namespace token_hmac_secret_key token_rsa_public_key
        token_ecdsa_public_key token_jwks_public_endpoint api_key admin_password admin_secret
        token_hmac_previous_secret_key token_audience token_audience_regex token_issuer
        token_issuer_regex
        """.split(),  # noqa: SIM905 - read as words
        "",
    ),
    "answers_keep": 0,
    "answers_max_size": 4194304,
    "answers_per_user": 20,
    "channel_max_length": 255,
    "channel_private_prefix": "$",
    "channel_namespace_boundary": ":",
    "channel_user_boundary": "#",
    "channel_user_separator": ",",
    "client_channel_limit": 128,
    "client_user_connection_limit": 0,
    "client_queue_max_size": 10485760,
    "client_presence_ping_interval": 25,
    "client_presence_expire_interval": 60,
    "client_expired_close_delay": 25,
    "client_expired_sub_close_delay": 25,
    "client_stale_close_delay": 25,
    "client_channel_position_check_delay": 40,
    "client_history_max_publication_limit": 300,
    "ping_interval": 25,
    "pong_timeout": 8.0,
    "drain_seconds": 2.0,
    "allowed_origins": None,
    "websocket_handler_prefix": "/connection/websocket",
    "websocket_message_size_limit": 65536,
    "sockjs_handler_prefix": "/connection/sockjs",
    "sockjs_url": "https://cdn.jsdelivr.net/npm/sockjs-client@1/dist/sockjs.min.js",
    "sockjs_heartbeat_delay": 25,
    "memory_history_meta_ttl": 0,
    "token_hmac_previous_secret_key_valid_until": 0,
}
"""Documented defaults of the options this service uses; those of Redis have a test file."""

DOCUMENTED = f"""
{" ".join(CHANNEL_DEFAULTS)} {" ".join(NEWER_CHANNEL_DEFAULTS)} {" ".join(DEFAULTS)}
client_concurrency client_ping_interval client_message_write_timeout client_request_max_size
secret api_handler_prefix grpc_api grpc_api_port grpc_api_key grpc_api_tls grpc_api_tls_disable
grpc_api_tls_cert grpc_api_tls_key admin_external admin_web_path
admin_handler_prefix address port internal_address internal_port
websocket_ping_interval websocket_write_timeout websocket_compression
websocket_use_write_buffer_pool websocket_compression_level websocket_compression_min_size
websocket_read_buffer_size websocket_write_buffer_size prometheus debug
prometheus_handler_prefix tls tls_external
tls_autocert tls_autocert_force_rsa tls_autocert_http tls_cert tls_key
tls_autocert_host_whitelist tls_autocert_cache_dir tls_autocert_email tls_autocert_server_name
tls_autocert_http_addr engine broker redis_host redis_port redis_url redis_password redis_db
redis_tls redis_tls_skip_verify redis_master_name redis_sentinels redis_sentinel_password
redis_cluster_addrs redis_prefix redis_streams redis_history_meta_ttl redis_sequence_ttl
redis_connect_timeout redis_read_timeout redis_write_timeout redis_idle_timeout
redis_pubsub_num_workers nats_url nats_prefix nats_dial_timeout nats_write_timeout
proxy_connect_endpoint proxy_refresh_endpoint proxy_rpc_endpoint proxy_subscribe_endpoint
proxy_publish_endpoint proxy_connect_timeout proxy_refresh_timeout proxy_rpc_timeout
proxy_subscribe_timeout proxy_publish_timeout proxy_extra_http_headers name
node_info_metrics_aggregate_interval log_level log_file pid_file shutdown_timeout
shutdown_termination_delay gomaxprocs graphite graphite_tags graphite_host graphite_port
graphite_prefix graphite_interval
""".split()
"""Every option of the reference server's configuration files, but `namespaces`."""


@pytest.mark.parametrize("name", ALL_CHANNEL_DEFAULTS)
def test_channel_option_has_its_documented_default(name: str) -> None:
    assert getattr(load({}).channel, name) == ALL_CHANNEL_DEFAULTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_option_has_its_documented_default(name: str) -> None:
    assert load({}).value_of(name) == DEFAULTS[name]


def test_channel_options_are_those_of_the_specification_and_our_own() -> None:
    assert set(CHANNEL_OPTION_FIELDS) == set(ALL_CHANNEL_DEFAULTS)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_option_of_an_existing_config_file_is_known(name: str) -> None:
    known = (*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS, *OLDER_NAMES, *NOT_USED)
    assert name in known


def test_option_is_either_used_or_not() -> None:
    assert not set(NOT_USED) & {*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS, *OLDER_NAMES, *NEWER_NAMES}


@pytest.mark.parametrize("name", [*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS])
def test_every_option_says_what_it_means(name: str) -> None:
    option = CHANNEL_OPTION_FIELDS.get(name) or CONFIG_FIELDS[name]
    assert option.metadata["meaning"].endswith(".")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("channel_max_length", 100),
        ("channel_private_prefix", ""),
        ("v3_use_offset", True),
        ("websocket_message_size_limit", -1),
        ("name", "node-1"),
    ],
)
def test_option_takes_the_value_given(name: str, value: object) -> None:
    assert load({name: value}).value_of(name) == value


@pytest.mark.parametrize("value", [["https://a.example"], ("https://a.example",)])
def test_list_option_becomes_a_tuple(value: object) -> None:
    assert load({"allowed_origins": value}).allowed_origins == ("https://a.example",)


def test_empty_list_of_origins_is_not_the_same_as_none() -> None:
    assert load({"allowed_origins": []}).allowed_origins == ()


# what is reported


def test_every_mistake_is_reported_and_left_out() -> None:
    config, problems = read({"nope": 1, "presence": "yes", "history_size": -1, "api_key": "k"})
    assert sorted(problem.id for problem in problems) == ["E002", "E003", "E004"]
    assert config == Config(api_key="k")


def test_load_raises_with_every_problem() -> None:
    with pytest.raises(InvalidOptions) as raised:
        load({"nope": 1, "presence": "yes"})
    assert [problem.id for problem in raised.value.problems] == ["E002", "E003"]
    assert all(problem.hint for problem in raised.value.problems)
    assert "'nope'" in str(raised.value)


def test_configuration_cannot_be_changed() -> None:
    config: Any = load({})
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.api_key = "x"
