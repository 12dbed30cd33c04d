"""The past of the service: the samples and events of all nodes in the last hour, put together.

Samples of nodes with the same number belong to the same ten seconds, also where the clock of a node
is wrong: its samples are moved by the difference. A node that runs and has no sample makes the sum
of these seconds partial: it is never taken for zero.

The nodes are asked at most once in `REMEMBERED`, however many pages are open. What was read last
stays, for pages that are shown while the engine is away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from django.utils import timezone
from msgspec import Struct

from . import service
from .service import SLOT_SECONDS, Event, PastAnswer, Unavailable

REMEMBERED = 5.0
"""Seconds for which an answer counts: nodes take a sample every ten."""
FAILED = 1.0
"""Seconds for which a failure counts, for those that waited meanwhile."""
SHOWN = 3600 // SLOT_SECONDS
"""Samples of an hour."""
SAME = 60.0
"""Seconds within which two nodes see the same event."""
SEEN_BY_ALL = frozenset(
    {"node_started", "node_stopped", "node_silent", "node_back", "blocked", "unblocked"}
)
"""Kinds of events that every node sees."""
OPTIONS_CHANGED = "options"
"""An event that no node tells: a node has other options than the one that started before it."""


class NodePast:
    """What one node keeps of the last hour."""

    def __init__(self, answer: PastAnswer, at: float) -> None:
        """`at`: when it answered, Unix seconds by the clock of this process."""
        self.uid = answer.node
        self.name = answer.name
        self.options = answer.options
        self._samples = answer.samples
        late = at - answer.now
        slots = round(late / SLOT_SECONDS)
        # a difference of less than half a slot is the way of the answer
        self._late = late if slots else 0.0
        self.started = answer.started + self._late
        self.slots = [slot + slots for slot in answer.slots]
        """The numbers of its samples."""
        self._known = frozenset(self.slots)
        self.events = [self._moved(event) for event in answer.events]

    def _moved(self, event: Event) -> Event:
        if not self._late:
            return event
        first, last = event.first + self._late, event.last + self._late
        return Event(event.kind, first, last, event.count, event.text, event.subject, event.number)

    def has(self, slot: int) -> bool:
        """Return whether there is a sample with this number."""
        return slot in self._known

    def ran_at(self, slot: int) -> bool:
        """Return whether the node should have such a sample, because it ran."""
        return self.started <= (slot - 1) * SLOT_SECONDS

    def states(self, name: str) -> list[int]:
        """Return a figure that goes up and down, in each sample."""
        return self._samples.get(name) or [0] * len(self.slots)

    def rates(self, name: str) -> list[float]:
        """Return in a second what was counted, in each sample."""
        spans = zip(self.states(name), self.states("span"), strict=True)
        return [count * 1000 / span if span else 0.0 for count, span in spans]

    def names(self, prefix: str) -> list[str]:
        """Return the figures whose names begin so."""
        return [name for name in self._samples if name.startswith(prefix)]

    def total(self, name: str, slots: range) -> int:
        """Return the sum of a figure over these samples."""
        counts = zip(self.slots, self.states(name), strict=True)
        return sum(count for slot, count in counts if slot in slots)


class ServiceEvent(Struct, frozen=True, gc=False):
    """An event, and the nodes that saw it."""

    event: Event
    nodes: tuple[str, ...]
    """Their names, sorted."""


class Past:
    """The past of some nodes, as it was at one moment."""

    def __init__(self, nodes: Sequence[NodePast], missing: Sequence[str], at: datetime) -> None:
        """
        Args:
            nodes: those that answered.
            missing: the names of those that did not.
            at: when that was.
        """
        self.nodes = list(nodes)
        self.missing = list(missing)
        self.at = at
        last = int(at.timestamp()) // SLOT_SECONDS
        self.slots = range(last - SHOWN, last + 1)
        """The numbers of the samples of this hour, oldest first."""

    @classmethod
    def of(cls, answers: Sequence[PastAnswer], missing: Sequence[str], at: datetime) -> Past:
        """Put the answers of nodes together."""
        nodes = [NodePast(answer, at.timestamp()) for answer in answers]
        return cls(sorted(nodes, key=lambda node: (node.name, node.uid)), missing, at)

    def of_node(self, uid: str) -> Past | None:
        """Return the past of one node; None if it did not answer."""
        nodes = [node for node in self.nodes if node.uid == uid]
        return Past(nodes, (), self.at) if nodes else None

    @cached_property
    def sampled(self) -> dict[int, int]:
        """Sample → how many nodes have it, for those that any node has."""
        counts: dict[int, int] = {}
        for node in self.nodes:
            for slot in node.slots:
                counts[slot] = counts.get(slot, 0) + 1
        return {slot: counts[slot] for slot in self.slots if slot in counts}

    @cached_property
    def partial(self) -> frozenset[int]:
        """The samples that a node has not although it ran, and that others have."""
        return frozenset(
            slot
            for slot, number in self.sampled.items()
            if number < len(self.nodes)
            and any(node.ran_at(slot) and not node.has(slot) for node in self.nodes)
        )

    def has(self, name: str) -> bool:
        """Return whether a node has a figure that was not 0 all the time."""
        return any(name in node.names(name) for node in self.nodes)

    def closed(self) -> list[tuple[str, int]]:
        """Return close code → connections that ended with it in this hour, most first."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            for name in node.names("closed:"):
                code = name.partition(":")[2]
                counts[code] = counts.get(code, 0) + node.total(name, self.slots)
        shown = [(code, number) for code, number in counts.items() if number]
        return sorted(shown, key=lambda row: (-row[1], row[0]))

    @cached_property
    def events(self) -> list[ServiceEvent]:
        """The events of all nodes, newest first; what several nodes saw once."""
        told = [(event, node.name) for node in self.nodes for event in node.events]
        told += [(event, event.text) for event in self._changed_options()]
        told.sort(key=_since)
        found: list[tuple[Event, set[str] | tuple[str]]] = []
        same: dict[tuple[str, str], tuple[Event, set[str]]] = {}
        for event, name in told:
            if event.kind not in SEEN_BY_ALL:
                found.append((event, (name,)))
                continue
            key = (event.kind, event.subject)
            known = same.get(key)
            if known is not None and event.first - known[0].first < SAME:
                known[1].add(name)
                continue
            same[key] = (event, {name})
            found.append(same[key])
        return [ServiceEvent(event, tuple(sorted(names))) for event, names in reversed(found)]

    def _changed_options(self) -> list[Event]:
        nodes = sorted(self.nodes, key=lambda node: node.started)
        return [
            Event(OPTIONS_CHANGED, node.started, node.started, 1, node.name)
            for before, node in pairwise(nodes)
            if node.options != before.options
        ]


def _since(told: tuple[Event, str]) -> float:
    """Return when an event happened for the first time."""
    return told[0].first


class _Memory:
    """What this process has read of the past. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._known: Past | None = None
        self._failed: Unavailable | None = None
        self._until = 0.0

    @property
    def known(self) -> Past | None:
        """What was read last; None before."""
        return self._known

    def read(self) -> Past:
        """Return the past, asking the nodes if what is known is older than `REMEMBERED`.

        Raises:
            Unavailable: the service does not answer.
        """
        with self._lock:  # requests that come meanwhile wait for the same answer
            if time.monotonic() >= self._until:
                self._ask()
            if self._failed is not None:
                raise self._failed
            assert self._known is not None
            return self._known

    def _ask(self) -> None:
        try:
            surveyed = service.past()
        except Unavailable as unavailable:
            self._failed, self._until = unavailable, time.monotonic() + FAILED
        else:
            self._known = Past.of(surveyed.answers, surveyed.missing, timezone.now())
            self._failed, self._until = None, time.monotonic() + REMEMBERED


memory = _Memory()
"""That of this process."""
