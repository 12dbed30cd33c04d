"""The panel: it records while the toolbar handles a request, and shows what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from debug_toolbar.panels import Panel
from django.http import HttpRequest, HttpResponse
from django.template import Context, Engine

from realtime.debug.request_log import RequestLog
from realtime.tracing.recording import recorder

_TEMPLATES = Path(__file__).parent


class RealtimePanel(Panel):
    """Publications of a request, positions in its page, and tokens that it made."""

    is_async = True
    title = "Realtime"

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._log = RequestLog()

    @property
    def nav_subtitle(self) -> str:
        """Say how much there is."""
        stats = self.get_stats()
        counted = [
            f"{len(stats[name])} {word}{'' if len(stats[name]) == 1 else 's'}"
            for name, word in (("publications", "publication"), ("tokens", "token"))
            if stats.get(name)
        ]
        return ", ".join(counted) or "nothing published"

    @property
    def content(self) -> str:
        """Return the panel as HTML."""
        page = Engine(dirs=[str(_TEMPLATES)]).get_template("panel.html")
        return page.render(Context(self.get_stats()))

    def enable_instrumentation(self) -> None:
        """Record from now on."""
        recorder.set(self._log)

    def disable_instrumentation(self) -> None:
        """Record no longer."""
        recorder.set(None)
        self._log.close()

    def generate_stats(self, request: HttpRequest, response: HttpResponse) -> None:
        """Keep what was recorded."""
        self.record_stats(self._log.as_stats())
