"""Samples: the figures of one node in the last hour, one every ten seconds.

A sample is taken at the end of each slot of `SLOT_SECONDS`. Slots are the same at every node, so
that samples of several nodes can be added up. A sample has the number of the slot that begins:

    slot       n-1   │    n    │   n+1   │ ...
    sample           n        n+1            n+1: what happened since the sample n

A loop that was held, or a process that was stopped, misses slots: they have no sample, and the next
one covers all of the time since the last one, which its `span` says. Nothing survives the process.

A sample has figures of two kinds: states of its moment, and what was counted since the last one.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import NamedTuple

from realtime.operators.questions import SLOT_SECONDS

KEPT = 3600 // SLOT_SECONDS
"""Samples that are kept: those of one hour."""

MAX_CODES = 40
"""Close codes that have figures of their own; a site chooses some of them."""

SPAN = "span"
"""The figure that says how long a sample is, milliseconds."""
CLOSED = "closed:"
"""Before the close code, in the names of the figures of connections that ended."""
OTHER = "closed:other"


class Reading(NamedTuple):
    """The figures of a node at one moment, by name, as whole numbers."""

    states: Mapping[str, int]
    """Figures that go up and down."""
    totals: Mapping[str, int]
    """Figures that only grow, since the start of the process."""


class Samples:
    """See the module. A sample takes eight bytes for each figure."""

    __slots__ = ("_before", "_columns", "_slots")

    def __init__(self) -> None:
        self._slots: array[int] = array("q")
        """The number of each sample; they grow."""
        self._columns: dict[str, array[int]] = {}
        """Figure → its value in each sample."""
        self._before: tuple[float, Mapping[str, int]] | None = None
        """When the totals were read last, Unix seconds, and what they were."""

    def begin(self, now: float, reading: Reading) -> None:
        """Count from this moment on. `now`: Unix seconds."""
        self._before = now, reading.totals

    def add(self, now: float, reading: Reading) -> Mapping[str, int] | None:
        """Take a sample.

        Args:
            now: Unix seconds.
            reading: the figures of this moment.

        Returns:
            The sample; None if there is one with this number, because the clock was set back by a
            little.
        """
        slot = int(now // SLOT_SECONDS)
        self._forget_later(slot)
        if self._slots and self._slots[-1] == slot:
            return None
        began, totals = self._before or (now, reading.totals)
        sample = dict(reading.states)
        sample[SPAN] = max(0, round((now - began) * 1000))
        for name, total in reading.totals.items():
            counted = max(0, total - totals.get(name, 0))
            column = self._column_of(name, sample)
            sample[column] = sample.get(column, 0) + counted
        self._before = now, reading.totals
        self._append(slot, sample)
        return sample

    def _forget_later(self, slot: int) -> None:
        """Forget samples that are of the future, because the clock was set back."""
        while self._slots and self._slots[-1] > slot:
            self._slots.pop()
            for column in self._columns.values():
                column.pop()

    def _column_of(self, name: str, sample: Mapping[str, int]) -> str:
        if not name.startswith(CLOSED) or name in self._columns:
            return name
        known = {*self._columns, *sample}
        codes = sum(other.startswith(CLOSED) for other in known)
        return name if codes < MAX_CODES else OTHER

    def _append(self, slot: int, sample: Mapping[str, int]) -> None:
        self._slots.append(slot)
        for name in sample:
            if name not in self._columns:
                self._columns[name] = array("q", bytes(8 * (len(self._slots) - 1)))
        for name, column in self._columns.items():
            column.append(sample.get(name, 0))
        if len(self._slots) > KEPT:
            for each in (self._slots, *self._columns.values()):
                del each[0]

    @property
    def slots(self) -> list[int]:
        """The number of each sample; they grow."""
        return self._slots.tolist()

    def figures(self) -> dict[str, list[int]]:
        """Return figure → its value in each sample, without figures that were 0 all the time."""
        return {name: column.tolist() for name, column in self._columns.items() if any(column)}
