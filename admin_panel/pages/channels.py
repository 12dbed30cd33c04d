"""The channels that have a subscriber: searched, filtered, by name or the busiest first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any, NamedTuple, cast, get_args

from django.http import HttpResponse

from realtime.channel_rules import namespace_of
from realtime.config import sources

from .. import service
from ..paging import page_of
from ..panel import PageRequest
from ..service import Order

PAGE_SIZE = 50
LISTED = 10_000
"""Channels in the list; the others are found by searching."""

LONGEST_SEARCH = 255
"""Characters of a search."""

TOP_LEVEL = "(none)"
"""Value of the query for channels without a namespace: no namespace can have this name."""

NAMESPACES_SHOWN = 100
"""Namespaces by which the list can be filtered."""

ORDERS: Sequence[Order] = get_args(Order)
"""Values of the query `sort`."""

_GLOB = re.compile(r"[*?\[]")


class ChannelRow(NamedTuple):
    """One channel. The rates are None where they are not known."""

    name: str
    namespace: str
    subscribers: int
    publications: float | None = None
    """In a minute."""
    bytes: float | None = None
    """In a minute, those of the data."""


def show(request: PageRequest) -> HttpResponse:
    """Show the channels that a search finds: a page of all by name, or the busiest ones."""
    query = request.http.GET
    search, order = query.get("q", "").strip()[:LONGEST_SEARCH], query.get("sort", "")
    config = sources.current()
    chosen = query.get("namespace", "")
    namespace = "" if chosen == TOP_LEVEL else chosen if chosen in config.namespaces else None
    context: dict[str, Any] = {
        "search": search,
        "is_pattern": _GLOB.search(search) is not None,
        "sort": order if order in ORDERS else "",
        "namespace": "" if namespace is None else chosen,
        "namespaces": sorted(config.namespaces)[:NAMESPACES_SHOWN],
        "top_level": TOP_LEVEL,
    }
    if order in ORDERS:
        return request.render("channels.html", **context, **_busiest(order, namespace, search))
    channels = service.channels()
    names: list[str] = channels
    if namespace is not None:
        names = [name for name in channels if namespace_of(name, config) == namespace]
    found = find(names, search)
    page = page_of(found[:LISTED], PAGE_SIZE, query.get("page"))
    counts = service.subscribers(list(page))
    return request.render(
        "channels.html",
        **context,
        rows=[ChannelRow(name, namespace_of(name, config), counts.get(name, 0)) for name in page],
        list=page,
        total=len(channels),
        found=len(found),
        cut=len(found) > LISTED,
        listed=LISTED,
        missing=sorted({*channels.missing, *counts.missing}),
    )


def _busiest(order: str, namespace: str | None, search: str) -> dict[str, Any]:
    """Return what the page shows of the busiest channels."""
    pattern = search if _GLOB.search(search) else f"*{search}*" if search else ""
    activity = service.busiest(cast(Order, order), namespace=namespace, pattern=pattern)
    config = sources.current()
    rows = [
        ChannelRow(
            each.channel,
            namespace_of(each.channel, config),
            each.subscribers,
            None if each.publications is None else each.publications * 60,
            None if each.bytes is None else each.bytes * 60,
        )
        for each in activity.channels
    ]
    begins = bool(rows) and any(row.publications is None for row in rows)
    return {"rows": rows, "begins": begins, "missing": activity.missing, "found": len(rows)}


def find(channels: list[str], search: str) -> list[str]:
    """Return the channels that contain a text or match a pattern, ignoring case.

    Patterns are those of file names: `*`, `?` and `[..]`.
    """
    if not search:
        return channels
    if _GLOB.search(search):
        matches = re.compile(translate(search), re.IGNORECASE).match
        return [channel for channel in channels if matches(channel)]
    search = search.lower()
    return [channel for channel in channels if search in channel.lower()]
