"""Options: every setting of the service, typed, with its default and its meaning.

The fields of `ChannelOptions` and `Config` are the option tables: a field's name is the
option's name. `reader` makes a `Config` of a plain mapping.

A namespace has the same channel options as the top level and inherits nothing, which
holds by construction: both are `ChannelOptions`, each filled from its own mapping.

docs/options.md. Besides those of docs/protocol.md there are options of Centrifugo 2.8 that make
sense inside a Django site.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """A mistake in the options. `rule` names its kind, which has one system check id."""

    rule: str
    message: str
    hint: str


def _option(
    default: Any,
    meaning: str,
    *,
    secret: bool = False,
    least: float = 0,
    convert: Callable[[object], object] | None = None,
) -> Any:
    """Return the field of an option.

    Args:
        default: its value when it is not set.
        meaning: a sentence for the documentation and for hints.
        secret: keep the value out of the config's repr.
        least: for a number, its least value.
        convert: turns other spellings of a value into the usual one, before its type is
            checked; returns everything else as it is.
    """
    metadata = {"meaning": meaning, "least": least, "convert": convert}
    return field(default=default, repr=not secret, metadata=metadata)


def _as_text(value: object) -> object:
    """Write a number as text, as a config file of the reference server may have it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_comma_list(value: object) -> object:
    """Join a list of strings, as a config file of the reference server may have it."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return value


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """The options of one channel: those of the top level, or those of its namespace."""

    publish: bool = _option(False, "Clients may publish into the channel directly.")
    subscribe_to_publish: bool = _option(
        False, "With publish: only clients subscribed to the channel may publish into it."
    )
    anonymous: bool = _option(False, "Clients without a user ID may subscribe.")
    presence: bool = _option(False, "Keep the clients that are subscribed now.")
    presence_disable_for_client: bool = _option(False, "Only the server API may read presence.")
    join_leave: bool = _option(
        False, "Tell subscribers when another client subscribes or unsubscribes."
    )
    history_size: int = _option(0, "Publications kept per channel; 0: none.")
    history_lifetime: int = _option(0, "Seconds for which publications are kept; 0: none.")
    history_recover: bool = _option(
        False, "Give clients that reconnect the publications they missed. Needs history."
    )
    history_disable_for_client: bool = _option(
        False, "Clients may not ask for history; by recovering they still get what is kept."
    )
    server_side: bool = _option(
        False, "Only the server subscribes clients; a client's own subscribe is refused."
    )
    proxy_subscribe: bool = _option(False, "Ask the application whether a client may subscribe.")
    proxy_publish: bool = _option(False, "Ask the application whether a client may publish.")

    @property
    def keeps_history(self) -> bool:
        """Whether publications are numbered and kept: both size and lifetime are set."""
        return self.history_size > 0 and self.history_lifetime > 0


SOCKJS_URL = "https://cdn.jsdelivr.net/npm/sockjs-client@1/dist/sockjs.min.js"
SOCKJS_SCRIPT = (
    "https://cdn.jsdelivr.net/npm/sockjs-client@1.6.1/dist/sockjs.min.js",
    "sha384-svdnwiXBL+Js+yUneJSRFy24NgGiOfDM/vkQl/vCeVrcbYD6yW8EwPr1FnxTEZsR",
)
"""What the default URL stands for: one version of the file, and its integrity."""


@dataclass(frozen=True, slots=True)
class Config:
    """All options of one installation. Secrets do not show in its repr."""

    channel: ChannelOptions = field(default_factory=ChannelOptions)
    namespaces: Mapping[str, ChannelOptions] = field(default_factory=dict)

    # channel names and users
    channel_max_length: int = _option(255, "Longest channel name, bytes; 0: no limit.")
    channel_private_prefix: str = _option("$", "First character(s) of private channels.")
    channel_namespace_boundary: str = _option(":", "Ends the namespace in a channel name.")
    channel_user_boundary: str = _option("#", "Begins the user IDs in a channel name.")
    channel_user_separator: str = _option(",", "Separates the user IDs in a channel name.")
    user_subscribe_to_personal: bool = _option(
        False, "Subscribe every user to a personal channel on connect."
    )
    user_personal_channel_namespace: str = _option("", "Namespace of the personal channels.")
    user_personal_single_connection: bool = _option(
        False, "Close the other connections of a user who opens a new one. Needs presence."
    )

    # client connections
    client_insecure: bool = _option(
        False, "Development: no token needed, publish and anonymous on everywhere."
    )
    client_anonymous: bool = _option(False, "Clients may connect without a token, as user ''.")
    client_channel_limit: int = _option(128, "Subscriptions per connection; 0: no limit.")
    client_user_connection_limit: int = _option(0, "Connections per user and process; 0: no limit.")
    client_queue_max_size: int = _option(
        10485760, "Unsent bytes after which a client is disconnected as slow; 0: no limit."
    )
    client_recovery_max_size: int = _option(
        10485760,
        "Unsent bytes that recovery may add to those; what does not fit is not recovered; 0: no"
        " limit.",
    )
    client_recovery_max_publication_limit: int = _option(
        10000,
        "Publications that one recovery may send; with more, nothing is recovered; 0: no limit.",
    )
    client_presence_ping_interval: int = _option(
        25, "Seconds between refreshes of presence and checks of subscriptions.", least=1
    )
    client_presence_expire_interval: int = _option(
        60, "Seconds after which presence expires unless it is refreshed.", least=1
    )
    client_expired_close_delay: int = _option(
        25, "Seconds a client has to refresh its expired connection."
    )
    client_expired_sub_close_delay: int = _option(
        25, "Seconds a client has to refresh an expired subscription."
    )
    client_stale_close_delay: int = _option(
        25, "Seconds a client has to send its connect command; 0: no limit."
    )
    client_channel_position_check_delay: int = _option(
        40, "Seconds without publications after which the position is checked; 0: never."
    )
    v3_use_offset: bool = _option(
        False, "Write positions as offset; otherwise as seq and gen, for old clients."
    )

    # tokens, server API, panel
    token_hmac_secret_key: str = _option("", "Verifies HS256/384/512 tokens.", secret=True)
    token_rsa_public_key: str = _option("", "PEM; verifies RS256/384/512 tokens.")
    token_ecdsa_public_key: str = _option("", "PEM; verifies ES256/384/512 tokens.")
    token_jwks_public_endpoint: str = _option(
        "", "URL of a JSON Web Key Set; when set, only its keys are accepted."
    )
    api_key: str = _option("", "Protects the server API.", secret=True)
    api_insecure: bool = _option(False, "The server API needs no key.")
    admin: bool = _option(False, "Serve the standalone panel, /admin/auth and /admin/api.")
    admin_password: str = _option("", "The password that all operators share.", secret=True)
    admin_secret: str = _option("", "Signs the sessions of the shared password.", secret=True)
    admin_insecure: bool = _option(False, "Development: no password needed; with DEBUG only.")
    admin_insecure_in_production: bool = _option(False, "Let admin_insecure work without DEBUG.")
    admin_trusted_proxies: int = _option(
        0,
        "Reverse proxies that append to X-Forwarded-For; 0: that header is not trusted. For the"
        " panel's limits, and for addresses of clients in the log.",
    )

    # engine
    engine: str = _option(
        "", "memory, redis or dummy; empty: redis if one is named, otherwise memory."
    )
    memory_history_meta_ttl: int = _option(
        0, "Seconds the offset of an unused channel is remembered (memory engine); 0: for ever."
    )
    redis_url: str = _option(
        "", "URLs redis://, rediss:// or unix://; several are shards.", secret=True
    )
    redis_host: str = _option("", "Hosts, without redis_url; several are shards.")
    redis_port: str = _option(
        "", "One port for all hosts, or one for each; empty: 6379.", convert=_as_text
    )
    redis_password: str = _option("", "Password of Redis.", secret=True)
    redis_db: int = _option(0, "Number of the database.")
    redis_tls: bool = _option(False, "Connect to Redis with TLS.")
    redis_tls_skip_verify: bool = _option(False, "Accept any certificate of Redis.")
    redis_master_name: str = _option("", "Name of the master for Sentinel; several are shards.")
    redis_sentinels: str = _option(
        "", "Addresses host:port of the Sentinels.", convert=_as_comma_list
    )
    redis_sentinel_password: str = _option("", "Password of the Sentinels.", secret=True)
    redis_prefix: str = _option(
        "", "Prefix of every key in Redis; empty: made from Django's SECRET_KEY."
    )
    redis_history_meta_ttl: int = _option(
        2_592_000, "Seconds the offset of an unused channel is remembered; 0: for ever."
    )
    redis_connect_timeout: int = _option(1, "Seconds that connecting to Redis may take.", least=1)
    redis_read_timeout: int = _option(5, "Seconds that a reply of Redis may take.", least=1)
    redis_epoch_per_run: bool = _option(
        False,
        "Begin new epochs after a restart or failover of Redis, because it may have lost the"
        " last publications.",
    )
    channel_layer: str = _option(
        "", "Alias in CHANNEL_LAYERS of the layer that delivers; empty: a layer of the service."
    )

    # the site
    session_authentication: bool = _option(
        False, "Identify a client without a token by its Django session."
    )
    json_encoder: str = _option(
        "", "Dotted path of a json.JSONEncoder for data of the site; empty: that of the service."
    )
    hook_timeout: float = _option(5.0, "Seconds that a hook may take.", least=0.1)
    hook_workers: int = _option(
        8, "Threads for each of the three groups of synchronous hooks.", least=1
    )
    proxy_connect_endpoint: str = _option("", "URL that identifies a client without a token.")
    proxy_refresh_endpoint: str = _option("", "URL that decides whether a connection may continue.")
    proxy_subscribe_endpoint: str = _option(
        "", "URL that decides in channels with proxy_subscribe."
    )
    proxy_publish_endpoint: str = _option("", "URL that decides in channels with proxy_publish.")
    proxy_rpc_endpoint: str = _option("", "URL that answers RPC calls.")
    proxy_connect_timeout: float = _option(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_refresh_timeout: float = _option(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_subscribe_timeout: float = _option(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_publish_timeout: float = _option(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_rpc_timeout: float = _option(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_extra_http_headers: tuple[str, ...] | None = _option(
        None, "More headers of the handshake that are forwarded to these URLs."
    )

    # transports and process
    allowed_origins: tuple[str, ...] | None = _option(
        None, "Patterns of accepted Origin headers; not set: any; empty: none."
    )
    proxy_sets_root_path: bool = _option(
        False,
        "Under daphne: a reverse proxy sets the header Daphne-Root-Path of every request; off: the"
        " header is ignored.",
    )
    site_body_max_size: int = _option(
        1073741824,
        "Under daphne: largest body of a request to the site, bytes; 0: no limit. Larger ones are"
        " refused before they are taken in.",
    )
    websocket_handler_prefix: str = _option("/connection/websocket", "Path of the WebSocket.")
    websocket_disable: bool = _option(False, "Do not serve WebSocket.")
    websocket_message_size_limit: int = _option(
        65536,
        "Largest frame a client may send, bytes; 0: 65536; negative: no limit.",
        least=-math.inf,
    )
    sockjs_handler_prefix: str = _option("/connection/sockjs", "Prefix of the SockJS paths.")
    sockjs_disable: bool = _option(False, "Do not serve SockJS.")
    sockjs_iframe: bool = _option(
        False, "Serve the page for SockJS' transports in an iframe, to allowed_origins."
    )
    sockjs_url: str = _option(SOCKJS_URL, "URL of the SockJS library, for the iframe page.")
    sockjs_integrity: str = _option(
        "", "Integrity of that file, such as sha384-...; not needed for the default URL."
    )
    sockjs_heartbeat_delay: int = _option(
        25, "Seconds without messages after which a SockJS client gets a heartbeat; 0: never."
    )
    api_disable: bool = _option(False, "Do not serve the server API.")
    name: str = _option("", "Name of this node; default: host name and process ID.")

    def options_of_namespace(self, name: str) -> ChannelOptions | None:
        """Return the options of a namespace, or of the top level for ""; None if it is unknown."""
        if not name:
            return self.channel
        return self.namespaces.get(name)

    @property
    def message_size_limit_bytes(self) -> int | None:
        """The largest incoming frame in bytes, None for no limit."""
        if self.websocket_message_size_limit < 0:
            return None
        return self.websocket_message_size_limit or 65536

    @property
    def sockjs_script(self) -> tuple[str, str]:
        """The URL of the SockJS library, and its integrity, empty if it is not known."""
        if self.sockjs_url == SOCKJS_URL and not self.sockjs_integrity:
            return SOCKJS_SCRIPT
        return self.sockjs_url, self.sockjs_integrity


CHANNEL_OPTION_FIELDS: Mapping[str, Field[Any]] = {f.name: f for f in fields(ChannelOptions)}
CONFIG_FIELDS: Mapping[str, Field[Any]] = {
    f.name: f for f in fields(Config) if f.name not in ("channel", "namespaces")
}

KIND_WORDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "list": "a list of strings",
}
"""The kinds of option values, in words."""


def kind_of(option: Field[Any]) -> str:
    """Return the kind of an option's value: "bool", "int", "float", "str" or "list"."""
    annotation = str(option.type)
    return annotation if annotation in KIND_WORDS else "list"


ALIASES: Mapping[str, str] = {"secret": "token_hmac_secret_key"}
"""Older name → newer name. The older one counts where the newer one is not set."""

SERVER_DECIDES = "the ASGI server decides"

_ELSEWHERE: Mapping[str, str] = {
    "Django's URLconf decides paths": (
        "api_handler_prefix admin_handler_prefix health_handler_prefix"
        " prometheus_handler_prefix admin_web_path"
    ),
    SERVER_DECIDES: (
        "address port internal_address internal_port tls tls_cert tls_key tls_external"
        " tls_autocert tls_autocert_host_whitelist tls_autocert_cache_dir tls_autocert_email"
        " tls_autocert_server_name tls_autocert_force_rsa tls_autocert_http"
        " tls_autocert_http_addr websocket_ping_interval websocket_write_timeout"
        " websocket_compression websocket_compression_level websocket_compression_min_size"
        " websocket_read_buffer_size websocket_write_buffer_size"
        " websocket_use_write_buffer_pool pid_file gomaxprocs shutdown_timeout"
        " shutdown_termination_delay"
    ),
    "Django's LOGGING decides": "log_level log_file",
    "commands of one connection always run in order": "client_concurrency",
    "it had no effect in the reference server either": (
        "client_ping_interval client_message_write_timeout client_request_max_size"
        " redis_sequence_ttl"
    ),
    "this service does not offer it": (
        "grpc_api grpc_api_port grpc_api_key grpc_api_tls grpc_api_tls_disable"
        " grpc_api_tls_cert grpc_api_tls_key graphite graphite_tags graphite_host"
        " graphite_port graphite_prefix graphite_interval broker nats_url nats_prefix"
        " nats_dial_timeout nats_write_timeout debug health prometheus"
        " node_info_metrics_aggregate_interval admin_external"
    ),
    "streams are always used": "redis_streams",
    "Redis Cluster is not supported, name shards in redis_url": "redis_cluster_addrs",
    "redis_read_timeout bounds writing too": "redis_write_timeout",
    "connections to Redis are few and long-lived": "redis_idle_timeout redis_pubsub_num_workers",
}

NOT_USED: Mapping[str, str] = {
    name: reason for reason, names in _ELSEWHERE.items() for name in names.split()
}
"""Options of the reference server that have no effect → why. They are not mistakes."""


def find_option(name: str) -> Field[Any] | None:
    """Return the field of an option or of an older name of one; None if there is none."""
    known = ALIASES.get(name, name)
    return CHANNEL_OPTION_FIELDS.get(known) or CONFIG_FIELDS.get(known)
