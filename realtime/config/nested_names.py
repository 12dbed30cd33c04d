"""Names of options in config files with nested names: what each of them is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from realtime.config.names import NOT_USED, SERVER_DECIDES, by_name
from realtime.config.options import CHANNEL_OPTION_FIELDS
from realtime.config.token_options import TokenOptions

SECTIONS = frozenset(
    """
    admin broker channel client debug dev emulation engine graphite grpc_api health http_api
    http_server http_stream init log map_broker node opentelemetry presence_manager prometheus
    rpc shutdown sse swagger uni_grpc uni_http_stream uni_sse uni_websocket usage_stats websocket
    webtransport
    """.split()  # noqa: SIM905 - read as words
)
"""Keys whose value is an object in a nested file, and in no other."""

_TOKEN = [each.name for each in fields(TokenOptions) if each.metadata]
_SAME_NAMES = """
    admin.enabled admin.password admin.secret admin.insecure
    channel.max_length channel.private_prefix channel.namespace_boundary channel.user_boundary
    channel.user_separator
    client.channel_limit client.user_connection_limit client.queue_max_size
    client.expired_close_delay client.expired_sub_close_delay client.stale_close_delay
    client.channel_position_check_delay client.history_max_publication_limit
    client.recovery_max_publication_limit client.insecure client.connect_include_server_time
    client.connection_limit client.connection_rate_limit
    engine.redis.connect_timeout engine.redis.db engine.redis.password engine.redis.prefix
    engine.redis.sentinel_password engine.redis.tls.enabled
    health.enabled health.handler_prefix
    websocket.handler_prefix websocket.message_size_limit
""".split()  # noqa: SIM905 - read as words
"""Paths that are the name of the option; see `_flat`."""

PROXY_PATHS = (
    ("connect", "client.proxy.connect"),
    ("refresh", "client.proxy.refresh"),
    ("subscribe", "channel.proxy.subscribe"),
    ("publish", "channel.proxy.publish"),
    ("rpc", "rpc.proxy"),
)
"""Kinds of proxies, and their paths in the file."""
_TRANSPORTS = ("http_stream", "sse", "uni_http_stream", "uni_sse", "uni_websocket")


def _flat(path: str) -> str:
    """Return the name that versions with flat names have for a path."""
    return path.removeprefix("engine.").replace(".", "_")


OPTIONS: Mapping[str, str] = {
    **{f"client.token.{name}": f"token_{name}" for name in _TOKEN},
    **{f"client.subscription_token.{name}": f"subscription_token_{name}" for name in _TOKEN},
    "client.subscription_token.enabled": "separate_subscription_token_config",
    "client.disallow_anonymous_connection_tokens": "disallow_anonymous_connection_tokens",
    **{path: _flat(path).removesuffix("_enabled") for path in _SAME_NAMES},
    **{f"{name}.enabled": name for name in _TRANSPORTS},
    "client.allowed_origins": "allowed_origins",
    "client.allow_anonymous_connect_without_token": "client_anonymous",
    "client.ping_interval": "ping_interval",
    "client.pong_timeout": "pong_timeout",
    "client.presence_update_interval": "client_presence_ping_interval",
    "client.subscribe_to_user_personal_channel.enabled": "user_subscribe_to_personal",
    "client.subscribe_to_user_personal_channel.personal_channel_namespace": (
        "user_personal_channel_namespace"
    ),
    "client.subscribe_to_user_personal_channel.single_connection": (
        "user_personal_single_connection"
    ),
    "http_api.key": "api_key",
    "http_api.insecure": "api_insecure",
    "http_api.disabled": "api_disable",
    "http_api.error_mode": "api_error_mode",
    "websocket.disabled": "websocket_disable",
    "node.name": "name",
    "engine.type": "engine",
    "engine.redis.address": "redis_url",
    "engine.redis.cluster_address": "redis_cluster_addrs",
    "engine.redis.tls.insecure_skip_verify": "redis_tls_skip_verify",
    "engine.redis.sentinel_address": "redis_sentinels",
    "engine.redis.sentinel_master_name": "redis_master_name",
    "engine.redis.io_timeout": "redis_read_timeout",
    **{
        f"{path}.{name}": f"proxy_{kind}_{name}"
        for kind, path in PROXY_PATHS
        for name in ("endpoint", "timeout", "emulated_headers", "include_connection_meta")
        if (kind, name) != ("connect", "include_connection_meta")
    },
}
"""Path in the file → option."""

NOT_OFFERED = "this service does not offer it"
_CHOSEN = "the service chooses it"
_DELTAS = "allowed_delta_types of the channel decides"
_META_TTL = "redis_history_meta_ttl and memory_history_meta_ttl decide"

UNUSED = by_name(
    {
        SERVER_DECIDES: "http_server pid_file shutdown websocket",
        "Django's LOGGING decides": "log",
        "Django's URLconf decides paths": "http_api.handler_prefix",
        "the reverse proxy decides who reaches it": "http_api.external",
        "the site's URLconf and the reverse proxy decide": "admin",
        "commands of one connection always run in order": "client.concurrency",
        "a connection that begins has no meta": "client.proxy.connect.include_connection_meta",
        "signatures are always verified": "client.insecure_skip_token_signature_verify",
        _DELTAS: "client.allowed_delta_types",
        _META_TTL: "channel.history_meta_ttl",
        _CHOSEN: " ".join(("engine.redis", *_TRANSPORTS)),
        "with uni_error_mode, the service chooses the status": (
            "uni_http_stream.connect_code_to_http_response uni_sse.connect_code_to_http_response"
        ),
        NOT_OFFERED: (
            "client.channel_position_max_time_lag consumers debug dev emulation"
            " enable_unreleased_features graphite grpc_api init map_broker node opentelemetry"
            " prometheus swagger uni_grpc usage_stats webtransport rpc.ping rpc.ping_method"
        ),
    }
)
"""Path, or the beginning of paths, in the file → why it has no effect here."""

UNSUPPORTED = by_name(
    {
        "the engine is the broker": "broker",
        "the engine keeps presence": "presence_manager",
        "there is one endpoint for each kind of event": "proxies",
        "use the connect hook": "client.user_id_http_header",
        "a proxy has an endpoint, a timeout and http_headers": "client.proxy channel.proxy",
        "there is one endpoint for all methods": "rpc",
        "Redis gets the password alone": "engine.redis.user",
        "Sentinels get the password alone": "engine.redis.sentinel_user",
        "the service connects to Sentinels without TLS": "engine.redis.sentinel_tls",
        "let the reverse proxy decide who reaches the API and the panel": (
            "http_server.internal_address http_server.internal_port"
        ),
    }
)
"""Path, or the beginning of paths, in the file → the reason. A mistake unless it is off."""

SWITCHED = ("broker", "presence_manager", "engine.redis.sentinel_tls")
"""Sections of those that are off unless `enabled` is on, whatever else they hold."""

CHANNEL_OPTIONS = frozenset(
    name for name in CHANNEL_OPTION_FIELDS if name.startswith(("allow_", "force_"))
) | frozenset(
    """
    presence join_leave history_size history_ttl history_meta_ttl channel_regex
    publication_data_format auto_cache_recover allowed_delta_types
    subscribe_proxy_enabled publish_proxy_enabled
    """.split()  # noqa: SIM905 - read as words
)
"""Channel options that have the same name here."""

CHANNEL_UNUSED = by_name({_DELTAS: "delta_publish"})
CHANNEL_UNSUPPORTED = by_name(
    {
        "there is one endpoint: write default": "subscribe_proxy_name publish_proxy_name",
        "clients refresh subscriptions with tokens": (
            "sub_refresh_proxy_enabled sub_refresh_proxy_name"
        ),
        "subscriptions are to streams": "subscription_type",
        NOT_OFFERED: (
            "subscribe_stream_proxy_enabled subscribe_stream_proxy_name"
            " subscribe_stream_bidirectional map shared_poll"
        ),
    }
)


_FLAT_UNUSED = {**{_flat(path): why for path, why in UNUSED.items()}, **CHANNEL_UNUSED, **NOT_USED}
FLAT_UNSUPPORTED = {
    **{_flat(path): why for path, why in UNSUPPORTED.items()},
    **CHANNEL_UNSUPPORTED,
}
"""Name of an option, without the names of its sections → the reason, as in `UNSUPPORTED`."""


def why_unused(name: str) -> str:
    """Return why an option that this service does not have has no effect; "" if it is unknown."""
    if name in _FLAT_UNUSED:
        return _FLAT_UNUSED[name]
    sections = (section for section, why in UNUSED.items() if why == NOT_OFFERED)
    return NOT_OFFERED if name.startswith(tuple(f"{_flat(each)}_" for each in sections)) else ""


CLOSED: Mapping[str, bool] = {
    name: False
    for name, option in CHANNEL_OPTION_FIELDS.items()
    if name.startswith(("allow_", "force_")) and option.default in (None, False)
}
"""Channel options that are off in a nested file unless it names them."""

OFF: tuple[object, ...] = (None, False, 0, "", "default", "stream", [], {})
"""Values with which an option that is not supported changes nothing."""
