"""The events: what happened at the nodes in the last time, and what operators did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.contrib.admin.models import LogEntry
from django.db import DatabaseError
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from .. import audit
from ..event_words import GROUPS, OPERATORS, group_of, label_of, sentence
from ..panel import PageRequest
from ..past import Past, ServiceEvent, memory
from ..service import Unavailable

SHOWN = 200
"""Events on the page."""

ACTS_READ = 200
"""Newest entries of the log that are looked at."""
ACTS_SHOWN_FOR = timedelta(days=1)
TARGETS_SHOWN = 3
"""Channels or users in the text of an act."""


class EventRow(NamedTuple):
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
    operator: str = ""
    """Who did it; "" for what happened at nodes."""


def show(request: PageRequest) -> HttpResponse:
    """Show the events that a kind and a text choose, newest first."""
    kind = request.http.GET.get("kind", "")
    search = request.http.GET.get("q", "").strip()
    unavailable = None
    try:
        past: Past | None = memory.read()
    except Unavailable as error:
        past, unavailable = memory.known, error
    rows = [*([] if past is None else rows_of(past.events)), *acts()]
    rows.sort(key=lambda row: row.time, reverse=True)
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


def rows_of(events: list[ServiceEvent]) -> list[EventRow]:
    """Return events as rows."""
    return [_row(each) for each in events]


def _row(each: ServiceEvent) -> EventRow:
    event = each.event
    first, last = _moment(event.first), _moment(event.last)
    return EventRow(
        last,
        first if int(event.first) != int(event.last) else None,
        group_of(event.kind),
        label_of(event.kind),
        list(each.nodes),
        sentence(each),
        event.count,
    )


def acts() -> list[EventRow]:
    """Return what operators did in the last time; nothing if the log cannot be read."""
    try:
        with audit.reading():
            entries = list(audit.entries()[:ACTS_READ])
    except DatabaseError:
        return []
    oldest = datetime.now(UTC) - ACTS_SHOWN_FOR
    return [row for row in map(_act, entries) if row.time >= oldest]


def _act(entry: LogEntry) -> EventRow:
    kind, operator = audit.kind_of(entry), entry.user.get_username()
    targets = audit.targets_of(entry)
    more = len(targets) - TARGETS_SHOWN
    names = ", ".join(targets[:TARGETS_SHOWN])
    if more > 0:
        names = _("%(names)s and %(count)d more") % {"names": names, "count": more}
    if audit.is_about_all(entry):
        names = _("all parked publications")
    text = f"{kind.words if kind else audit.head_of(entry)}: {names}"
    time = entry.action_time
    if timezone.is_naive(time):  # without USE_TZ it is that of the site
        time = timezone.make_aware(time)
    group, _kinds = GROUPS[OPERATORS]
    return EventRow(timezone.localtime(time), None, OPERATORS, str(group), [], text, 1, operator)


def matches(row: EventRow, kind: str, search: str) -> bool:
    """Return whether an event is of a group and holds a text, in any case; "" for all."""
    if kind and row.group != kind:
        return False
    text = "\n".join((row.text, row.label, row.operator, *row.nodes))
    return search.lower() in text.lower()


def _moment(seconds: float) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC))
