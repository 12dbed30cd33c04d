"""Checks of single options: mistakes, options without effect, misspelt variables."""

from __future__ import annotations

from django.core import checks
from django.core.checks import CheckMessage

from realtime.auth.keys import InvalidKey, configured_keys, previous_keys
from realtime.checks.table import CHECKS, Found, check, places
from realtime.config.names import given_items
from realtime.config.nested_names import CHANNEL_UNUSED, why_unused
from realtime.config.options import find_option
from realtime.config.sources import Report
from realtime.hooks import site_values


def check_options(report: Report) -> list[CheckMessage]:
    """Return the mistakes in single options.

    E001: settings, environment or file cannot be read as options.
    E002: unknown option.
    E003: an option has the wrong type.
    E004: a number is outside its range.
    E005: the name of a namespace is not allowed.
    E006: two namespaces have the same name.
    E007: `history_recover` without history.
    E008: the namespace of the personal channels does not exist.
    E009: `user_personal_single_connection` without presence.
    E011: a pattern in `allowed_origins` is not valid.
    E012: presence expires before it is renewed.
    E013: unknown `engine`.
    E014: a URL in `redis_url` is not a Redis URL, or has an unknown parameter.
    E015: `redis_host` and `redis_port` are wrong or do not fit together.
    E016: Sentinels without master name, a master name without Sentinels, or wrong addresses.
    E017: `redis_history_meta_ttl` or `history_meta_ttl` is too short.
    E018: `channel_layer` without Redis.
    E019: `channel_layer` is not in `CHANNEL_LAYERS`, or is in memory.
    E020: a `proxy_*_endpoint` is not an http or https URL.
    E023: `user_subscribe_to_personal` without `channel_user_boundary` or
        `allow_user_limited_channels`.
    E025: `sockjs_iframe` without origins, or with a script that cannot be trusted.
    E026: a path, such as `websocket_handler_prefix`, does not begin with a slash, or is that of
        another service; `sockjs_handler_prefix` or `health_handler_prefix` ends with a slash.
    E028: `redis_wait_timeout` is not less than `redis_read_timeout`.
    E040: `pong_timeout` is not less than `ping_interval`.
    E041: a regular expression, such as `channel_regex`, is not valid.
    E043: an option of a config file with nested names is not supported.
    E044: `channel_regex` is set, and the package google-re2 is not installed.
    E045: `metrics_addresses` has something other than an address or a network.
    E046: metrics are on, and the package prometheus-client is not installed.
    E048: a limit is not a rate, such as `10/s`, or names a command that does not exist.
    E050: `leave_delay` without `join_leave` "user", or of more than 300 seconds.
    E053: `redis_partitions` has no use here, or does not fit the prefix.
    E054: `redis_cluster_addrs` is wrong, or another option names a Redis, too.
    E056: `presence_maps` names a namespace that cannot show presence.
    E057: `map` contradicts another option of the channels.
    E060: the end of a previous key is in milliseconds, and not in seconds.
    E062: options of the PostgreSQL engine are wrong, or do not fit together.
    """
    return [
        checks.Error(problem.message, hint=problem.hint, id=f"realtime.{problem.id}")
        for problem in report.problems
    ]


CHECKS.append(check_options)


@check(
    "realtime.E010", "A secret can be any text; public keys and certificates must be in PEM form."
)
def check_token_keys(report: Report) -> Found:
    """E010: a token key is not valid."""
    try:
        for options in (report.config.connection_tokens, report.config.subscription_tokens):
            configured_keys(options)
            previous_keys(options)
    except InvalidKey as error:
        yield f"Option {error}."


@check("realtime.W001", "Remove it, or silence realtime.W001.")
def check_unused(report: Report) -> Found:
    """W001: an option has no effect."""
    options = report.sources.options
    unused = {name: why for name in options if not find_option(name) and (why := why_unused(name))}
    for item in given_items(options):
        for key in item.keys() & CHANNEL_UNUSED.keys():
            unused[f"{key} of namespace {item.get('name')}"] = CHANNEL_UNUSED[key]
    for each in report.sources.file_options:
        if each.kind == "unused":
            unused[each.name] = each.meaning
    for name, counting in report.sources.without_effect.items():
        unused[name] = f"{counting} counts"
    for name, reason in sorted(unused.items()):
        yield f"Option {name!r} has no effect: {reason}."


@check(
    "realtime.W002",
    "Correct its name, or change REALTIME_ENV_PREFIX if it is not for this service.",
)
def check_environment(report: Report) -> Found:
    """W002: an environment variable with the prefix of the service is not an option."""
    for variable in report.sources.unknown_variables:
        yield f"The environment variable {variable} is not an option."


@check(
    "realtime.E024",
    "Name a class like django.core.serializers.json.DjangoJSONEncoder, or leave it empty.",
)
def check_json_encoder(report: Report) -> Found:
    """E024: `json_encoder` does not name a subclass of `json.JSONEncoder`."""
    try:
        if path := report.config.json_encoder:
            site_values.encoder(path)
    except Exception as error:  # what the import of any module may raise
        yield f"json_encoder cannot be loaded: {error}."


@check("realtime.W028")
def check_history(report: Report) -> Found:
    """W028: one of `history_size` and `history_lifetime` without the other keeps nothing."""
    size, lifetime = "history_size", "history_lifetime"
    for place, options in places(report.config).items():
        for there, missing in ((size, lifetime), (lifetime, size)):
            if getattr(options, there) and not getattr(options, missing):
                yield (
                    f"{place} has {there} without {missing}, so its channels keep no publications.",
                    f"Set {missing} too, or remove {there}.",
                )


@check(
    "realtime.W030",
    "Set it to the character that ends a namespace, such as a colon, or remove the namespaces.",
)
def check_namespaces(report: Report) -> Found:
    """W030: with an empty `channel_namespace_boundary`, no channel is in a namespace."""
    if report.config.namespaces and not report.config.channel_namespace_boundary:
        yield "channel_namespace_boundary is empty, so no channel belongs to any of the namespaces."
