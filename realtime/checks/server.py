"""The server that runs the service."""

from __future__ import annotations

from django.core import checks

from realtime.checks.base import Messages
from realtime.config.sources import Given
from realtime.transports.servers import daphne


def check_daphne(given: Given) -> Messages:
    """W005: unknown version of daphne; clients get no disconnect advice."""
    if not daphne.is_loaded() or (reason := daphne.problem()) is None:
        return []
    return [
        checks.Warning(
            f"Clients of this daphne get no disconnect advice: {reason}.",
            hint="Use a daphne version this package was tested with, see requirements.txt.",
            id="realtime.W005",
        )
    ]
