"""Options that have no effect without another one, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from realtime.checks.table import Found, check
from realtime.config.database_options import uses_postgresql
from realtime.config.names import given_items, options_in
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS, ChannelOptions, Config
from realtime.config.proxy_options import PROXIES
from realtime.config.redis_options import uses_redis
from realtime.config.sources import Report
from realtime.hooks.registry import registry

Condition: TypeAlias = Callable[[Any, Config], object]


class Need(NamedTuple):
    """Options that need another one."""

    options: str
    """Their names, separated by spaces."""
    is_missing: Condition
    """Whether what they need is missing, by the options beside them and the whole configuration."""
    why: str
    hint: str


def _value(options: Config | ChannelOptions, name: str) -> Any:
    return options.value_of(name) if isinstance(options, Config) else getattr(options, name)


def _is_on(option: str) -> Condition:
    return lambda options, _: _value(options, option)


def _is_off(option: str) -> Condition:
    return lambda options, _: not _value(options, option)


def _with(options: str, switch: str) -> Need:
    return Need(options, _is_off(switch), f"{switch} is off", f"Turn {switch} on")


def _without(options: str, switch: str) -> Need:
    return Need(options, _is_on(switch), f"{switch} is on", f"Turn {switch} off")


def _where_set(options: str, other: str) -> Need:
    return Need(options, _is_off(other), f"{other} is not set", f"Set {other}")


OF_CHANNELS = (
    Need(
        "allow_recovery allow_positioning force_positioning force_recovery_mode"
        " allow_history_for_client allow_history_for_subscriber allow_history_for_anonymous"
        " history_disable_for_client history_meta_ttl join_on_read",
        lambda o, c: not (o.history_size or o.history_lifetime),  # for one of them see W028
        "no history is kept",
        "Set history_size and history_lifetime",
    ),
    _with(
        "allow_presence_for_client allow_presence_for_subscriber allow_presence_for_anonymous"
        " presence_disable_for_client presence_maps",
        "presence",
    ),
    Need(
        "allow_history_for_anonymous",
        lambda o, c: (
            o.keeps_history and not (o.allow_history_for_client or o.allow_history_for_subscriber)
        ),
        "no client may read history",
        "Turn allow_history_for_subscriber on",
    ),
    Need(
        "allow_presence_for_anonymous",
        lambda o, c: (
            o.presence and not (o.allow_presence_for_client or o.allow_presence_for_subscriber)
        ),
        "no client may read presence",
        "Turn allow_presence_for_subscriber on",
    ),
    Need(
        "subscribe_to_publish allow_publish_for_anonymous",
        lambda o, c: not (o.publish or o.map_publish or c.client_insecure),
        "no client may publish",
        "Turn publish (or allow_publish_for_subscriber) on",
    ),
    _with("force_push_join_leave", "join_leave"),
    _where_set(" ".join(each for each in CHANNEL_OPTION_FIELDS if each.startswith("map_")), "map"),
    Need(
        "map_key_ttl",
        lambda o, c: o.map == "persistent",
        "entries of a persistent map have no lifetime",
        "Set map to recoverable",
    ),
    Need(
        "publish allow_publish_for_client allow_publish_for_subscriber",
        _is_on("map"),
        "clients put into a map",
        "Set map_publish",
    ),
    Need(
        "auto_cache_recover",
        lambda o, c: o.force_recovery_mode != "cache",
        "force_recovery_mode is not cache",
        "Set force_recovery_mode to cache",
    ),
    Need(
        "proxy_subscribe anonymous allow_subscribe_for_anonymous allow_user_limited_channels",
        lambda o, c: o.server_side,
        "server_side lets no client subscribe itself",
        "Turn server_side off",
    ),
)


def _is_nowhere(option: str) -> Condition:
    return lambda c, _: (
        not any(getattr(each, option) for each in (c.channel, *c.namespaces.values()))
    )


_OF_ENDPOINTS = [
    name
    for name in CONFIG_FIELDS
    if name.startswith("proxy_")
    and name.endswith(("_timeout", "_http_headers", "_emulated_headers", "_connection_meta"))
]

OF_THE_SERVICE = (
    Need(
        "channel_user_separator",
        lambda c, _: not c.channel_user_boundary,
        "channel_user_boundary is empty",
        "Set channel_user_boundary",
    ),
    _with(
        "user_personal_channel_namespace user_personal_single_connection",
        "user_subscribe_to_personal",
    ),
    Need(
        "token_audience token_audience_regex token_issuer token_issuer_regex token_user_id_claim"
        " disallow_anonymous_connection_tokens",
        lambda c, _: not c.connection_tokens.verifies,
        "there is no key of connection tokens",
        "Set token_hmac_secret_key or another key",
    ),
    Need(
        "token_lifetime",
        lambda c, _: (
            not (c.connection_tokens.hmac_secret_key or c.own_subscription_tokens.hmac_secret_key)
        ),
        "there is no key to sign tokens with",
        "Set token_hmac_secret_key",
    ),
    Need(
        " ".join(
            f"subscription_token_{name}"
            for name in ("audience", "audience_regex", "issuer", "issuer_regex", "user_id_claim")
        ),
        lambda c, _: c.subscription_tokens.prefix == "token",
        "subscription tokens have the options of connection tokens",
        "Set subscription_token_hmac_secret_key or another key of them",
    ),
    Need(
        "separate_subscription_token_config",
        lambda c, _: not c.subscription_tokens.verifies,
        "there is no key of subscription tokens, and all of them are refused",
        "Set subscription_token_hmac_secret_key or another key of them",
    ),
    *(
        _where_set(
            f"{prefix}_hmac_previous_secret_key_valid_until", f"{prefix}_hmac_previous_secret_key"
        )
        for prefix in ("token", "subscription_token")
    ),
    *(
        Need(
            f"{prefix}_hmac_secret_key {prefix}_hmac_previous_secret_key {prefix}_rsa_public_key"
            f" {prefix}_ecdsa_public_key",
            _is_on(f"{prefix}_jwks_public_endpoint"),
            f"with {prefix}_jwks_public_endpoint, only keys of that set are accepted",
            f"Remove {prefix}_jwks_public_endpoint",
        )
        for prefix in ("token", "subscription_token")
    ),
    _without("api_error_mode api_insecure", "api_disable"),
    _with(
        "admin_password admin_insecure admin_name admin_accent admin_insecure_in_production",
        "admin",
    ),
    _with("admin_insecure_in_production", "admin_insecure"),
    Need(
        "memory_history_meta_ttl",
        lambda c, _: uses_redis(c),
        "the engine is Redis",
        "Set redis_history_meta_ttl instead",
    ),
    Need(
        " ".join(name for name in CONFIG_FIELDS if name.startswith("redis_")),
        lambda c, _: not (uses_redis(c) or c.engine),  # an engine that is named is a switch
        "the engine is memory",
        "Set redis_url, or engine to redis",
    ),
    Need(
        " ".join(name for name in CONFIG_FIELDS if name.startswith("database")),
        lambda c, _: not (uses_postgresql(c) or c.engine),  # as above
        "the engine is not PostgreSQL",
        "Set engine to postgresql",
    ),
    Need(
        "redis_host redis_port",
        lambda c, _: c.redis_url or c.redis_sentinels or c.redis_cluster_addrs,
        "another option names the servers",
        "Remove redis_url, redis_sentinels and redis_cluster_addrs",
    ),
    Need(
        "redis_tls_skip_verify",
        lambda c, _: (
            not (c.redis_tls or "rediss://" in c.redis_url or "rediss://" in c.redis_cluster_addrs)
        ),
        "connections to Redis have no TLS",
        "Turn redis_tls on",
    ),
    _where_set("redis_sentinel_password", "redis_sentinels"),
    _where_set("redis_wait_timeout", "redis_wait_replicas"),
    Need(
        "typed_channels",
        lambda c, _: c.types is None,
        "no typed channel is declared",
        "Declare one with realtime.channel",
    ),
    _without("websocket_handler_prefix", "websocket_disable"),
    Need(
        "websocket_message_size_limit",
        lambda c, _: c.websocket_disable and c.sockjs_disable and not c.uni_websocket,
        "no transport with WebSockets is on",
        "Turn websocket_disable off",
    ),
    Need(
        "uni_error_mode",
        lambda c, _: not (c.uni_http_stream or c.uni_sse),
        "uni_http_stream and uni_sse are off",
        "Turn one of them on",
    ),
    _without(
        "sockjs_handler_prefix sockjs_iframe sockjs_heartbeat_delay sockjs_url sockjs_integrity",
        "sockjs_disable",
    ),
    _with("sockjs_url sockjs_integrity", "sockjs_iframe"),
    _with("health_handler_prefix", "health"),
    Need(
        "metrics_handler_prefix",
        lambda c, _: not c.serves_metrics,
        "metrics are off",
        "Set metrics_key or metrics_addresses",
    ),
    *(
        _where_set(
            " ".join(name for name in _OF_ENDPOINTS if name.startswith(f"proxy_{kind}_")),
            f"proxy_{kind}_endpoint",
        )
        for kind in PROXIES
    ),
    *(
        Need(
            f"proxy_{kind}_endpoint",
            _is_nowhere(f"proxy_{kind}"),
            f"proxy_{kind} is on nowhere",
            f"Turn proxy_{kind} on in the namespaces about which it decides",
        )
        for kind in ("subscribe", "publish")
    ),
    Need(
        "proxy_include_connection_meta",
        lambda c, _: not any(c.proxies[kind].endpoint for kind in PROXIES[1:]),
        "no endpoint that could get it is set",
        "Set proxy_subscribe_endpoint or another one",
    ),
    Need(
        "proxy_extra_http_headers",
        lambda c, _: not (any(each.endpoint for each in c.proxies.values()) or registry),
        "there is neither an endpoint nor a hook that gets them",
        "Set proxy_connect_endpoint or another one",
    ),
)


@check("realtime.W060")
def check_needs(report: Report) -> Found:
    """W060: an option has no effect without another one.

    Those of REALTIME_DEFAULTS are not the site's own, and cannot be removed there.
    """
    config, origins = report.config, report.sources.origins
    own = {
        name: value
        for name, value in report.sources.options.items()
        if origins.get(name) != "defaults"
    }
    found = _missing(OF_THE_SERVICE, "", config, own, CONFIG_FIELDS, config)
    for place, options, given in _places(config, own):
        found |= _missing(OF_CHANNELS, place, options, given, CHANNEL_OPTION_FIELDS, config)
    for name, need in found.items():
        hint = f"{need.hint}, or remove {name.partition(' ')[0]}."
        yield f"{name} has no effect: {need.why}.", hint


def _missing(
    needs: tuple[Need, ...],
    place: str,
    options: Any,
    given: Mapping[str, object],
    fields: Mapping[str, Any],
    config: Config,
) -> dict[str, Need]:
    """Return the options that are given and lack what they need, each with its first need."""
    found: dict[str, Need] = {}
    for need in needs:
        for name in need.options.split():
            value = _value(options, name)
            is_on = name in given and value and value != fields[name].default
            if is_on and need.is_missing(options, config):
                found.setdefault(name + place, need)
    return found


def _places(
    config: Config, given: Mapping[str, object]
) -> Iterator[tuple[str, ChannelOptions, Mapping[str, object]]]:
    """Yield each place of channel options, its name behind an option's, and what is given there."""
    yield " of the top level", config.channel, given
    for item in given_items(given):
        options = {known: value for known, _name, value in options_in(item)}
        name = str(item["name"])
        yield f" of namespace {name!r}", config.namespaces[name], options
