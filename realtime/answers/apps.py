"""The Django app of answers."""

from __future__ import annotations

from django.core.checks import register

from realtime.config import parts


class AnswersConfig(parts.Part):
    """Gives the site answers, and their namespace to the service."""

    name = "realtime.answers"
    label = "realtime_answers"
    verbose_name = "Realtime: answers of language models"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add namespace, permission, methods and sweeper to the service, and the checks."""
        super().ready()
        from realtime.answers.checks import CHECKS
        from realtime.answers.setup import install

        for check in CHECKS:
            register(check, "realtime")
        install()
