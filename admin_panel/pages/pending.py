"""Durable publications that wait in the site's database, and those that the service refused."""

from __future__ import annotations

from django.db import DatabaseError
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .. import audit, service
from ..audit import ActionKind
from ..panel import PageRequest

SHOWN = 100
"""Parked publications on the page."""

ALL = audit.ALL
"""What the log calls all parked publications."""


def show(request: PageRequest) -> HttpResponse:
    """Show how many publications wait, and the parked ones."""
    rows = service.pending()
    try:
        overview, parked = rows.overview(), rows.parked(SHOWN)
    except DatabaseError as error:
        return request.render("pending.html", status=503, detail=str(error))
    return request.render("pending.html", overview=overview, parked=parked)


def retry(request: PageRequest) -> HttpResponse:
    """Ask for confirmation, then have parked publications tried again."""
    return _act(request, audit.RETRY, "pending_retry.html", _("Retry parked publications"))


def drop(request: PageRequest) -> HttpResponse:
    """Ask for confirmation, then delete parked publications."""
    return _act(request, audit.DROP, "pending_drop.html", _("Drop parked publications"))


def _act(request: PageRequest, kind: ActionKind, template: str, title: str) -> HttpResponse:
    """Act on the parked publication with the key and channel in the query, or on all of them."""
    request.require("manage_pending")
    key, channel = (request.http.GET.get(name, "") for name in ("key", "channel"))
    if bool(key) != bool(channel):  # not a link of ours: it must not act on more than it names
        return request.redirect("pending")
    if request.http.method != "POST":
        number = 1 if key else service.pending().overview().parked
        return request.render(template, title=title, channel=channel, number=number)
    try:
        with request.operator.logged(kind, channel or ALL, detail=key):
            number = _change(kind, key, channel)
    except LookupError:
        request.warning(_("Nothing was done: it is not parked any more."))
    else:
        request.success(_done(kind, number))
    return request.redirect("pending")


def _change(kind: ActionKind, key: str, channel: str) -> int:
    """Retry or drop, and return the number of publications; raise LookupError if there are none."""
    rows = service.pending()
    change = rows.retry if kind is audit.RETRY else rows.drop
    try:
        number = change([key] if key else None, channel or None)
    except ValueError:  # not a key at all
        number = 0
    if not number:
        raise LookupError
    return number


def _done(kind: ActionKind, number: int) -> str:
    if kind is audit.RETRY:
        text = ngettext(
            "%(n)d publication is tried again.", "%(n)d publications are tried again.", number
        )
    else:
        text = ngettext(
            "%(n)d publication was dropped.", "%(n)d publications were dropped.", number
        )
    return text % {"n": number}
