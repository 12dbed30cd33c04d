"""What the tests of publishing and transactions share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from realtime.server_api import transactions
from realtime.server_api.transactions import Publications

Sent = list[tuple[str, bytes]]
"""Channel and data of what went out, in order."""


def record(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What goes out from now on, at the moment it does; nothing goes further."""
    sent: Sent = []

    def take(publications: Publications) -> bool:
        sent.extend((channel, data.json) for channel, data in publications)
        return False

    monkeypatch.setattr(transactions, "capture", take)
    return sent


class Undo(Exception):
    """Rolls a transaction back."""


@contextmanager
def rolled_back(using: str = "default") -> Iterator[None]:
    """A transaction that fails at its end."""
    with pytest.raises(Undo), transaction.atomic(using=using):  # noqa: PT012
        yield
        raise Undo
