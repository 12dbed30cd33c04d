"""Charts of the last hour: what they show, and where their lines are. The templates draw them.

A chart is an SVG of its own width, in which one part is stretched: the lines. So texts keep their
size on every screen, and nothing needs a style, which the policy would block. In the stretched part
`x` counts samples and `y` goes from 0 at the top to `HEIGHT`; beside it places are percentages.

A line ends where no sample is, and where the sum becomes partial: it never joins values over a time
in which none was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import number_format, time_format
from django.utils.translation import gettext as _

from .event_words import MARKED, sentence
from .measures import ChartPlan, Measure
from .past import SHOWN, Past, ServiceEvent
from .service import SLOT_SECONDS

HEIGHT = 100
TICKS = timedelta(minutes=15)
NEAR_EDGE = 4.0
"""Per cent of the width in which no time is written: it would be cut off."""
NEAR_MARK = 4.0
"""Per cent of the width between two numbers of marks at least."""
MAX_MARKS = 30
NOTHING = "\N{EN DASH}"
"""In place of a value that there is not."""
ROW = 300 // SLOT_SECONDS
"""Samples of one row of the table: five minutes."""


class ChartLine(NamedTuple):
    """One line, as the template draws it."""

    label: str
    now: str
    """The value of the newest sample; `NOTHING` without one."""
    whole: str
    """The path through samples of all nodes."""
    partial: str
    """The path through samples that some node lacks."""


class Chart(NamedTuple):
    """One chart, as the template draws it."""

    name: str
    title: str
    lines: list[ChartLine]
    top: str
    half: str
    """The scale: the values at the top and half way."""
    summary: str
    """What the chart shows, in words."""


class Tick(NamedTuple):
    """A time below the charts."""

    place: str
    """Per cent of the width."""
    text: str


class Mark(NamedTuple):
    """An event in the charts."""

    number: int
    place: str
    """Per cent of the width."""
    is_numbered: bool
    """Whether its number has room in the charts."""
    is_serious: bool
    time: datetime
    text: str


class TableRow(NamedTuple):
    """Five minutes in the table."""

    time: datetime
    """Their end."""
    values: list[str]


class Charts(NamedTuple):
    """The charts of one page, which share times and marks."""

    charts: list[Chart]
    ticks: list[Tick]
    marks: list[Mark]
    columns: list[str]
    rows: list[TableRow]
    width: int
    """The number of steps between the samples of an hour."""


def draw(past: Past, plans: Sequence[ChartPlan]) -> Charts:
    """Return the charts of the last hour."""
    series = {
        (plan.name, place): values_of(past, measure)
        for plan in plans
        for place, measure in enumerate(plan.measures)
    }
    charts = [
        _chart(past, plan, [series[plan.name, place] for place in range(len(plan.measures))])
        for plan in plans
    ]
    columns = [
        f"{plan.title}: {measure.label}" if len(plan.measures) > 1 else str(plan.title)
        for plan in plans
        for measure in plan.measures
    ]
    rows = _rows(past, list(series.values()))
    return Charts(charts, ticks(past.at), marks(past), columns, rows, SHOWN)


Values = dict[int, float]
"""Sample → value, for those that there are."""


def values_of(past: Past, measure: Measure) -> Values:
    """Return the values of a measure, over all nodes that have the sample."""
    values: Values = {}
    for node in past.nodes:  # by column, not by sample: there may be a hundred nodes
        for slot, value in zip(node.slots, measure.figure(node), strict=True):
            known = values.get(slot)
            values[slot] = value if known is None else measure.over(known, value)
    return {slot: values[slot] * measure.factor for slot in past.sampled}


def _chart(past: Past, plan: ChartPlan, series: Sequence[Values]) -> Chart:
    top = scale_of(max((value for values in series for value in values.values()), default=0))
    lines = [
        ChartLine(
            str(measure.label),
            _text(_newest(past, values)),
            path(past.slots, _part(past, values, partial=False), top),
            path(past.slots, _part(past, values, partial=True), top),
        )
        for measure, values in zip(plan.measures, series, strict=True)
    ]
    summary = " ".join(
        _summary(str(measure.label), past, values)
        for measure, values in zip(plan.measures, series, strict=True)
    )
    return Chart(plan.name, str(plan.title), lines, _text(top), _text(top / 2), summary)


def _part(past: Past, values: Values, *, partial: bool) -> Values:
    return {slot: value for slot, value in values.items() if (slot in past.partial) is partial}


def _newest(past: Past, values: Values) -> float | None:
    """Return the newest value, which is that of now or of ten seconds ago."""
    return values.get(past.slots[-1], values.get(past.slots[-2]))


def scale_of(greatest: float) -> float:
    """Return the top of a scale: 1, 2 or 5 times a power of ten, at least 1."""
    top = 1.0
    while True:
        for step in (1, 2, 5):
            if greatest <= top * step:
                return top * step
        top *= 10


def path(slots: range, values: Values, top: float) -> str:
    """Return the path of a line, with a gap wherever a sample is missing."""

    def point(slot: int) -> str:
        return f"{slot - slots.start} {HEIGHT - values[slot] / top * HEIGHT:.1f}"

    parts = []
    before: int | None = None
    for slot in sorted(values):
        if before == slot - 1:
            parts.append(f"L{point(slot)}")
        else:
            # a sample alone is a dot: round ends make it visible
            parts.append(f"M{point(slot)}h0")
        before = slot
    return "".join(parts)


def _summary(label: str, past: Past, values: Values) -> str:
    if not values:
        return _("%(label)s: no samples.") % {"label": label}
    highest = max(values, key=lambda slot: values[slot])
    gaps = sum(after - before > 1 for before, after in pairwise(sorted(values)))
    words = {
        "label": label,
        "now": _text(_newest(past, values)),
        "high": _text(values[highest]),
        "time": _time(highest),
        "low": _text(min(values.values())),
        "mean": _text(sum(values.values()) / len(values)),
        "gaps": gaps,
    }
    text = _(
        "%(label)s: now %(now)s, highest %(high)s at %(time)s, lowest %(low)s, on average %(mean)s;"
        " gaps: %(gaps)d."
    )
    return text % words


def _rows(past: Past, series: Sequence[Values]) -> list[TableRow]:
    """Return the rows of the table: averages of five minutes, oldest first."""
    rows = []
    for start in range(past.slots.stop - SHOWN, past.slots.stop, ROW):
        part = range(start, start + ROW)
        cells = []
        for values in series:
            found = [values[slot] for slot in part if slot in values]
            cells.append(_text(sum(found) / len(found)) if found else NOTHING)
        rows.append(TableRow(_moment(part[-1]), cells))
    return rows


def ticks(at: datetime) -> list[Tick]:
    """Return round times in the hour before a moment, in the time zone of the site."""
    end = timezone.localtime(at)
    start = end - timedelta(seconds=SHOWN * SLOT_SECONDS)
    first = start.replace(minute=0, second=0, microsecond=0)
    times = [first + TICKS * step for step in range(1, 9)]
    places = [(time, _place(time.timestamp(), at)) for time in times]
    return [
        Tick(f"{place:.2f}", time_format(time, "H:i"))
        for time, place in places
        if NEAR_EDGE <= place <= 100 - NEAR_EDGE
    ]


def _place(seconds: float, at: datetime) -> float:
    """Return the place of Unix seconds, per cent of the width."""
    last = int(at.timestamp()) // SLOT_SECONDS * SLOT_SECONDS
    return 100 * (1 - (last - seconds) / (SHOWN * SLOT_SECONDS))


def marks(past: Past) -> list[Mark]:
    """Return the events that charts mark, oldest first."""
    shown = [
        (place, each)
        for each in reversed(past.events)
        if each.event.kind in MARKED
        and (place := min(100.0, _place(each.event.first, past.at))) >= 0
    ]
    result: list[Mark] = []
    numbered = -NEAR_MARK
    for number, (place, each) in enumerate(_distinct(shown)[-MAX_MARKS:], 1):
        has_room = place - numbered >= NEAR_MARK
        if has_room:
            numbered = place
        result.append(
            Mark(
                number,
                f"{place:.2f}",
                has_room,
                MARKED[each.event.kind],
                _local(each.event.first),
                sentence(each),
            )
        )
    return result


def _distinct(shown: list[tuple[float, ServiceEvent]]) -> list[tuple[float, ServiceEvent]]:
    """Leave out what another node saw at about the same time."""
    result: list[tuple[float, ServiceEvent]] = []
    last: dict[tuple[str, str], float] = {}
    for place, each in shown:
        key = each.event.kind, each.event.subject
        if key not in last or place - last[key] > 100 / SHOWN:
            result.append((place, each))
        last[key] = place
    return result


def _local(seconds: float) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC))


def _moment(slot: int) -> datetime:
    return _local(slot * SLOT_SECONDS)


def _time(slot: int) -> str:
    return time_format(_moment(slot), "H:i")


def _text(value: float | None) -> str:
    """Return a number with as many digits as an operator reads."""
    if value is None:
        return NOTHING
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return number_format(value, digits, force_grouping=True)
