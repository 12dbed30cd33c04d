"""Keys of tokens, and the views that make tokens."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string

from realtime import page_config
from realtime.auth.keys import SECRET_LEAST_BYTES, InvalidKey, configured_keys
from realtime.checks.base import Messages
from realtime.config.sources import Given


def check_token_keys(given: Given) -> Messages:
    """E010: a token key is not valid."""
    try:
        configured_keys(given.config)
    except InvalidKey as error:
        hint = "Secrets are any text; public keys and certificates are in PEM form."
        return [checks.Error(f"Option {error}.", hint=hint, id="realtime.E010")]
    return []


def check_secret_length(given: Given) -> Messages:
    """W012: `token_hmac_secret_key` is short."""
    secret = given.config.token_hmac_secret_key
    if settings.DEBUG or not 0 < len(secret.encode()) < SECRET_LEAST_BYTES:
        return []
    return [
        checks.Warning(
            f"token_hmac_secret_key is shorter than {SECRET_LEAST_BYTES} bytes.",
            hint="manage.py realtime genconfig makes a new one; tokens have to be made anew.",
            id="realtime.W012",
        )
    ]


def check_token_keys_of_views(given: Given) -> Messages:
    """Return why the views of `realtime.urls` cannot make tokens that are accepted.

    E030: the views of `realtime.urls` have no key to sign tokens with.
    E031: the views of `realtime.urls` sign tokens that the service rejects.
    """
    config = given.config
    if page_config.find_view("refresh") is None:
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


def check_login_of_views(given: Given) -> Messages:
    """W020: the views of `realtime.urls` do not know who is logged in."""
    if page_config.find_view("refresh") is None or _has_login():
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

    for path in settings.MIDDLEWARE:
        try:
            middleware = import_string(path)
        except ImportError:  # Django tells of it, with more to say
            continue
        if isinstance(middleware, type) and issubclass(middleware, AuthenticationMiddleware):
            return True
    return False
