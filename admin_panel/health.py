"""Health: one verdict on the service, for the line on every page.

    HEALTHY    all nodes and the engine answer
    DEGRADED   clients may notice something, or an operator should look at it
    DOWN       nothing can be published, or no node serves clients

The state of the service is asked for at most once in `REMEMBERED`, however many pages are open. The
last state that was seen stays, for pages that are shown while the engine is away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from django.core import checks
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from . import service
from .answering import Unavailable, unanswered
from .engine import server_name
from .service import NodeStatus, ServiceState
from .words import duration

T = TypeVar("T")

REMEMBERED = 1.0
"""Seconds for which a state counts."""
LOCK_TIMEOUT = 5.0
"""Seconds for which a page waits while another one asks for the first time."""
CHECKS_REMEMBERED = 60.0
"""Seconds for which the results of the system checks count."""
SLOW_ROUND_TRIP = 0.05
"""Seconds of a round trip to the engine above which it is slow."""
LONG_LAG = 0.5
"""Seconds of loop lag that users notice."""
PROBLEMS_SHOWN = 1
"""Problems in the line; the overview has all of them."""


class Level(StrEnum):
    """How the service is. See the module."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class HealthProblem(NamedTuple):
    """One thing that is not as it should be."""

    key: str
    """The same for the same problem, as long as it lasts."""
    text: str
    """A sentence."""
    level: Level = Level.DEGRADED
    page: str = "overview"
    """The page that shows more."""
    seconds: float | None = None
    """How long it has lasted; None: since it was seen first."""


class Seen(NamedTuple):
    """A state of the service, and when this process saw it."""

    at: datetime
    state: ServiceState


class Look(NamedTuple):
    """What is known of the service now."""

    seen: Seen | None
    """The last state that was seen; None if there was none."""
    unavailable: Unavailable | None
    """Why there is none of now."""


class Health(NamedTuple):
    """The verdict."""

    level: Level
    since: datetime
    is_sure_of_since: bool
    """Whether this process saw it begin; otherwise it has been so for longer, or as long."""
    problems: list[HealthProblem]
    """The worst first."""
    notes: int
    """Warnings of the system checks, which do not make the service degraded."""
    as_of: datetime | None
    """When the state was seen, if it is not that of now."""

    @property
    def word(self) -> str:
        """The verdict as a word."""
        words = {
            Level.HEALTHY: _("Healthy"),
            Level.DEGRADED: _("Degraded"),
            Level.DOWN: _("Down"),
        }
        return words[self.level]

    @property
    def icon(self) -> str:
        """A sign for the verdict, another one for each."""
        return {Level.HEALTHY: "✓", Level.DEGRADED: "!", Level.DOWN: "✕"}[self.level]

    @property
    def worst(self) -> HealthProblem | None:
        """The problem to be named in the line."""
        return self.problems[0] if self.problems else None

    @property
    def others(self) -> int:
        """The number of problems that the line leaves out."""
        return max(0, len(self.problems) - PROBLEMS_SHOWN)


class Remembered(Generic[T]):
    """A value that is asked for again after some seconds, by one thread. Any thread may use it.

    While one thread asks, others go on with the value before. If there is none, they wait.
    """

    def __init__(self, seconds: float, ask: Callable[[], T]) -> None:
        self._seconds = seconds
        self._ask = ask
        self._lock = threading.Lock()
        """Held by the thread that asks."""
        self._known: tuple[float, T] | None = None
        """Until when the value counts, and the value."""

    @property
    def last(self) -> T | None:
        """The last value, however old; None before the first one."""
        return None if self._known is None else self._known[1]

    def get(self) -> T:
        """Return the value. Raises what asking raises; then the next call asks again."""
        known = self._known
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        # not for ever: a process that was forked at a bad moment has a lock that stays locked
        is_asking = self._lock.acquire(timeout=LOCK_TIMEOUT if known is None else 0)
        try:
            if not is_asking and known is not None:
                return known[1]
            if self._known is not known and self._known is not None:  # another thread has asked
                return self._known[1]
            return self.keep(self._ask())
        finally:
            if is_asking:
                self._lock.release()

    def keep(self, value: T) -> T:
        """Take a value that is known without asking."""
        self._known = (time.monotonic() + self._seconds, value)
        return value


class ServiceWatch:
    """What this process has seen of the service. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._looks = Remembered(REMEMBERED, self._ask)
        self._since: dict[str, tuple[datetime, bool]] = {}
        """Key of a problem, or a level → since when, and whether this process saw it begin."""
        self._checked = Remembered(CHECKS_REMEMBERED, lambda: service.check_messages())
        self._pending = service.PendingNumbers()
        unanswered.forget()

    def look(self, *, failed: Unavailable | None = None) -> Look:
        """Return what is known, asking the service if that is older than `REMEMBERED`.

        Args:
            failed: why the service did not answer this page a moment ago.
        """
        return self._looks.get() if failed is None else self._looks.keep(self._failed(failed))

    def saw(self, state: ServiceState) -> Look:
        """Record a state that a page has just read."""
        return self._looks.keep(Look(Seen(timezone.now(), state), None))

    def _ask(self) -> Look:
        try:
            return Look(Seen(timezone.now(), service.state()), None)
        except Unavailable as unavailable:
            return self._failed(unavailable)

    def _failed(self, unavailable: Unavailable) -> Look:
        last = self._looks.last
        return Look(None if last is None else last.seen, unavailable)

    def findings(self) -> Sequence[checks.CheckMessage]:
        """Return the messages of the system checks."""
        return self._checked.get()

    def health(self, look: Look) -> Health:
        """Judge what is known of the service, and say since when it is so."""
        errors, warnings = check_levels(self._checked.get())
        problems = [*problems_of(look), *pending_problems(self._pending), *check_problems(errors)]
        problems.sort(key=lambda problem: problem.level is not Level.DOWN)
        level = problems[0].level if problems else Level.HEALTHY
        now = timezone.now()
        with self._lock:
            known = self._since
            is_first = not known
            self._since = {
                key: known.get(key, (now, not is_first))
                for key in (level.value, *(problem.key for problem in problems))
            }
            since, is_sure = self._since[level.value]
        if problems and problems[0].seconds is not None:
            since, is_sure = now - timedelta(seconds=problems[0].seconds), True
        as_of = look.seen.at if look.unavailable is not None and look.seen is not None else None
        return Health(level, since, is_sure, problems, warnings, as_of)


# problems


def problems_of(look: Look) -> Iterator[HealthProblem]:
    """Yield the problems of engine and nodes."""
    if look.unavailable is not None:
        yield HealthProblem("engine", f"{look.unavailable.title}.", Level.DOWN)
        return
    assert look.seen is not None
    nodes, round_trip = look.seen.state
    yield from node_problems(nodes)
    if round_trip is not None and round_trip > SLOW_ROUND_TRIP:
        text = _("%(server)s is slow: a round trip takes %(time)d ms.")
        values = {"server": server_name(), "time": round_trip * 1000}
        yield HealthProblem("slow", text % values)


def node_problems(nodes: Sequence[NodeStatus]) -> Iterator[HealthProblem]:
    """Yield the problems of nodes."""
    alive = [node for node in nodes if node.alive]
    if not alive:
        yield HealthProblem("none", _("No node is running."), Level.DOWN)
    silent = [node for node in nodes if not node.alive]
    for node in silent:
        text = _("Node %(name)s has been silent for %(time)s.") % {
            "name": node.name,
            "time": duration(node.last_seen_seconds),
        }
        yield HealthProblem(f"silent {node.uid}", text, seconds=node.last_seen_seconds)
    for name in unanswered.names():
        if name not in {node.name for node in silent}:
            text = _("Node %(name)s did not answer a moment ago.") % {"name": name}
            yield HealthProblem(f"unanswered {name}", text)
    for node in alive:
        if node.loop_lag > LONG_LAG:
            text = _("Node %(name)s is overloaded: its event loop was late by %(time)d ms.") % {
                "name": node.name,
                "time": node.loop_lag * 1000,
            }
            yield HealthProblem(f"lag {node.uid}", text)
    versions = sorted({node.version for node in alive})
    if len(versions) > 1:
        text = ngettext(
            "The nodes run %(count)d version: %(versions)s.",
            "The nodes run %(count)d different versions: %(versions)s.",
            len(versions),
        )
        named = text % {"count": len(versions), "versions": ", ".join(versions)}
        yield HealthProblem("versions", named)


def pending_problems(numbers: service.PendingNumbers) -> Iterator[HealthProblem]:
    """Yield the problems of durable publications, where the site has them."""
    if not service.keeps_pending():
        return
    rows = numbers.read()
    if rows is None:
        text = _("Durable publications cannot be read.")
        yield HealthProblem("pending", text, page="pending")
        return
    if rows.is_late:
        text = _("A durable publication has been waiting for %(time)s.") % {
            "time": duration(rows.oldest or 0)
        }
        yield HealthProblem("late", text, page="pending", seconds=rows.oldest)
    if rows.parked:
        text = ngettext(
            "%(count)d durable publication is parked.",
            "%(count)d durable publications are parked.",
            rows.parked,
        )
        yield HealthProblem("parked", text % {"count": rows.parked}, page="pending")


def check_levels(messages: Sequence[checks.CheckMessage]) -> tuple[int, int]:
    """Return the numbers of errors and warnings of the system checks."""
    levels = [message.level for message in messages]
    errors = sum(level >= checks.ERROR for level in levels)
    return errors, len(levels) - errors


def check_problems(errors: int) -> Iterator[HealthProblem]:
    """Yield the problem that system checks fail."""
    if errors:
        text = ngettext("%(count)d system check fails.", "%(count)d system checks fail.", errors)
        yield HealthProblem("checks", text % {"count": errors}, page="namespaces")


watch = ServiceWatch()
"""That of this process."""
