"""What the system checks of the service say of some options."""

from __future__ import annotations

import inspect
import re
from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.test import override_settings

from realtime import checks
from realtime.config import database_options, nested, reader, redis_options, rules, sources

SECURE: dict[str, Any] = {"token_hmac_secret_key": "k" * 32, "api_key": "k"}
"""Options about which no check has something to say."""


def found(**options: object) -> list[CheckMessage]:
    """The messages about these options, and about the site as it is set up around the call."""
    with override_settings(REALTIME=options):
        return run_checks(
            tags=[checks.TAG], databases=[]
        )  # newer versions of Django ask all of them


def ids(messages: list[CheckMessage]) -> list[str | None]:
    """Their ids. Each message must say what to do."""
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


def ids_of_problems() -> set[str]:
    """The ids of mistakes in single options, which one check reports."""
    modules = (database_options, nested, reader, redis_options, rules, sources)
    return {
        f"realtime.{found}"
        for module in modules
        for found in re.findall(r'"(E[0-9]{3})"', inspect.getsource(module))
    }
