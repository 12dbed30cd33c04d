"""The app of answers, without what it adds to the service: tests add that."""

from __future__ import annotations

from realtime.answers.apps import AnswersConfig
from realtime.config import parts


class AnswersWithoutHooks(AnswersConfig):
    def ready(self) -> None:
        parts.Part.ready(self)
