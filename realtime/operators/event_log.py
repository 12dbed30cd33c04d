"""The event log of a node: what happened in the last time, for operators.

Equal events within `TOGETHER` are one, with a count. Of each kind the newest `KEPT_OF_A_KIND` are
kept. So a storm of one kind pushes out no others, and memory is bounded.

Records of the service's loggers are events, too, from WARNING on. Of them those are equal that have
the same template: the text is that of the first one. Texts are those of the log, and hold what it
holds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from realtime.operators.questions import Event

TOGETHER = 60.0
"""Seconds from the first of several equal events until the next one is another event."""
KEPT_OF_A_KIND = 50
MAX_TEXT = 300
"""Characters of a text that are kept."""

KINDS: Mapping[str, str] = {
    "node_started": "A node started. text: its name, subject: its ID.",
    "node_stopped": "A node stopped, and said so, or left the list. As `node_started`.",
    "node_silent": "A node sends no heartbeats. As `node_started`.",
    "node_back": "A silent node sends heartbeats again. As `node_started`.",
    "redis_away": "The engine was interrupted at this node.",
    "redis_back": "The engine is back.",
    "mass_disconnect": "Many connections ended within a slot. number: how many.",
    "slow_clients": "Clients were closed that did not read. number: how many.",
    "refused": "Connections were refused with status 503. number: how many.",
    "late_loop": "The event loop was late. number: milliseconds, the most.",
    "blocked": "A user was blocked. text and subject: the user.",
    "unblocked": "A block was ended. As `blocked`.",
    "warning": "A log line. text: the line.",
    "error": "A log line of level ERROR or above. text: the line.",
}
"""Kind → what it means, and what its events hold."""

GREATEST = frozenset({"late_loop"})
"""Kinds of which equal events have the greatest of their numbers; others have the sum."""


class _Kept:
    """An event that may still get more of its kind."""

    __slots__ = ("event", "key")

    def __init__(self, key: object, event: Event) -> None:
        self.key = key
        self.event = event


class EventLog:
    """See the module. Any thread may add events."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock`: returns Unix seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._of_kind: dict[str, deque[_Kept]] = {}
        self._newest: dict[tuple[str, object], _Kept] = {}
        """Kind and key → the event that takes equal ones; each is in `_of_kind`."""

    def add(
        self,
        kind: str,
        text: str = "",
        *,
        subject: str = "",
        number: float = 0,
        key: object = None,
        at: float | None = None,
    ) -> None:
        """Add an event, or count it as one more of an equal one.

        Args:
            kind: one of `KINDS`.
            text: what it is about.
            subject: the ID of what it is about, if other nodes see the same event.
            number: its figure.
            key: what equal events have in common; None: text and subject.
            at: when it happened, Unix seconds; None: now.
        """
        text, at = text[:MAX_TEXT], self._clock() if at is None else at
        key = (text, subject) if key is None else key
        with self._lock:
            known = self._newest.get((kind, key))
            if known is None or not 0 <= at - known.event.first < TOGETHER:
                self._keep(_Kept(key, Event(kind, at, at, 1, text, subject, number)))
                return
            event = known.event
            together = max(event.number, number) if kind in GREATEST else event.number + number
            known.event = replace(
                event, count=event.count + 1, last=max(event.last, at), number=together
            )

    def _keep(self, new: _Kept) -> None:
        kind = new.event.kind
        kept = self._of_kind.setdefault(kind, deque())
        if len(kept) >= KEPT_OF_A_KIND:
            oldest = kept.popleft()
            if self._newest.get((kind, oldest.key)) is oldest:
                del self._newest[kind, oldest.key]
        kept.append(new)
        self._newest[kind, new.key] = new

    def on_record(self, record: logging.LogRecord) -> None:
        """Add a record of a logger of the service. Never raises."""
        try:
            text = record.getMessage()
        except Exception:  # its arguments do not fit: logging itself reports that
            text = str(record.msg)
        kind = "error" if record.levelno >= logging.ERROR else "warning"
        self.add(kind, text, key=(record.name, str(record.msg)), at=record.created)

    def events(self) -> list[Event]:
        """Return what is kept, oldest first."""
        with self._lock:
            events = [each.event for kept in self._of_kind.values() for each in kept]
        return sorted(events, key=lambda event: event.first)
