"""Errors of the HTTP API alone. Their codes are ours: the protocol has none.

docs/http-api.md.
"""

from __future__ import annotations

from realtime.errors import Error


class EngineAway(Error):
    """The reply for an `EngineUnavailable`: the command was not run."""

    code, message = 300, "engine unavailable"


class OutcomeUnknown(Error):
    """The reply for a `NoReply`: the command may have been run."""

    code, message = 301, "outcome unknown"
