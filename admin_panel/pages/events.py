"""The events: what happened at the nodes in the last time, with filters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from django.http import HttpResponse
from django.utils import timezone

from ..event_words import GROUPS, group_of, label_of, sentence
from ..panel import PageRequest
from ..past import Past, ServiceEvent, memory
from ..service import Unavailable

SHOWN = 200
"""Events on the page."""


class Row(NamedTuple):
    """An event, as the page shows it."""

    time: datetime
    """When it happened, for the last time."""
    since: datetime | None
    """When it happened for the first time, if that was another second."""
    group: str
    """"" for a kind of a newer version."""
    label: str
    nodes: list[str]
    text: str
    times: int


def show(request: PageRequest) -> HttpResponse:
    """Show the events that a kind and a text choose, newest first."""
    kind = request.http.GET.get("kind", "")
    search = request.http.GET.get("q", "").strip()
    unavailable = None
    try:
        past: Past | None = memory.read()
    except Unavailable as error:
        past, unavailable = memory.known, error
    rows = [] if past is None else rows_of(past.events)
    found = [row for row in rows if matches(row, kind, search)]
    return request.render(
        "events.html",
        status=200 if unavailable is None else 503,
        unavailable=unavailable,
        past=past,
        kinds=[(name, label) for name, (label, _kinds) in GROUPS.items()],
        kind=kind,
        search=search,
        rows=found[:SHOWN],
        found=len(found),
        total=len(rows),
        shown=SHOWN,
    )


def rows_of(events: list[ServiceEvent]) -> list[Row]:
    """Return events as rows."""
    return [_row(each) for each in events]


def _row(each: ServiceEvent) -> Row:
    event = each.event
    first, last = _moment(event.first), _moment(event.last)
    return Row(
        last,
        first if int(event.first) != int(event.last) else None,
        group_of(event.kind),
        label_of(event.kind),
        list(each.nodes),
        sentence(each),
        event.count,
    )


def matches(row: Row, kind: str, search: str) -> bool:
    """Return whether an event is of a group and holds a text, in any case; "" for all."""
    if kind and row.group != kind:
        return False
    text = "\n".join((row.text, row.label, *row.nodes))
    return search.lower() in text.lower()


def _moment(seconds: float) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC))
