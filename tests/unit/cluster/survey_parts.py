"""What the tests of surveys share."""

from __future__ import annotations

from realtime.cluster.survey import ClientReport
from tests.unit.parts import RecordingClient


class Reporting(RecordingClient):
    """A client that reports what the test says."""

    def __init__(self, client_id: str, channels: list[str], age: float = 1.0) -> None:
        super().__init__(client_id)
        self._channels = channels
        self._age = age

    def report(self, max_channels: int) -> ClientReport:
        some = self._channels[:max_channels]
        return ClientReport(self.id, "websocket", self._age, len(self._channels), some)
