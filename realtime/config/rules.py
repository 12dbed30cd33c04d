"""Rules between options: what does not fit together, and values that cannot be used.

Pure. Types and ranges of single values are checked in `reader`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_network
from urllib.parse import urlsplit

from realtime.config import database_options, limit_options, name_patterns, origins, redis_options
from realtime.config.channel_options import META_TTL_HINT, META_TTL_MIN, PER_USER
from realtime.config.expressions import compiled
from realtime.config.options import ChannelOptions, Config
from realtime.config.problems import Found, OptionRules, Problem

_SCRIPT_URL = re.compile(r"(?:https?://[^\s;,'\"/@\\]+)?/(?!/)[^\s;,'\"\\]*")
"""A script of another host, or of this site; it can be named in a content security policy."""


_PATHS = (
    "websocket_handler_prefix",
    "sockjs_handler_prefix",
    "metrics_handler_prefix",
    "health_handler_prefix",
)
_WITH_MORE = ("sockjs_handler_prefix", "health_handler_prefix")
"""Of these, clients ask for what is below, which begins with a slash."""

MAX_LEAVE_DELAY = 300

_MILLISECONDS = 10**11
"""Unix seconds of the year 5138; milliseconds of 1973."""


of_channels: OptionRules[[str, ChannelOptions]] = OptionRules()
"""Rules about the options of one place, the top level or a namespace, and its name for people."""

of_the_service: OptionRules[[Config]] = OptionRules()
"""Rules about the options of the whole service."""


def check(config: Config) -> Iterator[Problem]:
    """Yield the mistakes in the options of the whole service."""
    yield from of_the_service.problems(config)
    yield from redis_options.rules.problems(config)
    yield from database_options.rules.problems(config)


@of_channels("E007", "Set both to more than 0, or turn history_recover off.")
def _check_recovery(where: str, options: ChannelOptions) -> Found:
    if options.force_recovery and not options.keeps_history:
        yield f"history_recover of {where} needs history_size and history_lifetime."


@of_channels("E017", META_TTL_HINT)
def _check_meta_ttl(where: str, options: ChannelOptions) -> Found:
    if 0 < options.history_meta_ttl < META_TTL_MIN:
        yield f"history_meta_ttl of {where} must be at least {META_TTL_MIN}, or 0."


@of_channels("E050")
def _check_leave_delay(where: str, options: ChannelOptions) -> Found:
    if options.leave_delay and options.join_leave != PER_USER:
        yield (
            f'leave_delay of {where} needs join_leave "user".',
            'Set join_leave to "user", or leave_delay to 0.',
        )
    elif options.leave_delay > MAX_LEAVE_DELAY:
        yield (
            f"leave_delay of {where} must be at most {MAX_LEAVE_DELAY} seconds.",
            "It is the time that a reload of a page takes: some seconds.",
        )


@of_the_service(
    "E056",
    'It needs map "recoverable" or "ephemeral", map_key "client" or "user", and neither map_publish'
    " nor map_remove_on_unsubscribe.",
)
def _check_presence_maps(config: Config) -> Found:
    named = {
        name for o in (config.channel, *config.namespaces.values()) for name in o.presence_maps
    }
    for name in sorted(named):
        shown = config.options_of_namespace(name) if config.channel_namespace_boundary else None
        if (
            shown is None
            or not name
            or shown.map not in ("ephemeral", "recoverable")
            or not shown.map_key
            or shown.map_publish
            or shown.map_remove_on_unsubscribe
        ):
            yield f"presence_maps names {name!r}, which is no namespace of presence maps."


@of_channels("E057")
def _check_map(where: str, options: ChannelOptions) -> Found:
    if options.map == "ephemeral" and (options.history_size or options.history_lifetime):
        yield (
            f"The maps of {where} are ephemeral, and keep no history.",
            "Remove history_size and history_lifetime, or set map to recoverable.",
        )
    if options.map and options.join_on_read:
        yield (
            f"join_on_read of {where} would join changes of different keys.",
            "Turn join_on_read off, or remove map.",
        )
    if options.map and options.force_recovery_mode == "cache":
        yield (
            f'force_recovery_mode "cache" of {where} would leave out changes of other keys.',
            "Remove force_recovery_mode, or map.",
        )
    if options.map_remove_on_unsubscribe and options.map_key != "client":
        yield (
            f'map_remove_on_unsubscribe of {where} needs map_key "client".',
            "Set map_key to client, so that no other client puts this key.",
        )


@of_channels("E044", f'pip install "{name_patterns.PACKAGE}"')
def _check_package_of_patterns(where: str, options: ChannelOptions) -> Found:
    if isinstance(_refusal_of(options.channel_regex), ImportError):
        yield f"channel_regex of {where} needs the package google-re2."


@of_channels(
    "E041",
    "It has the syntax of RE2; for example ^[a-z0-9-]+$. There are no (?=...), no references to"
    " groups and no possessive repeats, and the end is $ or \\z, not \\Z.",
)
def _check_name_pattern(where: str, options: ChannelOptions) -> Found:
    if isinstance(error := _refusal_of(options.channel_regex), re.error):
        yield f"channel_regex of {where} is not a regular expression that can be used: {error}."


def _refusal_of(expression: str) -> ImportError | re.error | None:
    try:
        if expression:
            name_patterns.compiled(expression)
    except (ImportError, re.error) as error:
        return error
    return None


@of_the_service("E023")
def _check_personal_channel(config: Config) -> Found:
    if not config.user_subscribe_to_personal:
        return
    if not config.channel_user_boundary:
        yield (
            "user_subscribe_to_personal needs channel_user_boundary.",
            "Without a boundary, every client may subscribe to every personal channel.",
        )
    options = config.options_of_namespace(config.user_personal_channel_namespace)
    if options and options.allow_subscribe_for_client and not options.allow_user_limited_channels:
        yield (
            "The namespace of the personal channels needs allow_user_limited_channels.",
            "Without it, every client may subscribe to every personal channel.",
        )


@of_the_service("E008", "Add it to namespaces.")
def _check_personal_namespace(config: Config) -> Found:
    name = config.user_personal_channel_namespace
    if config.user_subscribe_to_personal and config.options_of_namespace(name) is None:
        yield f"user_personal_channel_namespace {name!r} is not configured."


@of_the_service("E009", "Turn presence on at the top level or in user_personal_channel_namespace.")
def _check_single_connection(config: Config) -> Found:
    options = config.options_of_namespace(config.user_personal_channel_namespace)
    is_on = config.user_subscribe_to_personal and config.user_personal_single_connection
    if is_on and options is not None and not options.presence:
        yield "user_personal_single_connection needs presence in the personal channels."


@of_the_service("E012", "Otherwise presence expires before the service refreshes it.")
def _check_presence_intervals(config: Config) -> Found:
    if config.client_presence_expire_interval <= config.client_presence_ping_interval:
        yield "client_presence_expire_interval must be more than client_presence_ping_interval."


@of_the_service("E040", "Otherwise the next ping is sent before the answer to the last one is due.")
def _check_ping_intervals(config: Config) -> Found:
    if config.pong_timeout >= config.ping_interval:
        yield "pong_timeout must be less than ping_interval."


@of_the_service("E011", "Use *, ?, [..] and {a,b}; for example https://*.example.org.")
def _check_origins(config: Config) -> Found:
    for pattern in config.allowed_origins or ():
        try:
            origins.compiled(pattern)
        except ValueError as error:
            yield f"allowed_origins: {error}."


@of_the_service("E041", "It has the syntax of Python's module re; for example ^[a-z0-9-]+$.")
def _check_expressions_of_tokens(config: Config) -> Found:
    for name in ("token_audience_regex", "token_issuer_regex"):
        try:
            compiled(config.value_of(name))
        except (re.error, RecursionError, OverflowError) as error:
            yield f"{name} is not a regular expression that can be used: {error}."


@of_the_service("E060", "Write Unix time in seconds, as date +%s prints it.")
def _check_previous_keys(config: Config) -> Found:
    for options in dict.fromkeys((config.connection_tokens, config.subscription_tokens)):
        if options.hmac_previous_secret_key_valid_until >= _MILLISECONDS:
            name = options.name_of("hmac_previous_secret_key_valid_until")
            yield f"{name} is later than the year 5000: it is in milliseconds."


def bad_paths(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the paths that no URL has.

    Yields:
        The option, what is wrong, and what to write.
    """
    for name in _PATHS:
        path = getattr(config, name)
        if not path.startswith("/"):
            yield name, "does not begin with a slash", f"/{path}"
        elif path.endswith("/") and name in _WITH_MORE:
            yield name, "ends with a slash", path.rstrip("/") or getattr(Config(), name)


@of_the_service("E026")
def _check_paths(config: Config) -> Found:
    for name, mistake, right in bad_paths(config):
        yield f"{name} {getattr(config, name)!r} {mistake}.", f"Write {right}."

    used: dict[str, str] = {}
    for name, path in _paths_in_use(config):
        if (other := used.setdefault(path.rstrip("/"), name)) != name:
            text = f"{name} and {other} are the same path, {path!r}."
            yield text, f"Change one of them, or leave {name} out."


def _paths_in_use(config: Config) -> Iterator[tuple[str, str]]:
    if not config.websocket_disable:
        yield "websocket_handler_prefix", config.websocket_handler_prefix
    if not config.sockjs_disable:
        yield "sockjs_handler_prefix", config.sockjs_handler_prefix
    if config.serves_metrics:
        yield "metrics_handler_prefix", config.metrics_handler_prefix
    if config.health:
        for name in ("live", "ready"):
            yield "health_handler_prefix", f"{config.health_handler_prefix.rstrip('/')}/{name}"


@of_the_service("E025")
def _check_sockjs_iframe(config: Config) -> Found:
    if not config.sockjs_iframe or config.sockjs_disable:
        return
    try:
        if config.allowed_origins is None:
            raise ValueError("allowed_origins is not set")
        for pattern in filter(origins.is_pattern, config.allowed_origins):
            origins.frame_ancestors(pattern)
    except ValueError as error:
        yield (
            f"sockjs_iframe needs to know which origins may frame its page: {error}.",
            "Set allowed_origins to origins such as https://example.org or https://*.example.org.",
        )
    if not _SCRIPT_URL.fullmatch(config.sockjs_url):
        yield (
            "sockjs_url is not the URL of a script.",
            "Use an https URL, or a path of this site such as /static/sockjs.min.js.",
        )
    elif not config.sockjs_url.startswith("/") and not config.sockjs_script[1]:
        yield (
            "sockjs_url names another host, and sockjs_integrity is not set.",
            "Set sockjs_integrity, or serve the file on this site: /static/sockjs.min.js.",
        )


@of_the_service("E020")
def _check_endpoints(config: Config) -> Found:
    for kind, proxy in config.proxies.items():
        if proxy.endpoint and not _is_http_url(proxy.endpoint):
            # the URL itself stays out of the message: it may hold a password
            text = f"proxy_{kind}_endpoint is not an http or https URL."
            yield text, f"For example https://app.example.org/realtime/{kind}."


@of_the_service("E045", "For example 127.0.0.1, 10.0.0.0/8 or fd00::/8.")
def _check_metrics_addresses(config: Config) -> Found:
    for address in config.metrics_addresses or ():
        try:
            ip_network(address, strict=False)
        except ValueError:
            yield f"metrics_addresses: {address!r} is neither an address nor a network."


@of_the_service("E046", 'pip install "django-realtime-messaging[metrics]"')
def _check_package_of_metrics(config: Config) -> Found:
    if config.serves_metrics and find_spec("prometheus_client") is None:
        yield "Metrics need the package prometheus-client."


@of_the_service(
    "E048",
    "A rate is a number for a second (s), minute (m) or hour (h): 10/s, 30/m burst 60.",
)
def _check_rates(config: Config) -> Found:
    for name, read in limit_options.RATES.items():
        try:
            getattr(config, read)
        except ValueError as error:
            yield f"{name}: {error}."


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and url.isprintable()
            and " " not in url
        )
    except ValueError:
        return False
