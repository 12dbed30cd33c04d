"""A relay that looks when a test says so, in the thread of the test."""

from __future__ import annotations

from typing import Any

import pytest

import realtime
from realtime.pending import shards
from realtime.pending.models import Pending, at_once, now, shard_of
from realtime.pending.relay import RelayThread
from realtime.server_api.durable import PendingRows, RelayCounters
from realtime.serving import serving


class Relaying:
    """A relay without its thread."""

    def __init__(self, database: str = "default") -> None:
        self.counters = RelayCounters()
        self.thread = RelayThread(serving, self.counters)
        self.database = database

    def look(self, times: int = 3) -> float:
        """Look, as if it was woken so many times. Returns what the last look waits for."""
        return [self.thread._look(self.database) for _ in range(times)][-1]

    def rested(self) -> None:
        """Let the time pass for which a failure keeps it from looking."""
        self.thread._not_before.clear()
        self.thread._busy.clear()

    def close(self) -> None:
        self.thread._waker.close()


def operators() -> PendingRows:
    """What operators do with rows."""
    assert serving.pending is not None
    return serving.pending


def data(channel: str) -> list[Any]:
    """The data in the stream of a channel."""
    return [publication["data"] for publication in realtime.history(channel)]


def write(rows: list[Pending], database: str = "default") -> None:
    Pending.objects.using(database).bulk_create(rows, batch_size=500)


def row(channel: str, **fields: Any) -> Pending:
    given = {"data": "1", "due": at_once(), "created": now()} | fields
    return Pending(channel=channel, shard=shard_of(channel), **given)


def relay_all(relay: Relaying, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Relay what is due. A channel waits no time. Return the channels that wait, each time."""
    waits: list[str] = []

    def hold(_database: str, _shard: object, channels: dict[str, float]) -> None:
        waits.extend(channels)

    monkeypatch.setattr(shards, "hold", hold)
    rows = Pending.objects.using(relay.database).filter(due__isnull=False)
    for _ in range(5000):
        if not rows.exists():
            break
        relay.look(1)
    assert not rows.exists()
    return waits
