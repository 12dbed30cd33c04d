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
    sent       what one connection of a client published is delivered in the order of its commands
    told       what the server API has ended is not delivered afterwards (`wishes`)
    owner      a session of a client has one owner as long as its claim
    prompt     a client is neither delayed nor closed because others read slowly
    place      no two publications are acknowledged at the same offset of an epoch
    epoch      a stream keeps its epoch as long as Redis loses nothing
    silent     nothing is pushed to a client before it is subscribed, and after it is not any more
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.simulation.world import World

MAX_FAILURES = 20
SLOW = 3008
"""Code with which a client is closed that does not read."""
PROMPT = 1.0
"""Seconds until a publication reaches each client, where nothing goes wrong."""


@dataclass(slots=True)
class Publishing:
    """One publication as its publisher knows it."""

    number: int
    channel: str
    began: float
    acknowledged: float | None = None
    offset: int = 0
    epoch: str = ""
    client: str = ""
    """The client that published it; "" where the site did."""
    is_durable: bool = False
    sender: str = ""
    """The connection of the client that published it, if that keeps the order; "" otherwise."""
    is_repeated: bool = False
    """Whether its publisher tried more than once, with an idempotency key."""
    has_places: bool = False
    """Whether it was lost, or published again after a loss, so that it has no one place."""
    version: int = 0
    is_refused: bool = False


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
        self._places: dict[tuple[str, str, int], int] = {}
        """What was acknowledged at each channel, epoch and offset."""
        self._seen: dict[tuple[str, str], set[int]] = {}
        self._passed: dict[tuple[str, str], set[int]] = {}
        """What came without an offset since the client came into the channel: at another node, it
        may come later."""
        self.deliveries = 0
        self.told = 0
        self.faults = 0
        self.closed_as_slow = 0
        self.most_unsent = 0
        """Bytes that waited for one client, at most."""
        self.slow: set[str] = set()
        """Clients that did not read for a while."""
        self.is_calm = False
        """Whether nothing goes wrong but slow readers: others are neither delayed nor closed."""
        self.is_prompt = False
        """Whether nothing goes wrong that delays clients which are subscribed."""
        self.may_miss = False
        """Whether nodes may be told nothing of a publication, until the next one shows it."""
        self.losses: list[float] = []
        """Since when the next publication was one that does not reach a node."""
        self._entered: dict[tuple[str, str], float] = {}
        self.sessions_last = False
        """Whether nothing goes wrong that can make a session forgotten, or its claim."""
        self.engine_lasts = False
        """Whether nothing goes wrong that can keep the engine from an answer."""
        self._forbidden: dict[tuple[str, str], float] = {}
        self.may_lose_keys = False
        """Whether Redis may have lost idempotency keys. Channels with history have other epochs
        then; in others, a repeated publication may come twice."""
        self.may_end_epochs = False
        """Whether Redis may have lost streams, or another server may have them."""
        self._epochs: dict[str, str] = {}
        self.on_failure: Callable[[str], object] | None = None
        """Called with each failure."""
        self.trace: list[str] | None = None
        """What happened, if it is recorded."""

    def note(self, text: str) -> None:
        """Record what happened."""
        if self.trace is not None:
            self.trace.append(f"{self._world.now:10.6f} {text}")

    def fail(self, text: str) -> None:
        """Record that a promise was broken."""
        self.note(f"FAILURE {text}")
        if self.on_failure is not None:
            self.on_failure(text)
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(f"at {self._world.now:.3f} s: {text}")

    def miss_engine(self, who: str, error: object) -> None:
        """Record that somebody was told that the engine is away."""
        self.note(f"{who} got no answer: {error}")
        if self.engine_lasts:
            self.fail(f"{who} got no answer, and nothing was wrong: {error}")

    # publishers

    def begin(self, channel: str, client: str = "", sender: str = "") -> Publishing:
        """Record that a publication begins; its data is its number."""
        number = len(self.publishings) + 1
        publishing = Publishing(number, channel, self._world.now, client=client, sender=sender)
        self.publishings[number] = publishing
        return publishing

    def acknowledge(self, publishing: Publishing, offset: int = 0, epoch: str = "") -> None:
        """Record that a publisher was told that its publication is out."""
        publishing.acknowledged = self._world.now
        publishing.offset, publishing.epoch = offset, epoch
        place = publishing.channel, epoch, offset
        if offset and self._places.setdefault(place, publishing.number) != publishing.number:
            self.fail(f"{publishing} has the place of {self._places[place]}")
        self.note(f"published {publishing.number} in {publishing.channel} at {offset}:{epoch}")

    def refuse(self, publishing: Publishing) -> None:
        """Record that a publisher was told that its publication is not out, and never will be."""
        publishing.is_refused = True
        self.note(f"refused {publishing.number} in {publishing.channel}")
        number, channel = publishing.number, publishing.channel
        if any(number in seen for (_, name), seen in self._seen.items() if name == channel):
            self.fail(f"{publishing} was refused, and delivered")

    def may_be_at(self, number: int, channel: str, offset: int) -> bool:
        """Return whether a publication may be at an offset, which outlives the epoch."""
        known = self.publishings.get(number)
        if known is None or known.channel != channel or known.is_refused:
            return False
        return known.offset in (0, offset)

    def known_in(self, channel: str, epoch: str) -> list[Publishing]:
        """Return the publications whose position is known."""
        return [
            each
            for each in self.publishings.values()
            if each.offset and each.channel == channel and each.epoch == epoch
        ]

    def lose(self, number: int | None) -> None:
        """Record that a publication is lost which may have been acknowledged, and delivered."""
        if (publishing := self.publishings.get(number or 0)) is not None:
            place = publishing.channel, publishing.epoch, publishing.offset
            self._places.pop(place, None)
            publishing.has_places, publishing.offset = True, 0

    # clients

    def begin_view(self, client: str, channel: str, offset: int, epoch: str) -> None:
        """Record that a client was told to begin with what follows a position."""
        self.told += 1
        self.note(f"{client} begins in {channel} after {offset}:{epoch}")
        kept, _, _ = epoch.partition("-")  # the rest is the run of a server
        if self._epochs.setdefault(channel, kept) != kept and not self.may_end_epochs:
            self.fail(f"{client} begins in another epoch of {channel}, and nothing was lost")
        if (old := self.views.get((client, channel))) is not None:
            self._check_order(old)
        self._seen.pop((client, channel), None)
        self.views[client, channel] = View(
            client, channel, epoch, offset, self._world.now, start=offset
        )

    def enter(self, client: str, channel: str) -> None:
        """Record that a client is subscribed anew to a channel."""
        self._passed.pop((client, channel), None)
        self._entered[client, channel] = self._world.now

    def deliver(self, client: str, channel: str, number: int, offset: int) -> None:
        """Record that a publication reached a client; `offset`: 0 without history."""
        self.deliveries += 1
        if self.trace is not None:
            self.note(f"{client} gets {number} of {channel} at {offset}")
        publishing = self.publishings.get(number)
        if publishing is None or publishing.channel != channel or publishing.is_refused:
            self.fail(f"{client} was delivered {number} in {channel}, which was not published")
        seen = (self._seen if offset else self._passed).setdefault((client, channel), set())
        may_repeat = not offset and self._may_repeat(publishing)
        has_places = publishing is not None and publishing.has_places
        if number in seen and not may_repeat and not has_places:
            self.fail(f"{client} was delivered {number} of {channel} twice")
        seen.add(number)
        if self._forbidden and publishing is not None:
            self._check_allowed(client, channel, publishing)
        if not offset:
            return
        view = self.views.get((client, channel))
        if view is None:
            self.fail(f"{client} was delivered {number} in {channel} before it began there")
            return
        if self.is_prompt and publishing is not None:
            self._check_prompt(view, publishing, offset)
        if offset != view.offset + 1:
            self.fail(
                f"{client} was delivered offset {offset} of {channel} after {view.offset}, untold"
            )
        view.offset = offset
        view.numbers.append(number)

    def _check_prompt(self, view: View, publishing: Publishing, offset: int) -> None:
        began = publishing.began
        if self.may_miss:
            following = self._places.get((view.channel, view.epoch, offset + 1))
            if following is None:
                return
            shown = self.publishings[following].acknowledged or began
            if any(began <= at <= shown for at in self.losses):
                return  # the one that shows the gap may be lost, too
            began = shown
        entered = self._entered.get((view.client, view.channel), 0.0)
        seconds = self._world.now - max(began, view.began, entered)
        # one that reads slowly also sends late, because it waits for answers
        is_slow = publishing.is_durable or bool({view.client, publishing.client} & self.slow)
        is_slow |= bool(publishing.client) and not self.is_calm
        if seconds > PROMPT and not is_slow:
            self.fail(f"{view.client} was delivered {publishing.number} after {seconds:.1f} s")

    # what the service says of clients

    def close(self, client: str, code: int) -> None:
        """Record the code with which the service ended a connection."""
        self.note(f"{client} was closed with {code}")
        if code == SLOW:
            self.closed_as_slow += 1
            if self.is_calm and client not in self.slow:
                self.fail(f"{client} was closed as slow, and had read everything")

    def lose_session(self, client: str) -> None:
        """Record that a node began the session of a client anew under its name."""
        self.note(f"{client} lost its session")
        if self.sessions_last:
            self.fail(f"{client} got another owner for its session, and the first one lives")

    def forbid(self, client: str, channel: str) -> None:
        """Record that nothing of a channel which begins from now on may reach a client, until it
        is told; "" for every channel."""
        self._forbidden[client, channel] = self._world.now

    def allow(self, client: str, channel: str) -> None:
        """Record that a client was told."""
        self._forbidden.pop((client, channel), None)

    def _check_allowed(self, client: str, channel: str, publishing: Publishing) -> None:
        for name in (channel, ""):
            since = self._forbidden.get((client, name))
            if since is not None and publishing.began > since:
                self.fail(
                    f"{client} was delivered {publishing.number} of {channel}, which began after"
                    " the end was acknowledged"
                )

    def _may_repeat(self, publishing: Publishing | None) -> bool:
        return self.may_lose_keys and publishing is not None and publishing.is_repeated

    # the end

    def _check_order(self, view: View) -> None:
        soonest, publishings = float("inf"), self.publishings
        following: dict[str, int] = {}
        for number in reversed(view.numbers):
            publishing = publishings.get(number)
            if publishing is None:
                continue  # `deliver` has said so
            if (sender := publishing.sender) and publishing.acknowledged is not None:
                if following.get(sender, number) < number:
                    self.fail(
                        f"{sender} published {following[sender]} before {number}, and {view.client}"
                        " was delivered it after that"
                    )
                following[sender] = number

            if publishing.has_places:
                continue
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
        self._check_versions()
        by_channel: dict[str, list[Publishing]] = {}
        for publishing in self.publishings.values():
            if publishing.offset and not publishing.has_places:
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

    def _check_versions(self) -> None:
        kept = [each for each in self.publishings.values() if each.version and each.offset]
        last: dict[tuple[str, str], Publishing] = {}
        for each in sorted(kept, key=lambda each: each.offset):
            before = last.get((each.channel, each.epoch))
            if before is not None and before.version >= each.version:
                self.fail(f"{each} was kept after {before}, which is as new")
            last[each.channel, each.epoch] = each

    def _check_view(self, view: View, publishings: list[Publishing]) -> None:
        for each in publishings:
            if each.epoch != view.epoch:
                # a slot may have been at another server, and have come back
                if each.began > view.began and each.number not in view.numbers:
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
