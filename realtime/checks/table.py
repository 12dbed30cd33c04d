"""The table of system checks. `@check` adds a row: an id, what finds mistakes, and a hint.

The docstring of a check says what its id reports: the table in docs/options.md is made from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.options import ChannelOptions, Config
from realtime.config.problems import Found as Found
from realtime.config.problems import with_hints
from realtime.config.sources import Report

Check: TypeAlias = Callable[[Report], list[CheckMessage]]
CHECKS: list[Check] = []
"""The checks of the options, in the order of their messages."""


def check(message_id: str, hint: str = "") -> Callable[[Callable[[Report], Found]], Check]:
    """Make a check of a function that yields the texts of its messages, and register it.

    Args:
        message_id: the id of the messages, such as "realtime.W001". W is a warning, E an error.
        hint: what to do about them.
    """
    kind = checks.Error if message_id.startswith("realtime.E") else checks.Warning

    def decorate(find: Callable[[Report], Found]) -> Check:
        @functools.wraps(find)
        def run(report: Report) -> list[CheckMessage]:
            pairs = with_hints(find(report), hint)
            return [kind(text, hint=its_hint, id=message_id) for text, its_hint in pairs]

        CHECKS.append(run)
        return run

    return decorate


def places(config: Config) -> dict[str, ChannelOptions]:
    """Return where channel options are set: its name for people → the options."""
    return {"the top level": config.channel} | {
        f"namespace {name!r}": options for name, options in config.namespaces.items()
    }
