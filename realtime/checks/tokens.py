"""Checks of token keys, and of the views that sign tokens."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.utils.module_loading import import_string

from realtime.auth.issue import unnamed_party
from realtime.auth.keys import MIN_SECRET_BYTES, InvalidKey, configured_keys, previous_keys
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.config.token_options import TokenOptions
from realtime.pages import page_config


def check_token_keys(report: Report) -> list[CheckMessage]:
    """E010: a token key is not valid."""
    try:
        for options in (report.config.connection_tokens, report.config.subscription_tokens):
            configured_keys(options)
            previous_keys(options)
    except InvalidKey as error:
        hint = "A secret can be any text; public keys and certificates must be in PEM form."
        return [checks.Error(f"Option {error}.", hint=hint, id="realtime.E010")]
    return []


def check_secret_length(report: Report) -> list[CheckMessage]:
    """W012: an HMAC key of tokens, or the key before it, is short."""
    if settings.DEBUG:
        return []
    hints = {
        "hmac_secret_key": (
            "Make a new one with manage.py realtime genconfig, and issue all tokens again."
        ),
        "hmac_previous_secret_key": "Issue all tokens again, and remove it.",
    }
    return [
        checks.Warning(
            f"{options.option(name)} is shorter than {MIN_SECRET_BYTES} bytes.",
            hint=hint,
            id="realtime.W012",
        )
        for options in _kinds(report.config)
        for name, hint in hints.items()
        if 0 < len(getattr(options, name).encode()) < MIN_SECRET_BYTES
    ]


def _kinds(config: Config) -> list[TokenOptions]:
    """Return the options of connection tokens, and those of subscription tokens if they differ."""
    return list(dict.fromkeys((config.connection_tokens, config.subscription_tokens)))


def check_token_keys_of_views(report: Report) -> list[CheckMessage]:
    """Return why the views of `realtime.urls` cannot sign tokens that the service accepts.

    E030: the views of `realtime.urls` have no key to sign tokens with.
    E031: the views of `realtime.urls` sign tokens that the service rejects.
    E042: the views of `realtime.urls` do not know the audience or the issuer to name in tokens.
    """
    if page_config.find_view("refresh") is None:
        return []
    messages: list[CheckMessage] = []
    for options in _kinds(report.config):
        party = unnamed_party(options)
        if not options.hmac_secret_key:
            name = options.option("hmac_secret_key")
            messages.append(
                checks.Error(
                    "realtime.urls is included, but there is no key to sign tokens with.",
                    hint=f"Set {name}; manage.py realtime genconfig makes one.",
                    id="realtime.E030",
                )
            )
        elif options.jwks_public_endpoint:
            name = options.option("jwks_public_endpoint")
            messages.append(
                checks.Error(
                    "realtime.urls is included, but the service rejects the tokens that it signs:"
                    f" with {name}, only keys of that key set are accepted.",
                    hint=f"Remove realtime.urls, or {name}.",
                    id="realtime.E031",
                )
            )
        elif party:
            name = options.option(party)
            messages.append(
                checks.Error(
                    f"realtime.urls is included, but the tokens that it signs name no {party} that"
                    f" {name}_regex matches.",
                    hint=f"Set {name} to a value that matches, too, or remove realtime.urls.",
                    id="realtime.E042",
                )
            )
    return messages


def check_login_of_views(report: Report) -> list[CheckMessage]:
    """W020: the views of `realtime.urls` do not know who is logged in."""
    if page_config.find_view("refresh") is None or _has_login():
        return []
    return [
        checks.Warning(
            "realtime.urls is included, but nothing sets request.user.",
            hint="Add django.contrib.auth.middleware.AuthenticationMiddleware to MIDDLEWARE, or"
            " silence realtime.W020 if another middleware sets request.user.",
            id="realtime.W020",
        )
    ]


def _has_login() -> bool:
    if not apps.is_installed("django.contrib.auth"):
        return False
    from django.contrib.auth.middleware import AuthenticationMiddleware

    for path in settings.MIDDLEWARE:
        try:
            middleware = import_string(path)
        except ImportError:  # Django reports it, with more details
            continue
        if isinstance(middleware, type) and issubclass(middleware, AuthenticationMiddleware):
            return True
    return False
