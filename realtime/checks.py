"""System checks: mistakes in the configuration surface at start, each with its own id.

The rules themselves are in `options_reader` and `redis_options` (pure), `conf` and
`tokens.keys`; here they get ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from realtime import conf
from realtime.options import Config
from realtime.options_reader import NO_EFFECT, NOT_USED, read
from realtime.redis_options import uses_redis
from realtime.tokens.keys import InvalidKey, configured_keys
from realtime.transports import daphne

TAG = "realtime"

OPTION_ERRORS: Mapping[str, str] = {
    "source": "realtime.E001",
    "unknown": "realtime.E002",
    "type": "realtime.E003",
    "range": "realtime.E004",
    "namespace_name": "realtime.E005",
    "namespace_duplicate": "realtime.E006",
    "recover_without_history": "realtime.E007",
    "personal_namespace": "realtime.E008",
    "personal_presence": "realtime.E009",
    "origin_pattern": "realtime.E011",
    "presence_intervals": "realtime.E012",
    "engine": "realtime.E013",
    "redis_url": "realtime.E014",
    "redis_host": "realtime.E015",
    "redis_sentinels": "realtime.E016",
    "redis_meta_ttl": "realtime.E017",
    "layer_without_redis": "realtime.E018",
    "layer": "realtime.E019",
}
"""Rule of a `Problem` → id of the check."""


def check_options(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E001 to E009, E011 to E019: options that cannot be used."""
    sources = conf.gather()
    config, problems = read(sources.options)
    return [
        checks.Error(problem.message, hint=problem.hint, id=OPTION_ERRORS[problem.rule])
        for problem in (*sources.problems, *problems, *conf.layer_problems(config))
    ]


def check_token_keys(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E010: a token key is not one."""
    try:
        configured_keys(_config())
    except InvalidKey as error:
        hint = "Secrets are any text; public keys and certificates are in PEM form."
        return [checks.Error(f"Option {error}.", hint=hint, id="realtime.E010")]
    return []


def check_origins(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W006: a pattern in allowed_origins never matches."""
    return [
        checks.Warning(
            f"The pattern {pattern!r} in allowed_origins never matches.",
            hint="Origins are compared in lower case; write the pattern so.",
            id="realtime.W006",
        )
        for pattern in _config().allowed_origins or ()
        if pattern != pattern.lower()
    ]


def check_unused(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W001: options that are read and have no effect here."""
    unused = {**NOT_USED, **NO_EFFECT}
    return [
        checks.Warning(
            f"Option {name!r} is not used: {unused[name]}.",
            hint="Remove it, or silence realtime.W001.",
            id="realtime.W001",
        )
        for name in sorted(conf.gather().options)
        if name in unused
    ]


def check_environment(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W002: environment variables with our prefix that name no option."""
    return [
        checks.Warning(
            f"The environment variable {variable} names no option.",
            hint="Correct the name, or change REALTIME_ENV_PREFIX if it is not meant for us.",
            id="realtime.W002",
        )
        for variable in conf.gather().unknown_variables
    ]


def check_publish_permission(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W003: publish without subscribe_to_publish opens private channels for publishing."""
    config = _config()
    places = {"the top level": config.channel} | {
        f"namespace {name!r}": options for name, options in config.namespaces.items()
    }
    return [
        checks.Warning(
            f"Any client may publish into any channel of {place}, private ones included.",
            hint="Set subscribe_to_publish, or silence realtime.W003 if that is intended.",
            id="realtime.W003",
        )
        for place, options in places.items()
        if options.publish and not options.subscribe_to_publish
    ]


def check_insecure(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W004: protection is off outside of development."""
    if settings.DEBUG:
        return []
    config = _config()
    return [
        checks.Warning(
            f"{option} is on: {danger}.",
            hint="Turn it off outside of development.",
            id="realtime.W004",
        )
        for option, danger in (
            ("client_insecure", "anyone may connect, subscribe and publish"),
            ("api_insecure", "anyone who reaches the server API may use it"),
        )
        if getattr(config, option)
    ]


def check_daphne(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W005: daphne is there, but not as this service knows it."""
    if not daphne.is_loaded() or (reason := daphne.problem()) is None:
        return []
    return [
        checks.Warning(
            f"Clients of this daphne get no disconnect advice: {reason}.",
            hint="Use a daphne version this package was tested with, see requirements.txt.",
            id="realtime.W005",
        )
    ]


def check_channel_layer(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W007: another layer than ours delivers, so numbering and publishing are two steps."""
    config = _config()
    backend = conf.channel_layers().get(config.channel_layer)
    if not uses_redis(config) or conf.layer_problems(config) or backend in (None, conf.OUR_LAYER):
        return []
    return [
        checks.Warning(
            f"With the channel layer {config.channel_layer!r} publishing takes two steps and a"
            " round trip more, and messages are delivered in any order until gaps are filled.",
            hint=f"Use {conf.OUR_LAYER}, or leave channel_layer empty.",
            id="realtime.W007",
        )
    ]


def check_memory_engine(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W008: the site has layers for several processes, the engine is for one."""
    redis_layers = [
        alias
        for alias, backend in conf.channel_layers().items()
        if backend == conf.OUR_LAYER or backend.startswith("channels_redis.")
    ]
    if settings.DEBUG or uses_redis(_config()) or not redis_layers:
        return []
    return [
        checks.Warning(
            f"CHANNEL_LAYERS has a Redis layer ({', '.join(map(repr, redis_layers))}), but the"
            " engine is memory: other processes are not reached.",
            hint="Set redis_url, or silence realtime.W008 if there is one process only.",
            id="realtime.W008",
        )
    ]


def check_sentinel(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W009: a failover may lose publications without a new epoch to tell of it."""
    config = _config()
    if not uses_redis(config) or not config.redis_sentinels or config.redis_epoch_per_run:
        return []
    return [
        checks.Warning(
            "A failover by Sentinel may lose the last publications, and clients would not"
            " learn it.",
            hint="Turn redis_epoch_per_run on, or silence realtime.W009 if that is accepted.",
            id="realtime.W009",
        )
    ]


CHECKS = (
    check_options,
    check_token_keys,
    check_origins,
    check_unused,
    check_environment,
    check_publish_permission,
    check_insecure,
    check_daphne,
    check_channel_layer,
    check_memory_engine,
    check_sentinel,
)


def register() -> None:
    """Register every check."""
    for check in CHECKS:
        checks.register(check, TAG)


def _config() -> Config:
    """What can be used of the configuration; the mistakes are in `check_options`."""
    return read(conf.gather().options)[0]
