"""Pending rows whose numbers a test chooses, and a database that answers when a test says so."""

from __future__ import annotations

import threading
from typing import Any

from realtime.server_api.durable import Overview, RelayCounters


class CountedRows:
    """The part of `PendingRows` that metrics read."""

    def __init__(self) -> None:
        self.counters = RelayCounters()
        self.questions = 0
        self.answers = threading.Event()
        """Set while the database answers."""
        self.answers.set()
        self.error: Exception | None = None

    def overview(self, databases: Any = None) -> Overview:
        self.questions += 1
        self.answers.wait()
        if self.error is not None:
            raise self.error
        return Overview(3, 2, 1, 61.5)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)
