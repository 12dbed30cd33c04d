"""A relay that looks when a test says so, in the thread of the test."""

from __future__ import annotations

from typing import Any

import realtime
from realtime.pending.relay import RelayThread
from realtime.server_api.durable import RelayCounters
from realtime.serving import serving


class Relaying:
    """A relay without its thread."""

    def __init__(self, database: str = "default") -> None:
        self.counters = RelayCounters()
        self.thread = RelayThread(serving, self.counters)
        self.database = database

    def look(self, times: int = 3) -> float:
        """Look, as after so many rings. Returns what the last look waits for."""
        return [self.thread._look(self.database) for _ in range(times)][-1]

    def rested(self) -> None:
        """Let the time pass for which a failure keeps it from looking."""
        self.thread._not_before.clear()
        self.thread._busy.clear()

    def close(self) -> None:
        self.thread._bell.close()


def data(channel: str) -> list[Any]:
    """The data in the stream of a channel."""
    return [publication["data"] for publication in realtime.history(channel)]
