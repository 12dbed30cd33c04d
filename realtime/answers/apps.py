"""The Django app of answers."""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config import parts
from realtime.config.sources import configuration


class AnswersConfig(parts.Part):
    """Gives the site answers, and their namespace to the service."""

    name = "realtime.answers"
    label = "realtime_answers"
    verbose_name = "Realtime: answers of language models"

    def ready(self) -> None:
        """Add namespace, permission, methods and sweeper to the service, and the check."""
        super().ready()
        from realtime.answers.setup import install

        checks.register(check_namespace, "realtime")
        install()


def check_namespace(**_: Any) -> list[CheckMessage]:
    """E067: answers cannot use their namespace."""
    boundary = configuration.examine().config.channel_namespace_boundary
    if boundary == ":":
        return []
    return [
        checks.Error(
            "realtime.answers names its channels answer:ID, and channel_namespace_boundary is"
            f" {boundary!r}.",
            hint='Leave channel_namespace_boundary at ":".',
            id="realtime.E067",
        )
    ]
