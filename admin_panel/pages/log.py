"""The log: which operator did what, and when. It has what the pages of the panel have done.

Entries are shown newest first, and a page begins after the last entry of the page before. They are
never counted: a log may have millions of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, models
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from .. import audit
from ..audit import ActionKind, Filter
from ..models import Connection
from ..operators import Operator
from ..panel import PageRequest

PAGE_SIZE = 50
TARGETS_SHOWN = 5
"""Targets of an entry that are shown without unfolding the others."""

LONGEST = 255
"""Characters of a text in a filter."""


class LogRow(NamedTuple):
    """One entry."""

    pk: int
    time: datetime
    by: str
    words: str | Promise
    """What was done."""
    kind: ActionKind | None
    """None for a kind that this release does not know."""
    model: type[models.Model] | None
    targets: list[str]
    others: list[str]
    """Targets beyond the first ones."""
    detail: str
    is_whole: bool
    """False if the log has only the beginning of the detail."""
    may_repeat: bool
    """Whether it is a publication into a channel that this operator may publish into."""
    is_about_all: bool
    """Whether the act was on all that there was at that moment."""

    @property
    def is_about_users(self) -> bool:
        """Whether the targets are user IDs."""
        return self.model is Connection

    @property
    def is_unsubscribe(self) -> bool:
        """Whether the detail is a channel."""
        return self.kind is audit.UNSUBSCRIBE


class Span(NamedTuple):
    """A link to the entries of some days."""

    label: str
    url: str
    is_chosen: bool


def show(request: PageRequest) -> HttpResponse:
    """Show the entries that pass the filter in the query, newest first."""
    query = request.http.GET
    values = {name: _text(query, name) for name in ("operator", "target", "q")}
    kind = next((each for each in audit.kinds() if each.code == query.get("kind")), None)
    days = {name: _day(query, name) for name in ("since", "until")}
    chosen = Filter(
        kind,
        values["operator"],
        values["target"],
        values["q"],
        _midnight(days["since"]),
        _midnight(days["until"], 1),
    )
    shown: dict[str, object] = {
        **values,
        "kind": kind.code if kind else "",
        **{name: day.isoformat() if day else "" for name, day in days.items()},
    }
    context: dict[str, Any] = {
        "chosen": shown,
        "kinds": audit.kinds(),
        "is_filtered": any(shown.values()),
        "spans": _spans(request, shown),
    }
    before = query.get("before", "")
    try:
        with audit.reading():
            rows, older = _rows(request.operator, chosen, before)
    except DatabaseError as error:
        return request.render("log.html", status=503, detail=str(error), **context)
    link = request.url("log", **_given(shown), before=older) if older else ""
    return request.render("log.html", rows=rows, older=link, is_later_page=bool(before), **context)


def _rows(operator: Operator, chosen: Filter, before: str) -> tuple[list[LogRow], int | None]:
    """Return a page of entries, and the primary key before which the next one begins."""
    found = chosen.newest(PAGE_SIZE + 1, audit.key_of(before))
    rows = [_row(operator, entry) for entry in found[:PAGE_SIZE]]
    return rows, rows[-1].pk if len(found) > PAGE_SIZE else None


def _row(operator: Operator, entry: LogEntry) -> LogRow:
    kind = audit.kind_of(entry)
    targets, detail = audit.targets_of(entry), audit.detail_of(entry)
    return LogRow(
        entry.pk,
        entry.action_time,
        entry.user.get_username(),
        kind.words if kind else audit.head_of(entry),
        kind,
        entry.content_type.model_class() if entry.content_type else None,
        targets[:TARGETS_SHOWN],
        targets[TARGETS_SHOWN:],
        detail,
        len(detail) <= audit.DETAIL_MAX_LENGTH,
        kind is audit.PUBLISH and any(map(operator.may_publish, targets)),
        audit.is_about_all(entry),
    )


def _spans(request: PageRequest, shown: dict[str, object]) -> list[Span]:
    today = timezone.localdate(datetime.now(UTC))
    yesterday, week = today - timedelta(days=1), today - timedelta(days=6)
    spans = [
        (_("Today"), today, today),
        (_("Yesterday"), yesterday, yesterday),
        (_("Last 7 days"), week, today),
    ]
    links: list[Span] = []
    for label, since, until in spans:
        days = {"since": since.isoformat(), "until": until.isoformat()}
        is_chosen = days.items() <= shown.items()
        links.append(Span(label, request.url("log", **_given(shown | days)), is_chosen))
    return links


def _given(shown: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in shown.items() if value}


def _text(query: QueryDict, name: str) -> str:
    # entries have no null characters either
    return query.get(name, "").strip()[:LONGEST].replace("\0", "\N{SYMBOL FOR NULL}")


def _day(query: QueryDict, name: str) -> date | None:
    try:
        return date.fromisoformat(query.get(name, ""))
    except ValueError:
        return None


def _midnight(day: date | None, later: int = 0) -> datetime | None:
    """Return when a day begins in the time zone of the panel, or one some days later."""
    if day is None:
        return None
    try:
        begin = datetime.combine(day + timedelta(days=later), time.min)
        # databases compare in UTC
        return timezone.make_aware(begin).astimezone(UTC) if settings.USE_TZ else begin
    except OverflowError:  # at the end of all times
        return None
