"""Options: every setting of the service, typed, with its default and its meaning.

The fields of `ChannelOptions` (in `channel_options`) and `Config` are the option tables: a field's
name is the option's name. `reader` makes a `Config` of a plain mapping.

A namespace has the same channel options as the top level and inherits nothing, which
holds by construction: both are `ChannelOptions`, each filled from its own mapping.

docs/options.md. Besides those of docs/protocol.md there are options of Centrifugo 2.8 that make
sense inside a Django site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from itertools import chain
from typing import Any

from realtime.config.channel_options import CHANNEL_OPTION_FIELDS as CHANNEL_OPTION_FIELDS
from realtime.config.channel_options import ChannelOptions as ChannelOptions
from realtime.config.channel_types import ChannelTypes
from realtime.config.fields import as_comma_list, as_text, option, seconds
from realtime.config.limit_options import LimitOptions
from realtime.config.names import option_of
from realtime.config.proxy_options import PROXIES, ProxyOptions
from realtime.config.token_options import TokenOptions

SOCKJS_URL = "https://cdn.jsdelivr.net/npm/sockjs-client@1/dist/sockjs.min.js"
SOCKJS_SCRIPT = (
    "https://cdn.jsdelivr.net/npm/sockjs-client@1.6.1/dist/sockjs.min.js",
    "sha384-svdnwiXBL+Js+yUneJSRFy24NgGiOfDM/vkQl/vCeVrcbYD6yW8EwPr1FnxTEZsR",
)
"""What the default URL stands for: one version of the file, and its integrity."""


@dataclass(frozen=True, slots=True)
class Config(LimitOptions):
    """All options of one installation. Secrets do not show in its repr."""

    channel: ChannelOptions = field(default_factory=ChannelOptions)
    namespaces: Mapping[str, ChannelOptions] = field(default_factory=dict)
    types: ChannelTypes | None = field(default=None, compare=False, repr=False)
    """What the site declared with `realtime.channel`; None: nothing."""

    # channel names and users
    channel_max_length: int = option(255, "Longest channel name, bytes; 0: no limit.")
    channel_private_prefix: str = option("$", "First character(s) of private channels.")
    channel_namespace_boundary: str = option(":", "Ends the namespace in a channel name.")
    channel_user_boundary: str = option("#", "Begins the user IDs in a channel name.")
    channel_user_separator: str = option(",", "Separates the user IDs in a channel name.")
    user_subscribe_to_personal: bool = option(
        False, "Subscribe every user to a personal channel on connect."
    )
    user_personal_channel_namespace: str = option("", "Namespace of the personal channels.")
    user_personal_single_connection: bool = option(
        False, "Close the other connections of a user who opens a new one. Needs presence."
    )

    # client connections
    client_insecure: bool = option(
        False,
        "Development: no token needed, publish and anonymous on everywhere. Newer client libraries"
        " may also read presence and history.",
    )
    client_anonymous: bool = option(False, "Clients may connect without a token, as user ''.")
    client_channel_limit: int = option(128, "Subscriptions per connection; 0: no limit.")
    client_user_connection_limit: int = option(0, "Connections per user and process; 0: no limit.")
    client_queue_max_size: int = option(
        10485760, "Unsent bytes after which a client is disconnected as slow; 0: no limit."
    )
    client_recovery_max_size: int = option(
        10485760,
        "Unsent bytes that recovery may add to those; what does not fit is not recovered; 0: no"
        " limit.",
    )
    client_recovery_max_publication_limit: int = option(
        10000,
        "Publications that one recovery may send; with more, nothing is recovered; 0: no limit.",
    )
    client_connect_include_server_time: bool = option(
        False, "Tell newer clients the time of the service, in the reply to connect."
    )
    client_presence_ping_interval: int = seconds(
        25, "Seconds between refreshes of presence and checks of subscriptions.", least=1
    )
    client_presence_expire_interval: int = seconds(
        60, "Seconds after which presence expires unless it is refreshed.", least=1
    )
    client_expired_close_delay: int = seconds(
        25, "Seconds a client has to refresh its expired connection."
    )
    client_expired_sub_close_delay: int = seconds(
        25, "Seconds a client has to refresh an expired subscription."
    )
    client_stale_close_delay: int = seconds(
        25, "Seconds a client has to send its connect command; 0: no limit."
    )
    client_channel_position_check_delay: int = seconds(
        40, "Seconds without publications after which the position is checked; 0: never."
    )
    client_history_max_publication_limit: int = option(
        300,
        "Publications that one history command of a newer client may get; 0: no limit.",
    )
    ping_interval: int = seconds(
        25, "Seconds between pings to newer clients. Older clients send pings.", least=1
    )
    pong_timeout: float = seconds(
        8.0,
        "Seconds a newer client has to answer a ping; less than ping_interval.",
        least=0.1,
    )
    v3_use_offset: bool = option(
        False, "Write positions as offset; otherwise as seq and gen, for old clients."
    )

    # tokens, server API, panel
    connection_tokens: TokenOptions = field(default=TokenOptions("token"))
    token_lifetime: int = seconds(
        600, "Seconds for which tokens of the views and of pages with them are valid.", least=1
    )
    disallow_anonymous_connection_tokens: bool = option(
        False, "Refuse connection tokens without a user ID."
    )
    separate_subscription_token_config: bool = option(
        False,
        "Subscription tokens have the options subscription_token_.. alone. So it is, too, where"
        " one of these keys is set.",
    )
    own_subscription_tokens: TokenOptions = field(default=TokenOptions("subscription_token"))
    """The options subscription_token_.., which count as `subscription_tokens` says."""
    api_key: str = option("", "Protects the server API.", secret=True)
    api_error_mode: str = option(
        "",
        "transport: POST /api/<method> tells errors by the HTTP status; empty: with status 200.",
        choices=("", "transport"),
    )
    api_insecure: bool = option(False, "The server API needs no key.")
    admin: bool = option(False, "Serve the standalone panel, /admin/auth and /admin/api.")
    admin_password: str = option("", "The password that all operators share.", secret=True)
    admin_secret: str = option("", "Signs the sessions of the shared password.", secret=True)
    admin_insecure: bool = option(False, "Development: no password needed; with DEBUG only.")
    admin_insecure_in_production: bool = option(False, "Let admin_insecure work without DEBUG.")
    admin_name: str = option("", "Name of the standalone panel, in its header and in tabs.")
    admin_accent: str = option(
        "",
        "Colour of its header: green, teal, violet, red, brown or grey; empty: the admin's.",
        choices=("", "green", "teal", "violet", "red", "brown", "grey"),
    )
    trusted_proxies: int = option(
        0,
        "Reverse proxies that append to X-Forwarded-For; 0: that header is not trusted. For the"
        " panel's limits, and for addresses of clients in the log.",
    )

    # engine
    engine: str = option(
        "", "memory, redis, postgresql or dummy; empty: redis if one is named, otherwise memory."
    )
    memory_history_meta_ttl: int = seconds(
        0, "Seconds the offset of an unused channel is remembered (memory engine); 0: for ever."
    )
    redis_url: str = option(
        "", "URLs redis://, rediss:// or unix://; several are shards.", secret=True
    )
    redis_host: str = option("", "Hosts, without redis_url; several are shards.")
    redis_port: str = option(
        "", "One port for all hosts, or one for each; empty: 6379.", convert=as_text
    )
    redis_password: str = option("", "Password of Redis.", secret=True)
    redis_db: int = option(0, "Number of the database.")
    redis_tls: bool = option(False, "Connect to Redis with TLS.")
    redis_tls_skip_verify: bool = option(False, "Accept any certificate of Redis.")
    redis_master_name: str = option("", "Name of the master for Sentinel; several are shards.")
    redis_sentinels: str = option(
        "", "Addresses host:port of the Sentinels.", convert=as_comma_list
    )
    redis_sentinel_password: str = option("", "Password of the Sentinels.", secret=True)
    redis_cluster_addrs: str = option(
        "",
        "Addresses of a Redis Cluster, host:port or URLs redis:// and rediss://; some of its"
        " servers are enough.",
        secret=True,
        convert=as_comma_list,
    )
    redis_prefix: str = option(
        "", "Prefix of every key in Redis; empty: made from Django's SECRET_KEY."
    )
    redis_partitions: int = option(
        0,
        "Parts into which hash tags divide the keys in Redis, for a cluster behind one address;"
        " 0: no hash tags, or 128 with redis_cluster_addrs.",
    )
    redis_history_meta_ttl: int = seconds(
        2_592_000, "Seconds the offset of an unused channel is remembered; 0: for ever."
    )
    redis_connect_timeout: int = seconds(1, "Seconds that connecting to Redis may take.", least=1)
    redis_read_timeout: int = seconds(5, "Seconds that a reply of Redis may take.", least=1)
    redis_epoch_per_run: bool = option(
        False,
        "Begin new epochs after a restart or failover of Redis, because it may have lost the"
        " last publications.",
    )
    redis_wait_replicas: int = option(
        0, "Replicas that must have a publication before it counts as made; 0: off."
    )
    redis_wait_timeout: float = seconds(
        0.5, "Seconds to wait for replicas; must be less than redis_read_timeout.", least=0.01
    )
    database: str = option(
        "", "Alias in DATABASES of the database of the PostgreSQL engine; empty: default."
    )
    database_url: str = option(
        "", "URL postgresql:// of that database, in place of an alias.", secret=True
    )
    database_notify_url: str = option(
        "",
        "URL postgresql:// of the same database past a pooler in transaction mode, for NOTIFY and"
        " LISTEN.",
        secret=True,
    )
    database_poll: float = seconds(
        0.0,
        "Seconds after which nodes look for publications, where they cannot LISTEN; 0: they do.",
    )
    database_schema: str = option(
        "django_realtime", "Schema of the tables of the PostgreSQL engine; one for each service."
    )
    database_history_meta_ttl: int = seconds(
        2_592_000, "Seconds the offset of an unused channel is remembered; 0: for ever."
    )
    channel_layer: str = option(
        "", "Alias in CHANNEL_LAYERS of the layer that delivers; empty: a layer of the service."
    )

    # the site
    session_authentication: bool = option(
        False, "Identify a client without a token by its Django session."
    )
    json_encoder: str = option(
        "", "Dotted path of a json.JSONEncoder for data of the site; empty: that of the service."
    )
    typed_channels: str = option(
        "",
        "What a publication of the site without its declared type leads to: raise, log or off;"
        " empty: raise with DEBUG and in tests, otherwise off.",
        choices=("", "raise", "log", "off"),
    )
    page_margin: float = seconds(
        2.0, "Seconds by which the position of a page is older, against clocks that differ."
    )
    answers_keep: int = seconds(
        0, "Seconds for which ended answers stay in the database; 0: for ever."
    )
    answers_max_size: int = option(
        4194304, "Bytes of the longest answer; a longer one fails; 0: no limit."
    )
    answers_per_user: int = option(
        20, "Answers of one user that have not ended, about; 0: no limit."
    )
    hook_timeout: float = seconds(5.0, "Seconds that a hook may take.", least=0.1)
    hook_workers: int = option(
        8, "Threads for each of the three groups of synchronous hooks.", least=1
    )

    # transports and process
    allowed_origins: tuple[str, ...] | None = option(
        None, "Patterns of accepted Origin headers; not set: any; empty: none."
    )
    proxy_sets_root_path: bool = option(
        False,
        "Under daphne: a reverse proxy sets the header Daphne-Root-Path of every request; off: the"
        " header is ignored.",
    )
    site_body_max_size: int = option(
        1073741824,
        "Under daphne: largest body of a request to the site, bytes; 0: no limit. Larger ones are"
        " refused before they are taken in.",
    )
    websocket_handler_prefix: str = option("/connection/websocket", "Path of the WebSocket.")
    websocket_disable: bool = option(False, "Do not serve WebSocket.")
    websocket_message_size_limit: int = option(
        65536,
        "Largest frame a client may send, bytes; 0: 65536; negative: no limit.",
        least=-math.inf,
    )
    events: bool = option(
        False, "Serve channels by their address to pages without a library, as events."
    )
    http_stream: bool = option(False, "Serve clients by HTTP streaming.")
    sse: bool = option(False, "Serve clients by server-sent events.")
    uni_http_stream: bool = option(False, "Serve receivers by HTTP streaming, in one direction.")
    uni_sse: bool = option(False, "Serve receivers by server-sent events, in one direction.")
    uni_websocket: bool = option(False, "Serve receivers by WebSocket, in one direction.")
    uni_error_mode: str = option(
        "",
        "transport: uni_http_stream and uni_sse tell by the HTTP status why a client cannot"
        " connect; empty: with status 200 and a disconnect.",
        choices=("", "transport"),
    )
    sockjs_handler_prefix: str = option("/connection/sockjs", "Prefix of the SockJS paths.")
    sockjs_disable: bool = option(False, "Do not serve SockJS.")
    sockjs_iframe: bool = option(
        False, "Serve the page for SockJS' transports in an iframe, to allowed_origins."
    )
    sockjs_url: str = option(SOCKJS_URL, "URL of the SockJS library, for the iframe page.")
    sockjs_integrity: str = option(
        "", "Integrity of that file, such as sha384-...; not needed for the default URL."
    )
    sockjs_heartbeat_delay: int = seconds(
        25, "Seconds without messages after which a SockJS client gets a heartbeat; 0: never."
    )
    api_disable: bool = option(False, "Do not serve the server API.")
    drain_seconds: float = seconds(
        2.0, "Seconds over which a process that ends closes its clients, one after another."
    )
    name: str = option("", "Name of this node; default: host name and process ID.")

    # endpoints of an application elsewhere
    proxies: Mapping[str, ProxyOptions] = field(
        default_factory=lambda: {kind: ProxyOptions() for kind in PROXIES}
    )
    proxy_extra_http_headers: tuple[str, ...] | None = option(
        None, "More headers of the handshake that are forwarded to these URLs."
    )
    proxy_include_connection_meta: bool = option(
        False, "Send these URLs the meta of a connection, from its token or the connect endpoint."
    )

    # metrics and health
    metrics_key: str = option("", "The key with which metrics may be read.", secret=True)
    metrics_addresses: tuple[str, ...] | None = option(
        None, "Addresses and networks from which metrics may be read without a key."
    )
    metrics_handler_prefix: str = option("/realtime/metrics", "Path of the metrics.")
    health: bool = option(
        False, "Serve live and ready: whether this process is alive, and ready for clients."
    )
    health_handler_prefix: str = option("/realtime", "Their paths are this, and /live or /ready.")

    @property
    def serves_metrics(self) -> bool:
        """Whether anyone may read the metrics."""
        return bool(self.metrics_key or self.metrics_addresses)

    def options_of_namespace(self, name: str) -> ChannelOptions | None:
        """Return the options of a namespace, or of the top level for ""; None if it is unknown."""
        if not name:
            return self.channel
        return self.namespaces.get(name)

    def value_of(self, name: str) -> Any:
        """Return the value of an option by its name, one of `CONFIG_FIELDS`."""
        record, member = _MEMBERS.get(name, ("", name))
        return getattr(self._records[record] if record else self, member)

    @property
    def _records(self) -> dict[str, TokenOptions | ProxyOptions]:
        """The records of options by the prefix of their names."""
        tokens = (self.connection_tokens, self.own_subscription_tokens)
        return {each.prefix: each for each in tokens} | {
            f"proxy_{kind}": each for kind, each in self.proxies.items()
        }

    @property
    def subscription_tokens(self) -> TokenOptions:
        """The options of subscription tokens."""
        own = self.own_subscription_tokens
        separate = self.separate_subscription_token_config or own.verifies
        return own if separate else self.connection_tokens

    def includes_meta(self, kind: str) -> bool:
        """Return whether an endpoint gets the meta of a connection."""
        # a connection that begins has none
        return self.proxy_include_connection_meta or (
            kind != "connect" and self.proxies[kind].include_connection_meta
        )

    @property
    def handshake_headers(self) -> tuple[str, ...]:
        """The headers of a handshake that are kept besides the usual ones."""
        lists = (self.proxies[kind].http_headers or () for kind in PROXIES)
        return (*(self.proxy_extra_http_headers or ()), *chain.from_iterable(lists))

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


def config_of(values: Mapping[str, Any], **others: Any) -> Config:
    """Return the options of one installation.

    Args:
        values: the options by name.
        others: the fields of `Config` that are not options.
    """
    members: dict[str, dict[str, Any]] = {record: {} for record in _RECORDS}
    plain: dict[str, Any] = {}
    for name, value in values.items():
        record, member = _MEMBERS.get(name, ("", name))
        (members[record] if record else plain)[member] = value
    return Config(
        connection_tokens=TokenOptions("token", **members["token"]),
        own_subscription_tokens=TokenOptions("subscription_token", **members["subscription_token"]),
        proxies={kind: ProxyOptions(**members[f"proxy_{kind}"]) for kind in PROXIES},
        **plain,
        **others,
    )


_RECORDS: Mapping[str, type[TokenOptions | ProxyOptions]] = {
    "token": TokenOptions,
    "subscription_token": TokenOptions,
    **{f"proxy_{kind}": ProxyOptions for kind in PROXIES},
}
"""Prefix of the names of some options → the record that they are."""

_MEMBERS: Mapping[str, tuple[str, str]] = {
    f"{record}_{member.name}": (record, member.name)
    for record, kind in _RECORDS.items()
    for member in fields(kind)
    if member.metadata and (record, member.name) != ("proxy_connect", "include_connection_meta")
}
"""Name of an option → the record that has it, and its name there."""


_INHERITED = {each.name for each in fields(LimitOptions)}
_RECORDS_OF: Mapping[str, Sequence[str]] = {
    "connection_tokens": ["token"],
    "own_subscription_tokens": ["subscription_token"],
    "proxies": [f"proxy_{kind}" for kind in PROXIES],
}
"""Field of `Config` → the prefixes of the options that it has."""


def _option_fields() -> Iterator[tuple[str, Field[Any]]]:
    for each in sorted(fields(Config), key=lambda each: each.name in _INHERITED):
        if each.metadata:
            yield each.name, each
        for name, (record, member) in _MEMBERS.items():
            if record in _RECORDS_OF.get(each.name, ()):
                yield name, _RECORDS[record].__dataclass_fields__[member]


CONFIG_FIELDS: Mapping[str, Field[Any]] = dict(_option_fields())
"""The options by name, in the order of `Config`; those that it inherits come last."""


def find_option(name: str) -> Field[Any] | None:
    """Return the field of an option, by any of its names; None if there is none."""
    known = option_of(name)
    return CHANNEL_OPTION_FIELDS.get(known) or CONFIG_FIELDS.get(known)
