"""System checks: mistakes in the configuration surface at start, each with its own id.

    options  what cannot be used, has no effect, or is misspelt
    access   what strangers may do, and whose pages may connect
    tokens   keys, and the views that make tokens
    engine   engine and channel layer
    hooks    who is asked
    server   the server that runs the service
    panel    the operators' panel by itself

The rules of single options are in `options_reader` and `redis_options` (pure), `conf` and
`tokens.keys`; here they get ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

from realtime.checks import access, engine, hooks, options, panel, server, tokens
from realtime.checks.base import Messages
from realtime.config import sources
from realtime.config.sources import Given

TAG = "realtime"

CHECKS: Sequence[Callable[[Given], Messages]] = (
    options.check_options,
    tokens.check_token_keys,
    access.check_origins,
    options.check_unused,
    options.check_environment,
    access.check_publish_permission,
    access.check_insecure,
    server.check_daphne,
    engine.check_channel_layer,
    engine.check_memory_engine,
    engine.check_sentinel,
    hooks.check_proxies,
    tokens.check_token_keys_of_views,
    tokens.check_login_of_views,
    hooks.check_private_channels,
    hooks.check_patterns,
    hooks.check_threads,
    access.check_login_sessions,
    access.check_believed_origins,
    access.check_origins_of_endpoint,
    tokens.check_secret_length,
    panel.check_insecure_panel,
    panel.check_panel_password,
    panel.check_panel_secrets,
    panel.check_panel_urls,
)
"""All of them, in the order in which their messages are told."""


def register() -> None:
    """Register them, as one check that reads the configuration once."""
    checks.register(run, TAG)


def run(app_configs: Sequence[AppConfig] | None = None, **_: Any) -> Messages:
    """Every message about the configuration as it is given just now."""
    given = sources.examine()
    return [message for check in CHECKS for message in check(given)]
