"""Checks of the ASGI server."""

from __future__ import annotations

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.sources import Report
from realtime.transports.servers import daphne


def check_daphne(report: Report) -> list[CheckMessage]:
    """W005: unknown version of daphne; no disconnect advice, and the root path is ignored."""
    if not daphne.is_loaded() or (reason := daphne.problem()) is None:
        return []
    return [
        checks.Warning(
            "This version of daphne sends clients no disconnect advice, and the path at which it"
            f" mounts the site is ignored: {reason}.",
            hint="Use a version that this package is tested with, see requirements.txt.",
            id="realtime.W005",
        )
    ]
