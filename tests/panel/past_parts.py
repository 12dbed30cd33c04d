"""Answers of nodes about the last hour, as tests of the panel make them up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from admin_panel.past import Past
from realtime.operators.questions import SLOT_SECONDS, Event, PastAnswer

NOW = datetime(2026, 3, 4, 12, 0, 3, tzinfo=UTC)
LAST = int(NOW.timestamp()) // SLOT_SECONDS
"""The number of the newest sample."""


def answer(
    uid: str = "U1",
    slots: range | list[int] = range(LAST - 5, LAST + 1),
    *,
    started: float | None = None,
    now: float = NOW.timestamp(),
    options: str = "",
    events: tuple[Event, ...] = (),
    **figures: Any,
) -> PastAnswer:
    """A node; a figure that is one number has it in each sample. It started before the first."""
    numbers = list(slots)
    if started is None:
        started = (numbers[0] - 1) * SLOT_SECONDS if numbers else now
    columns = {"span": [SLOT_SECONDS * 1000] * len(numbers)}
    for name, value in figures.items():
        name = name.replace("__", ":")
        columns[name] = value if isinstance(value, list) else [value] * len(numbers)
    return PastAnswer(
        node=uid,
        name=f"node {uid}",
        now=now,
        started=started,
        options=options,
        slots=numbers,
        samples=columns,
        events=list(events),
    )


def past(*answers: PastAnswer, missing: tuple[str, ...] = ()) -> Past:
    """The past of some nodes."""
    return Past.of(answers, missing, NOW)


def event(kind: str, seconds: float = 0, text: str = "", subject: str = "", **more: float) -> Event:
    """An event so many seconds before now."""
    at = NOW.timestamp() - seconds
    return Event(kind, at, at, int(more.get("count", 1)), text, subject, more.get("number", 0))
