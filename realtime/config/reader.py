"""Read options: a plain mapping of names and values becomes a `Config`.

Pure: the mapping is settings, environment and file, merged already by `conf`. Every mistake
is reported, not the first one; the system checks show them one by one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import Field
from typing import Any
from urllib.parse import urlsplit

from realtime.config import origins, redis_options
from realtime.config.options import (
    CHANNEL_OPTION_FIELDS,
    CONFIG_FIELDS,
    KIND_WORDS,
    ChannelOptions,
    Config,
    Problem,
    kind_of,
)

NAMESPACE_NAME = re.compile(r"[-a-zA-Z0-9_]{2,}")
MINIMUM: Mapping[str, float] = {
    "client_presence_ping_interval": 1,
    "client_presence_expire_interval": 1,
    "redis_connect_timeout": 1,
    "redis_read_timeout": 1,
    "websocket_message_size_limit": -math.inf,
    "hook_timeout": 0.1,
    "hook_workers": 1,
}
"""Number option → its least value; 0 for all others."""
MAXIMUM = 2**53
"""The largest value of any number: milliseconds of as many seconds still fit into Redis' integers,
and Lua, which counts in floating point, is exact up to here."""


class InvalidOptions(ValueError):
    """The mapping is not a configuration. `problems` lists every mistake in it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


ALIASES: Mapping[str, str] = {"secret": "token_hmac_secret_key"}
"""Older names that are still read, when the newer one is not given."""

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
"""Options of the reference server that are read and not used → why. Not a mistake."""


def load(options: Mapping[str, object]) -> Config:
    """Make a `Config` of option names and values.

    Raises:
        InvalidOptions: with every problem found.
    """
    config, problems = read(options)
    if problems:
        raise InvalidOptions(problems)
    return config


def read(options: Mapping[str, object]) -> tuple[Config, list[Problem]]:
    """As `load`, but return the problems beside a config in which they are left out."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    channel: dict[str, Any] = {}
    for name, value in options.items():
        if name == "namespaces":
            continue
        known = ALIASES.get(name, name)
        if known != name and known in options:
            continue
        if known in CHANNEL_OPTION_FIELDS:
            _read_value(CHANNEL_OPTION_FIELDS[known], name, value, channel, problems)
        elif known in CONFIG_FIELDS:
            _read_value(CONFIG_FIELDS[known], name, value, values, problems)
        elif name not in NOT_USED:
            problems.append(
                Problem(
                    "unknown",
                    f"Unknown option {name!r}.",
                    "See docs/options.md for the names; they are lower case.",
                )
            )
    top = ChannelOptions(**channel)
    _check_recovery("the top level", top, problems)
    namespaces = _read_namespaces(options.get("namespaces"), problems)
    config = Config(channel=top, namespaces=namespaces, **values)
    _check_personal_channel(config, problems)
    _check_presence_intervals(config, problems)
    _check_origins(config, problems)
    _check_endpoints(config, problems)
    problems.extend(redis_options.problems(config))
    return config, problems


def _read_namespaces(value: object, problems: list[Problem]) -> dict[str, ChannelOptions]:
    namespaces: dict[str, ChannelOptions] = {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = ()
            problems.append(
                Problem("type", "Option 'namespaces' is not JSON.", "Write a JSON array.")
            )
    if value is None:
        return namespaces
    if not isinstance(value, list | tuple) or not all(isinstance(i, Mapping) for i in value):
        problems.append(
            Problem(
                "type",
                "Option 'namespaces' must be a list of objects.",
                'For example [{"name": "chat", "presence": True}].',
            )
        )
        return namespaces
    for item in value:
        name = item.get("name")
        if not isinstance(name, str) or not NAMESPACE_NAME.fullmatch(name):
            problems.append(
                Problem(
                    "namespace_name",
                    f"Namespace name {name!r} is not allowed.",
                    "Use at least two letters, digits, hyphens or underscores.",
                )
            )
            continue
        if name in namespaces:
            problems.append(
                Problem(
                    "namespace_duplicate",
                    f"Namespace {name!r} is configured twice.",
                    "Namespace names are unique.",
                )
            )
            continue
        namespaces[name] = _read_namespace(name, item, problems)
    return namespaces


def _read_namespace(
    name: str, item: Mapping[str, object], problems: list[Problem]
) -> ChannelOptions:
    values: dict[str, Any] = {}
    for option, value in item.items():
        if option in CHANNEL_OPTION_FIELDS:
            label = f"{option} of namespace {name}"
            _read_value(CHANNEL_OPTION_FIELDS[option], label, value, values, problems)
        elif option != "name":
            problems.append(
                Problem(
                    "unknown",
                    f"Unknown option {option!r} in namespace {name!r}.",
                    "A namespace takes channel options only; see docs/options.md.",
                )
            )
    options = ChannelOptions(**values)
    _check_recovery(f"namespace {name!r}", options, problems)
    return options


def _read_value(
    option: Field[Any], label: str, value: object, into: dict[str, Any], problems: list[Problem]
) -> None:
    kind = kind_of(option)
    match value:
        case list() | tuple() if kind == "list" and all(isinstance(item, str) for item in value):
            into[option.name] = tuple(value)
            return
        case bool() if kind == "bool":
            into[option.name] = value
            return
        case str() if kind == "str":
            into[option.name] = value
            return
        # as the config files of the reference server may have them
        case int() if option.name == "redis_port" and not isinstance(value, bool):
            into[option.name] = str(value)
            return
        case list() | tuple() if option.name == "redis_sentinels" and all(
            isinstance(item, str) for item in value
        ):
            into[option.name] = ",".join(value)
            return
        case int() | float() if _is_number(kind, value):
            least = MINIMUM.get(option.name, 0)
            if least <= value <= MAXIMUM:
                into[option.name] = value
            else:
                bound = f"at least {least}" if value < least else f"at most {MAXIMUM}"
                meaning = str(option.metadata["meaning"])
                problems.append(Problem("range", f"Option {label!r} must be {bound}.", meaning))
            return
    # the value itself stays out of the message: it may be a secret
    problems.append(
        Problem(
            "type",
            f"Option {label!r} must be {KIND_WORDS[kind]}, not {type(value).__name__}.",
            str(option.metadata["meaning"]),
        )
    )


def _is_number(kind: str, value: float) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return kind in ("int", "float")
    return kind == "float" and math.isfinite(value)


def _check_recovery(where: str, options: ChannelOptions, problems: list[Problem]) -> None:
    if options.history_recover and not options.keeps_history:
        problems.append(
            Problem(
                "recover_without_history",
                f"history_recover of {where} needs history_size and history_lifetime.",
                "Set both to more than 0, or turn history_recover off.",
            )
        )


def _check_personal_channel(config: Config, problems: list[Problem]) -> None:
    if not config.user_subscribe_to_personal:
        return
    options = config.options_of_namespace(config.user_personal_channel_namespace)
    if options is None:
        problems.append(
            Problem(
                "personal_namespace",
                f"user_personal_channel_namespace {config.user_personal_channel_namespace!r}"
                " is not configured.",
                "Add it to namespaces.",
            )
        )
    elif config.user_personal_single_connection and not options.presence:
        problems.append(
            Problem(
                "personal_presence",
                "user_personal_single_connection needs presence in the personal channels.",
                "Turn presence on at the top level or in user_personal_channel_namespace.",
            )
        )


def _check_presence_intervals(config: Config, problems: list[Problem]) -> None:
    if config.client_presence_expire_interval <= config.client_presence_ping_interval:
        problems.append(
            Problem(
                "presence_intervals",
                "client_presence_expire_interval must be more than client_presence_ping_interval.",
                "Otherwise clients vanish from presence before they are renewed.",
            )
        )


def _check_origins(config: Config, problems: list[Problem]) -> None:
    for pattern in config.allowed_origins or ():
        try:
            origins.check_pattern(pattern)
        except ValueError as error:
            problems.append(
                Problem(
                    "origin_pattern",
                    f"allowed_origins: {error}.",
                    "Use *, ?, [..] and {a,b}; for example https://*.example.org.",
                )
            )


def _check_endpoints(config: Config, problems: list[Problem]) -> None:
    for kind in ("connect", "refresh", "subscribe", "publish", "rpc"):
        name = f"proxy_{kind}_endpoint"
        url: str = getattr(config, name)
        if url and not _is_http_url(url):
            # the URL itself stays out of the message: it may hold a password
            problems.append(
                Problem(
                    "proxy_endpoint",
                    f"{name} is no http(s) URL.",
                    f"For example https://app.example.org/realtime/{kind}.",
                )
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


def from_strings(strings: Mapping[str, str]) -> dict[str, object]:
    """Turn option values from the environment into typed ones, as far as their type tells.

    Keys are option names. Booleans are true/false/1/0, lists are separated by spaces,
    `namespaces` is a JSON array, an empty string means "not set". A value that does not
    fit stays a string, for `load` to report.
    """
    values: dict[str, object] = {}
    for name, text in strings.items():
        if not text.strip():
            continue
        known = ALIASES.get(name, name)
        option = CHANNEL_OPTION_FIELDS.get(known) or CONFIG_FIELDS.get(known)
        values[name] = text if option is None else _from_string(kind_of(option), text)
    return values


def _from_string(kind: str, text: str) -> object:
    match kind:
        case "bool":
            return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        case "int":
            return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
        case "float":
            return float(text) if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text) else text
        case "list":
            return text.split()
        case _:
            return text
