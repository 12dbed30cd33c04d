"""System checks of answers."""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.sources import configuration


def check_namespace(**_: Any) -> list[CheckMessage]:
    """E067: answers cannot use their namespace."""
    boundary = configuration.examine().config.channel_namespace_boundary
    if boundary != ":":
        return [
            checks.Error(
                "realtime.answers names its channels answer:ID, and channel_namespace_boundary is"
                f" {boundary!r}.",
                hint='Leave channel_namespace_boundary at ":".',
                id="realtime.E067",
            )
        ]
    return []


CHECKS = (check_namespace,)
