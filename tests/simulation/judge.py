"""Judge: what was acknowledged, delivered and told, and the promises that it must keep.

A *view* is what one client knows of one channel, from a moment at which it was told to begin (the
first subscribe, or a recovery that failed) to the next one. Within a view nothing may be missing,
doubled or out of order, untold:

    began at a position ── delivered: the next offset ──► ... ── told ──► a new view begins

Invariants, of which each failure is a sentence in `failures`:

    next       a view is delivered the offset after the last one, in its epoch
    once       a view is delivered no publication twice
    truth      what is delivered was published, in this channel, and with these data
    order      a view is delivered a publication that was acknowledged before another one began
               before that one
    complete   at the end, when all faults are over, a view has everything that was acknowledged
               since it began, and ends at the top of its stream
    silent     nothing is pushed to a client before it is subscribed, and after it is not any more
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.simulation.world import World

MAX_FAILURES = 20


@dataclass(slots=True)
class Publishing:
    """One publication as its publisher knows it."""

    number: int
    channel: str
    began: float
    acknowledged: float | None = None
    offset: int = 0
    epoch: str = ""


@dataclass(slots=True)
class View:
    """See the module."""

    client: str
    channel: str
    epoch: str
    offset: int
    began: float
    start: int = 0
    numbers: list[int] = field(default_factory=list)
    """What was delivered, from the offset after `start` on."""


class Judge:
    """See the module."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.failures: list[str] = []
        self.publishings: dict[int, Publishing] = {}
        self.views: dict[tuple[str, str], View] = {}
        """The last view of each client and channel."""
        self._seen: dict[tuple[str, str], set[int]] = {}
        self.deliveries = 0
        self.told = 0
        self.faults = 0
        self.trace: list[str] | None = None
        """What happened, if it is recorded."""

    def note(self, text: str) -> None:
        """Record what happened."""
        if self.trace is not None:
            self.trace.append(f"{self._world.now:10.6f} {text}")

    def fail(self, text: str) -> None:
        """Record that a promise was broken."""
        self.note(f"FAILURE {text}")
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(f"at {self._world.now:.3f} s: {text}")

    # publishers

    def begin(self, channel: str) -> Publishing:
        """Record that a publication begins; its data is its number."""
        number = len(self.publishings) + 1
        publishing = self.publishings[number] = Publishing(number, channel, self._world.now)
        return publishing

    def acknowledge(self, publishing: Publishing, offset: int = 0, epoch: str = "") -> None:
        """Record that a publisher was told that its publication is out."""
        publishing.acknowledged = self._world.now
        publishing.offset, publishing.epoch = offset, epoch
        self.note(f"published {publishing.number} in {publishing.channel} at {offset}:{epoch}")

    # clients

    def begin_view(self, client: str, channel: str, offset: int, epoch: str) -> None:
        """Record that a client was told to begin with what follows a position."""
        self.told += 1
        self.note(f"{client} begins in {channel} after {offset}:{epoch}")
        if (old := self.views.get((client, channel))) is not None:
            self._check_order(old)
        self._seen.pop((client, channel), None)
        self.views[client, channel] = View(
            client, channel, epoch, offset, self._world.now, start=offset
        )

    def enter(self, client: str, channel: str) -> None:
        """Record that a client is subscribed anew to a channel without history."""
        self._seen.pop((client, channel), None)

    def deliver(self, client: str, channel: str, number: int, offset: int) -> None:
        """Record that a publication reached a client; `offset`: 0 without history."""
        self.deliveries += 1
        if self.trace is not None:
            self.note(f"{client} gets {number} of {channel} at {offset}")
        publishing = self.publishings.get(number)
        if publishing is None or publishing.channel != channel:
            self.fail(f"{client} was delivered {number} in {channel}, which was not published")
        seen = self._seen.setdefault((client, channel), set())
        if number in seen:
            self.fail(f"{client} was delivered {number} of {channel} twice")
        seen.add(number)
        if not offset:
            return
        view = self.views.get((client, channel))
        if view is None:
            self.fail(f"{client} was delivered {number} in {channel} before it began there")
            return
        if offset != view.offset + 1:
            self.fail(
                f"{client} was delivered offset {offset} of {channel} after {view.offset}, untold"
            )
        view.offset = offset
        view.numbers.append(number)

    # the end

    def _check_order(self, view: View) -> None:
        soonest, publishings = float("inf"), self.publishings
        for number in reversed(view.numbers):
            publishing = publishings.get(number)
            if publishing is None:
                continue  # `deliver` has said so
            if publishing.began > soonest:
                self.fail(
                    f"{view.client} was delivered {number} of {view.channel} before one that was"
                    " acknowledged when it began"
                )
            if publishing.acknowledged is not None and publishing.acknowledged < soonest:
                soonest = publishing.acknowledged

    def check_complete(self, subscribed: Mapping[tuple[str, str], tuple[int, str]]) -> None:
        """Check the views of clients that are subscribed, when all faults are over.

        Args:
            subscribed: of client and channel, the top of the stream as it is kept.
        """
        by_channel: dict[str, list[Publishing]] = {}
        for publishing in self.publishings.values():
            if publishing.offset:
                by_channel.setdefault(publishing.channel, []).append(publishing)
        for view in self.views.values():
            self._check_order(view)
        for key, top in subscribed.items():
            view = self.views[key]
            if (view.offset, view.epoch) != top:
                self.fail(
                    f"{view.client} is at {view.offset}:{view.epoch} of {view.channel},"
                    f" whose top is {top[0]}:{top[1]}"
                )
            self._check_view(view, by_channel.get(view.channel, []))

    def _check_view(self, view: View, publishings: list[Publishing]) -> None:
        for each in publishings:
            if each.epoch != view.epoch:
                if each.began > view.began:
                    self.fail(f"{view.client} is in epoch {view.epoch}, and {each} is in another")
            elif each.offset > view.start:
                at = each.offset - view.start - 1
                delivered = view.numbers[at] if at < len(view.numbers) else None
                # one that was lost before the view began is in no view
                is_due = each.acknowledged is not None and each.acknowledged > view.began
                if delivered != each.number and is_due:
                    self.fail(
                        f"{view.client} misses {each.number} of {view.channel} at"
                        f" {each.offset}:{each.epoch}, which was acknowledged, untold"
                    )
