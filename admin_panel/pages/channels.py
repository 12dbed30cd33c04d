"""The list of channels that have a subscriber: searched, paged, counted."""

from __future__ import annotations

import re
from fnmatch import translate

from django.http import HttpResponse

from realtime.channel_rules import namespace_of
from realtime.config import sources

from .. import service
from ..paging import page_of
from ..panel import PageRequest

PAGE_SIZE = 50
LISTED = 10_000
"""Channels in the list; the others are found by searching."""

_GLOB = re.compile(r"[*?\[]")


def show(request: PageRequest) -> HttpResponse:
    """Show a page of the channels that a search finds."""
    search = request.http.GET.get("q", "").strip()
    channels = service.channels()
    found = find(channels, search)
    page = page_of(found[:LISTED], PAGE_SIZE, request.http.GET.get("page"))
    counts = service.subscribers(list(page))
    config = sources.current()
    return request.render(
        "channels.html",
        search=search,
        is_pattern=_GLOB.search(search) is not None,
        rows=[(name, namespace_of(name, config), counts.get(name, 0)) for name in page],
        list=page,
        total=len(channels),
        found=len(found),
        cut=len(found) > LISTED,
        missing=sorted({*channels.missing, *counts.missing}),
        listed=LISTED,
    )


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
