"""System checks: they report mistakes in the configuration at start, each kind with its own id.

    options    mistakes in single options, options without effect, misspelt variables
    access     what anyone may do, and which pages may connect
    server     the ASGI server
    engine     engine and channel layer
    hooks      hooks and typed channels that are missing, or never called
    tokens     keys, and the views that sign tokens
    panel      the standalone panel
    installed  optional apps: durable publications, who is online
    effects    options that have no effect without another one
    site_settings
               settings of the site, and values, that defeat an option

`table` has the list of them. The rules of single options are in `config`; here they get their ids.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage
from django.core.checks.registry import registry

from realtime.checks import (  # noqa: F401 - each adds its checks to the table
    access,
    effects,
    engine,
    hooks,
    installed,
    options,
    panel,
    server,
    site_settings,
    tokens,
)
from realtime.checks.table import CHECKS as CHECKS
from realtime.config import sources
from realtime.config.parts import check_service

TAG = "realtime"

DATABASE_CHECKS: Sequence[Callable[..., list[CheckMessage]]] = (installed.check_pending,)
"""Those that query databases; Django runs them for `check --database` and `migrate`."""

OF_SOURCES = (
    options.check_options,
    options.check_token_keys,
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
