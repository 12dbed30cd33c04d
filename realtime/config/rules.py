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
from realtime.config.channel_options import PER_USER
from realtime.config.expressions import compiled
from realtime.config.options import ChannelOptions, Config, Problem

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


def check(config: Config) -> Iterator[Problem]:
    """Yield the mistakes in the options of the whole service."""
    yield from _check_personal_channel(config)
    yield from _check_presence_intervals(config)
    yield from _check_ping_intervals(config)
    yield from _check_origins(config)
    yield from _check_expressions_of_tokens(config)
    yield from _check_previous_keys(config)
    yield from _check_paths(config)
    yield from _check_sockjs_iframe(config)
    yield from _check_endpoints(config)
    yield from _check_metrics(config)
    yield from _check_rates(config)
    yield from redis_options.problems(config)
    yield from database_options.problems(config)


def check_channel(where: str, options: ChannelOptions) -> Iterator[Problem]:
    """Yield the mistakes in the options of the top level, or of one namespace.

    Args:
        where: the place of the options, for people.
        options: the options.
    """
    if options.force_recovery and not options.keeps_history:
        yield Problem(
            "E007",
            f"history_recover of {where} needs history_size and history_lifetime.",
            "Set both to more than 0, or turn history_recover off.",
        )
    if options.leave_delay and options.join_leave != PER_USER:
        yield Problem(
            "E050",
            f'leave_delay of {where} needs join_leave "user".',
            'Set join_leave to "user", or leave_delay to 0.',
        )
    elif options.leave_delay > MAX_LEAVE_DELAY:
        yield Problem(
            "E050",
            f"leave_delay of {where} must be at most {MAX_LEAVE_DELAY} seconds.",
            "It is the time that a reload of a page takes: some seconds.",
        )
    yield from _check_name_pattern(where, options.channel_regex)


def _check_name_pattern(where: str, expression: str) -> Iterator[Problem]:
    if not expression:
        return
    try:
        name_patterns.compiled(expression)
    except ImportError:
        yield Problem(
            "E044",
            f"channel_regex of {where} needs the package google-re2.",
            f'pip install "{name_patterns.PACKAGE}"',
        )
    except re.error as error:
        yield Problem(
            "E041",
            f"channel_regex of {where} is not a regular expression that can be used: {error}.",
            "It has the syntax of RE2; for example ^[a-z0-9-]+$. There are no (?=...), no"
            " references to groups and no possessive repeats, and the end is $ or \\z, not \\Z.",
        )


def _check_expression(name: str, expression: str) -> Iterator[Problem]:
    try:
        compiled(expression)
    except (re.error, RecursionError, OverflowError) as error:
        yield Problem(
            "E041",
            f"{name} is not a regular expression that can be used: {error}.",
            "It has the syntax of Python's module re; for example ^[a-z0-9-]+$.",
        )


def _check_expressions_of_tokens(config: Config) -> Iterator[Problem]:
    for name in ("token_audience_regex", "token_issuer_regex"):
        yield from _check_expression(name, config.value_of(name))


def _check_personal_channel(config: Config) -> Iterator[Problem]:
    if not config.user_subscribe_to_personal:
        return
    if not config.channel_user_boundary:
        yield Problem(
            "E023",
            "user_subscribe_to_personal needs channel_user_boundary.",
            "Without a boundary, every client may subscribe to every personal channel.",
        )
    options = config.options_of_namespace(config.user_personal_channel_namespace)
    if options and options.allow_subscribe_for_client and not options.allow_user_limited_channels:
        yield Problem(
            "E023",
            "The namespace of the personal channels needs allow_user_limited_channels.",
            "Without it, every client may subscribe to every personal channel.",
        )
    if options is None:
        yield Problem(
            "E008",
            f"user_personal_channel_namespace {config.user_personal_channel_namespace!r}"
            " is not configured.",
            "Add it to namespaces.",
        )
    elif config.user_personal_single_connection and not options.presence:
        yield Problem(
            "E009",
            "user_personal_single_connection needs presence in the personal channels.",
            "Turn presence on at the top level or in user_personal_channel_namespace.",
        )


def _check_presence_intervals(config: Config) -> Iterator[Problem]:
    if config.client_presence_expire_interval <= config.client_presence_ping_interval:
        yield Problem(
            "E012",
            "client_presence_expire_interval must be more than client_presence_ping_interval.",
            "Otherwise presence expires before the service refreshes it.",
        )


def _check_ping_intervals(config: Config) -> Iterator[Problem]:
    if config.pong_timeout >= config.ping_interval:
        yield Problem(
            "E040",
            "pong_timeout must be less than ping_interval.",
            "Otherwise the next ping is sent before the answer to the last one is due.",
        )


def _check_origins(config: Config) -> Iterator[Problem]:
    for pattern in config.allowed_origins or ():
        try:
            origins.check_pattern(pattern)
        except ValueError as error:
            yield Problem(
                "E011",
                f"allowed_origins: {error}.",
                "Use *, ?, [..] and {a,b}; for example https://*.example.org.",
            )


def _check_previous_keys(config: Config) -> Iterator[Problem]:
    for options in dict.fromkeys((config.connection_tokens, config.subscription_tokens)):
        if options.hmac_previous_secret_key_valid_until >= _MILLISECONDS:
            yield Problem(
                "E060",
                f"{options.name_of('hmac_previous_secret_key_valid_until')} is later than the year"
                " 5000: it is in milliseconds.",
                "Write Unix time in seconds, as date +%s prints it.",
            )


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


def _check_paths(config: Config) -> Iterator[Problem]:
    for name, mistake, right in bad_paths(config):
        path = getattr(config, name)
        yield Problem("E026", f"{name} {path!r} {mistake}.", f"Write {right}.")

    used: dict[str, str] = {}
    for name, path in _paths_in_use(config):
        if (other := used.setdefault(path.rstrip("/"), name)) != name:
            yield Problem(
                "E026",
                f"{name} and {other} are the same path, {path!r}.",
                f"Change one of them, or leave {name} out.",
            )


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


def _check_sockjs_iframe(config: Config) -> Iterator[Problem]:
    if not config.sockjs_iframe or config.sockjs_disable:
        return
    try:
        if config.allowed_origins is None:
            raise ValueError("allowed_origins is not set")
        for pattern in filter(origins.is_pattern, config.allowed_origins):
            origins.frame_ancestors(pattern)
    except ValueError as error:
        yield Problem(
            "E025",
            f"sockjs_iframe needs to know which origins may frame its page: {error}.",
            "Set allowed_origins to origins such as https://example.org or https://*.example.org.",
        )
    if not _SCRIPT_URL.fullmatch(config.sockjs_url):
        yield Problem(
            "E025",
            "sockjs_url is not the URL of a script.",
            "Use an https URL, or a path of this site such as /static/sockjs.min.js.",
        )
    elif not config.sockjs_url.startswith("/") and not config.sockjs_script[1]:
        yield Problem(
            "E025",
            "sockjs_url names another host, and sockjs_integrity is not set.",
            "Set sockjs_integrity, or serve the file on this site: /static/sockjs.min.js.",
        )


def _check_endpoints(config: Config) -> Iterator[Problem]:
    for kind, proxy in config.proxies.items():
        if proxy.endpoint and not _is_http_url(proxy.endpoint):
            # the URL itself stays out of the message: it may hold a password
            yield Problem(
                "E020",
                f"proxy_{kind}_endpoint is not an http or https URL.",
                f"For example https://app.example.org/realtime/{kind}.",
            )


def _check_metrics(config: Config) -> Iterator[Problem]:
    for address in config.metrics_addresses or ():
        try:
            ip_network(address, strict=False)
        except ValueError:
            yield Problem(
                "E045",
                f"metrics_addresses: {address!r} is neither an address nor a network.",
                "For example 127.0.0.1, 10.0.0.0/8 or fd00::/8.",
            )
    if config.serves_metrics and find_spec("prometheus_client") is None:
        yield Problem(
            "E046",
            "Metrics need the package prometheus-client.",
            'pip install "django-realtime-messaging[metrics]"',
        )


def _check_rates(config: Config) -> Iterator[Problem]:
    for name, read in limit_options.RATES.items():
        try:
            getattr(config, read)
        except ValueError as error:
            yield Problem(
                "E048",
                f"{name}: {error}.",
                "A rate is a number for a second (s), minute (m) or hour (h): 10/s, 30/m burst 60.",
            )


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
