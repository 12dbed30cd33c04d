"""Checks of typed channels: that their types can be used, and that their patterns match."""

from __future__ import annotations

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.sources import Report
from realtime.hooks.deciding import may_match
from realtime.hooks.patterns import Pattern


def check_declarations(report: Report) -> list[CheckMessage]:
    """E052: two typed channels are declared for the same channels, or one has a type that no
    library knows.
    """
    types = report.config.types
    return [
        checks.Error(problem, hint="Correct the call of realtime.channel.", id="realtime.E052")
        for problem in ([] if types is None else types.problems())
    ]


def check_declared_patterns(report: Report) -> list[CheckMessage]:
    """W056: the pattern of a typed channel names a namespace that is not configured."""
    config = report.config
    return [
        checks.Warning(
            f"The typed channel {text!r} matches no channel: its namespace is not configured.",
            hint="Add the namespace to the option namespaces, or correct the pattern.",
            id="realtime.W056",
        )
        for text in ([] if config.types is None else config.types.patterns())
        if not any(may_match(Pattern(text), name, config) for name in ("", *config.namespaces))
    ]
