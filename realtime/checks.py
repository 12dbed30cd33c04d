"""System checks: mistakes in the configuration surface at start, each with its own id.

The rules themselves are in `options_reader` and `redis_options` (pure), `conf` and
`tokens.keys`; here they get ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string

from realtime import checks_panel, conf, origin, pages
from realtime.checks_panel import SECRET_LEAST_BYTES
from realtime.hooks.registry import registry
from realtime.options import Config
from realtime.options_reader import NOT_USED, read
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
    "proxy_endpoint": "realtime.E020",
}
"""Rule of a `Problem` → id of the check."""


def check_options(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E001 to E009, E011 to E020: options that cannot be used."""
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
    return [
        checks.Warning(
            f"Option {name!r} is not used: {NOT_USED[name]}.",
            hint="Remove it, or silence realtime.W001.",
            id="realtime.W001",
        )
        for name in sorted(conf.gather().options)
        if name in NOT_USED
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
    # without the second option it does not hold, see E022
    open_panel = config.admin and config.admin_insecure and config.admin_insecure_in_production
    return [
        checks.Warning(
            f"{option} is on: {danger}.",
            hint="Turn it off outside of development.",
            id="realtime.W004",
        )
        for option, is_on, danger in (
            (
                "client_insecure",
                config.client_insecure,
                "anyone may connect, subscribe and publish",
            ),
            ("api_insecure", config.api_insecure, "anyone who reaches the server API may use it"),
            ("admin_insecure", open_panel, "anyone who reaches the panel may do everything in it"),
        )
        if is_on
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


def check_proxies(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W010: clients are refused because the application is to be asked, and nobody answers."""
    config = _config()
    messages: list[checks.CheckMessage] = []
    for kind, endpoint, functions in (
        ("subscribe", config.proxy_subscribe_endpoint, registry.subscribe),
        ("publish", config.proxy_publish_endpoint, registry.publish),
    ):
        if endpoint:
            continue
        messages.extend(
            checks.Warning(
                f"proxy_{kind} is on in {place}, and nobody can be asked: clients get error 108.",
                hint=f"Set proxy_{kind}_endpoint, or register a function with @hooks.{kind} in"
                " a module realtime.py of an app.",
                id="realtime.W010",
            )
            for place, name, options in (
                ("the top level", "", config.channel),
                *((f"namespace {n!r}", n, options) for n, options in config.namespaces.items()),
            )
            if getattr(options, f"proxy_{kind}")
            and not any(_may_match(pattern.text, name, config) for pattern, _ in functions)
        )
    return messages


def _may_match(pattern: str, namespace: str, config: Config) -> bool:
    """Whether a pattern may match a channel of a namespace, judged by how it begins."""
    literal = re.split(r"[*{]", pattern, maxsplit=1)[0]
    beginning = literal.removeprefix(config.channel_private_prefix)
    boundary = config.channel_namespace_boundary
    if not boundary:
        return not namespace
    if boundary in beginning:
        return beginning.partition(boundary)[0] == namespace
    if not namespace:
        return True
    return literal != pattern and f"{namespace}{boundary}".startswith(beginning)


def check_token_keys_of_views(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E030, E031: the views of `realtime.urls` cannot make tokens that are accepted."""
    config = _config()
    if pages.find_view("refresh") is None:
        return []
    if not config.token_hmac_secret_key:
        return [
            checks.Error(
                "realtime.urls is included, and there is no key to sign tokens with.",
                hint="Set token_hmac_secret_key; manage.py realtime genconfig makes one.",
                id="realtime.E030",
            )
        ]
    if config.token_jwks_public_endpoint:
        return [
            checks.Error(
                "realtime.urls is included, and the tokens it makes are refused: with"
                " token_jwks_public_endpoint only tokens of that key set are accepted.",
                hint="Remove realtime.urls, or token_jwks_public_endpoint.",
                id="realtime.E031",
            )
        ]
    return []


def check_login_of_views(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W020: the views of `realtime.urls` are asked by users and see nobody."""
    if pages.find_view("refresh") is None or _has_login():
        return []
    return [
        checks.Warning(
            "realtime.urls is included, and its views do not know who is logged in.",
            hint="Add django.contrib.auth.middleware.AuthenticationMiddleware to MIDDLEWARE, or"
            " silence realtime.W020 if another middleware sets request.user.",
            id="realtime.W020",
        )
    ]


def _has_login() -> bool:
    if not apps.is_installed("django.contrib.auth"):
        return False
    from django.contrib.auth.middleware import AuthenticationMiddleware

    middleware = map(import_string, settings.MIDDLEWARE)
    return any(isinstance(m, type) and issubclass(m, AuthenticationMiddleware) for m in middleware)


def check_private_channels(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W021: functions decide about private channels, and nobody asks them."""
    prefix = _config().channel_private_prefix
    if not prefix or pages.find_view("subscribe") is not None:
        return []
    return [
        checks.Warning(
            f"Nobody asks the function for the private channels {pattern.text!r}.",
            hint='Include the views that do: path("centrifuge/", include("realtime.urls")).',
            id="realtime.W021",
        )
        for pattern, _ in registry.subscribe
        if pattern.text.startswith(prefix)
    ]


def check_patterns(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W022: functions decide about channels of a namespace that is not configured."""
    config = _config()
    texts = dict.fromkeys(pattern.text for pattern, _ in (*registry.subscribe, *registry.publish))
    return [
        checks.Warning(
            f"No channel matches the pattern {text!r} of a function: its namespace is unknown.",
            hint="Add the namespace to namespaces, or correct the pattern.",
            id="realtime.W022",
        )
        for text in texts
        if not any(_may_match(text, name, config) for name in ("", *config.namespaces))
    ]


def check_login_sessions(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """E021: clients are to be known by sessions that the site does not have."""
    needed = ("django.contrib.auth", "django.contrib.sessions")
    missing = [name for name in needed if not apps.is_installed(name)]
    if not _config().session_authentication or not missing:
        return []
    return [
        checks.Error(
            f"session_authentication needs {' and '.join(missing)} in INSTALLED_APPS.",
            hint="Install it, or let clients bring tokens.",
            id="realtime.E021",
        )
    ]


def check_believed_origins(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W011: a page of any site can connect as whoever is logged in."""
    config = _config()
    if not config.session_authentication or config.allowed_origins is None:
        return []
    if not origin.is_allowed(_SOME_ORIGIN, config.allowed_origins):
        return []
    return [
        checks.Warning(
            "Browsers send session cookies from pages of any site, and allowed_origins lets all"
            " of them in: each can connect as whoever is logged in.",
            hint="Name your own origins in allowed_origins, or none for the same origin only.",
            id="realtime.W011",
        )
    ]


def check_origins_of_endpoint(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W013: a page of any site can connect with the cookies of whoever looks at it."""
    config = _config()
    if not config.proxy_connect_endpoint:
        return []
    if not origin.is_allowed(_SOME_ORIGIN, config.allowed_origins):
        return []
    return [
        checks.Warning(
            "proxy_connect_endpoint is given the cookies of the handshake, and pages of any site"
            " may connect: where it knows users by cookies, each can connect as its visitor.",
            hint="Name your own origins in allowed_origins, or silence realtime.W013 if the"
            " endpoint looks at no cookies, or at Origin.",
            id="realtime.W013",
        )
    ]


_SOME_ORIGIN = "https://somewhere.invalid"
"""An origin that nobody owns."""


def check_secret_length(
    app_configs: Sequence[AppConfig] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W012: the secret that signs tokens is short enough to be guessed."""
    secret = _config().token_hmac_secret_key
    if settings.DEBUG or not 0 < len(secret.encode()) < SECRET_LEAST_BYTES:
        return []
    return [
        checks.Warning(
            f"token_hmac_secret_key is shorter than {SECRET_LEAST_BYTES} bytes.",
            hint="manage.py realtime genconfig makes a new one; tokens have to be made anew.",
            id="realtime.W012",
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
    check_proxies,
    check_token_keys_of_views,
    check_login_of_views,
    check_private_channels,
    check_patterns,
    check_login_sessions,
    check_believed_origins,
    check_origins_of_endpoint,
    check_secret_length,
    *checks_panel.CHECKS,
)


def register() -> None:
    """Register every check."""
    for check in CHECKS:
        checks.register(check, TAG)


def _config() -> Config:
    """What can be used of the configuration; the mistakes are in `check_options`."""
    return read(conf.gather().options)[0]
