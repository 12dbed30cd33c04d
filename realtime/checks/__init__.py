"""System checks: they report mistakes in the configuration at start, each kind with its own id.

    options  mistakes in single options, options without effect, misspelt variables
    effects  options that have no effect without another one
    site_settings
             settings of the site, and values, that defeat an option
    access   what anyone may do, and which pages may connect
    tokens   keys, and the views that sign tokens
    engine   engine and channel layer
    hooks    hooks that are missing, or never called
    server   the ASGI server
    panel    the standalone panel
    pending  durable publications
    online   who is online
    typed    typed channels

The rules of single options are in `config`; here they get their ids. The docstring of a check
says what each of its ids reports: the table in docs/options.md is made from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage
from django.core.checks.registry import registry

from realtime.checks import (
    access,
    effects,
    engine,
    hooks,
    online,
    options,
    panel,
    pending,
    server,
    site_settings,
    tokens,
    typed,
)
from realtime.config import sources
from realtime.config.parts import check_service
from realtime.config.sources import Report

TAG = "realtime"

CHECKS: Sequence[Callable[[Report], list[CheckMessage]]] = (
    options.check_options,
    tokens.check_token_keys,
    access.check_origins,
    options.check_json_encoder,
    options.check_unused,
    options.check_environment,
    options.check_history,
    options.check_namespaces,
    options.check_transports,
    access.check_ways_in,
    access.check_publish_permission,
    access.check_insecure,
    access.check_metrics,
    server.check_daphne,
    server.check_other_package,
    server.check_error_reports,
    server.check_asgi_application,
    server.check_runserver,
    server.check_api_urls,
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
    access.check_user_ids,
    access.check_origins_of_sessions,
    access.check_origins_of_endpoint,
    access.check_origins_of_hooks,
    access.check_recovered_history,
    tokens.check_secret_length,
    panel.check_insecure_panel,
    panel.check_panel_password,
    panel.check_panel_secrets,
    panel.check_panel_urls,
    pending.check_durable,
    online.check_online,
    online.check_joins_of_users,
    typed.check_declarations,
    typed.check_declared_patterns,
    effects.check_needs,
    site_settings.check_rows,
)
"""The checks of the options, in the order of their messages."""

DATABASE_CHECKS: Sequence[Callable[..., list[CheckMessage]]] = (pending.check_pending,)
"""Those that query databases; Django runs them for `check --database` and `migrate`."""

OF_SOURCES = (
    options.check_options,
    tokens.check_token_keys,
    options.check_unused,
    options.check_environment,
)
"""Those that are run after mistakes in the options."""

OF_PARTS: Sequence[Callable[..., list[CheckMessage]]] = (check_service,)
"""Those that apps of this package register themselves."""


def register() -> None:
    """Register the checks of the options as one, which reads the configuration once."""
    checks.register(run, TAG)
    for check in DATABASE_CHECKS:
        checks.register(check, checks.Tags.database, TAG)


def run(app_configs: Sequence[AppConfig] | None = None, **_: Any) -> list[CheckMessage]:
    """Return every message about the configuration as it is now."""
    report = sources.examine()
    # what is wrong has no value, so the others would report what follows from that
    to_run = OF_SOURCES if report.problems else CHECKS
    return [message for check in to_run for message in check(report)]


def run_apart(logger: logging.Logger) -> list[CheckMessage]:
    """Return every message of the checks with our tag, also where some of them raise.

    A check that raises is an error of its own, and hides no other one.

    Args:
        logger: gets the traceback.
    """
    messages: list[CheckMessage] = []
    for check in registry.get_checks():
        if TAG in check.tags:
            try:
                messages += check(app_configs=None, databases=None)
            except Exception as error:  # of the site: its routes are loaded, for example
                logger.exception("A system check could not be made")
                # the text of the error may hold what only the log may
                messages.append(
                    checks.Error(
                        f"A system check could not be made: it raised {type(error).__name__}.",
                        hint="The log of the process that shows this has the traceback.",
                    )
                )
    return messages
