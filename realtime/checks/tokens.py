"""Checks of how long keys are, and of the views that sign tokens."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import import_string

from realtime.auth.issue import unnamed_party
from realtime.auth.keys import MIN_SECRET_BYTES
from realtime.checks.table import Found, check
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.config.token_options import TokenOptions
from realtime.pages import page_config

_SECRETS = {
    "hmac_secret_key": (
        "Make a new one with manage.py realtime genconfig, and issue all tokens again."
    ),
    "hmac_previous_secret_key": "Issue all tokens again, and remove it.",
}
"""Option → what to do if it is short."""


def _kinds(config: Config) -> list[TokenOptions]:
    """Return the options of connection tokens, and those of subscription tokens if they differ."""
    return list(dict.fromkeys((config.connection_tokens, config.subscription_tokens)))


def _signed_by_views(config: Config) -> list[TokenOptions]:
    """Return the options of the tokens that the views of `realtime.urls` sign."""
    return [] if page_config.find_view("refresh") is None else _kinds(config)


@check("realtime.E030")
def check_key_of_views(report: Report) -> Found:
    """E030: the views of `realtime.urls` have no key to sign tokens with."""
    for options in _signed_by_views(report.config):
        if not options.hmac_secret_key:
            yield (
                "realtime.urls is included, but there is no key to sign tokens with.",
                f"Set {options.prefix}_hmac_secret_key; manage.py realtime genconfig makes one.",
            )


@check("realtime.E031")
def check_key_set_of_views(report: Report) -> Found:
    """E031: the views of `realtime.urls` sign tokens that the service rejects."""
    for options in _signed_by_views(report.config):
        if options.hmac_secret_key and options.jwks_public_endpoint:
            name = options.name_of("jwks_public_endpoint")
            yield (
                "realtime.urls is included, but the service rejects the tokens that it signs: with"
                f" {name}, only keys of that key set are accepted.",
                f"Remove realtime.urls, or {name}.",
            )


@check("realtime.E042")
def check_parties_of_views(report: Report) -> Found:
    """E042: the views of `realtime.urls` do not know the audience or the issuer to name in tokens.

    Of both, a regular expression alone does not say what to write.
    """
    for options in _signed_by_views(report.config):
        can_sign = options.hmac_secret_key and not options.jwks_public_endpoint
        if can_sign and (party := unnamed_party(options)):
            name = options.name_of(party)
            yield (
                f"realtime.urls is included, but the tokens that it signs name no {party} that"
                f" {name}_regex matches.",
                f"Set {name} to a value that matches, too, or remove realtime.urls.",
            )


@check("realtime.W012")
def check_secret_length(report: Report) -> Found:
    """W012: an HMAC key of tokens, or the key before it, is short."""
    for options in [] if settings.DEBUG else _kinds(report.config):
        for name, hint in _SECRETS.items():
            if 0 < len(getattr(options, name).encode()) < MIN_SECRET_BYTES:
                yield f"{options.name_of(name)} is shorter than {MIN_SECRET_BYTES} bytes.", hint


@check(
    "realtime.W020",
    "Add django.contrib.auth.middleware.AuthenticationMiddleware to MIDDLEWARE, or silence"
    " realtime.W020 if another middleware sets request.user.",
)
def check_login_of_views(report: Report) -> Found:
    """W020: the views of `realtime.urls` do not know who is logged in."""
    if page_config.find_view("refresh") is not None and not _has_login():
        yield "realtime.urls is included, but nothing sets request.user."


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
