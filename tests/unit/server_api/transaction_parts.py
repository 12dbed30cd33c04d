"""Parts of the tests of publishing and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from realtime.server_api.transactions import UNKNOWN, Outcomes, Publications
from realtime.serving import serving

Sent = list[tuple[str, bytes]]
"""Channel and data of what went out, in order."""


def record(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Hand in a publisher that records, and sends nothing; returns what it records."""
    publisher = RecordingPublisher()
    monkeypatch.setattr(serving, "publisher", publisher)
    return publisher.sent


class RecordingPublisher:
    """Keeps what is sent, at the moment it is."""

    def __init__(self) -> None:
        self.sent: Sent = []

    def send(self, publications: Publications) -> Outcomes:
        self.sent.extend((new.channel, new.data.json) for new, _ in publications)
        return [UNKNOWN] * len(publications)

    async def asend(self, publications: Publications) -> Outcomes:
        return self.send(publications)


class Undo(Exception):
    """Rolls a transaction back."""


@contextmanager
def rolled_back(using: str = "default") -> Iterator[None]:
    """A transaction that fails at its end."""
    with pytest.raises(Undo), transaction.atomic(using=using):  # noqa: PT012
        yield
        raise Undo
