"""What the dialog "Go to" asks for: channels in use, and options. It knows pages by itself."""

from __future__ import annotations

from contextlib import suppress
from heapq import nsmallest

from django.http import HttpResponse, JsonResponse

from .. import service
from ..panel import PageRequest
from .channels import LONGEST_SEARCH
from .channels import find as find_channels
from .namespaces import find_options

CHANNELS = 8
OPTIONS = 5
"""Entries of a kind; a text that finds more has to be longer."""


def find(request: PageRequest) -> HttpResponse:
    """Send the script the channels in use and the options that a text finds, as links.

    `channels` is null if the service does not answer. `missing` are nodes whose channels are not
    among them.
    """
    search = request.http.GET.get("q", "").strip()[:LONGEST_SEARCH]
    if not search:
        return JsonResponse({"channels": [], "options": [], "missing": []})
    channels: list[dict[str, str]] | None = None
    missing: list[str] = []
    with suppress(service.Unavailable):
        known = service.channels()
        names = first(find_channels(known, search), search)
        channels = [{"name": name, "url": request.url("channel", channel=name)} for name in names]
        missing = sorted(known.missing)
    options = [
        {"name": name, "url": f"{request.url('namespaces')}#option-{name}"}
        for name in find_options(search)[:OPTIONS]
    ]
    return JsonResponse({"channels": channels, "options": options, "missing": missing})


def first(channels: list[str], search: str) -> list[str]:
    """Return the first of these channels; names that begin with the text come before others."""
    beginning = search.lower()
    return nsmallest(CHANNELS, channels, lambda name: not name.lower().startswith(beginning))
