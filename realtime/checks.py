"""System checks: mistakes in the configuration surface at start, each with its own id.

The rules themselves are in `options_reader` (pure) and `tokens.keys`; here they get ids.
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
}
"""Rule of `options_reader` → id of the check."""


def check_options(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E001 to E009, E011, E012: options that cannot be used."""
    sources = conf.gather()
    problems = read(sources.options)[1]
    return [
        checks.Error(problem.message, hint=problem.hint, id=OPTION_ERRORS[problem.rule])
        for problem in (*sources.problems, *problems)
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


CHECKS = (
    check_options,
    check_token_keys,
    check_origins,
    check_unused,
    check_environment,
    check_publish_permission,
    check_insecure,
    check_daphne,
)


def register() -> None:
    """Register every check."""
    for check in CHECKS:
        checks.register(check, TAG)


def _config() -> Config:
    """What can be used of the configuration; its mistakes are E001 to E009."""
    return read(conf.gather().options)[0]
