"""One channel: its options, presence, history and live tail.

Lists are shown in pages. Reading them takes time as well, above all from a server, so the page
reads only the newest publications, and many clients only if the operator asks for them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.core.paginator import Page as ListPage
from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

import realtime
from realtime.channel_rules import namespace_of
from realtime.config import sources
from realtime.config.options import ChannelOptions
from realtime.errors import Error, NamespaceNotFound

from .. import audit, service
from ..json_text import JSONText, json_text
from ..paging import page_of
from ..panel import PageRequest
from ..publishing.positions import publishers
from ..service import ClientInfo, Publication
from ..words import kinds_of, words_of

PRESENCE_PAGE_SIZE = 50
HISTORY_PAGE_SIZE = 20

PRESENCE_READ = 2_000
"""Subscribers up to which presence is read at once."""

MAP_READ = 50
"""Entries of a map that are shown."""

HISTORY_READ = 2_000
"""Publications in the list of the history."""

NAMED = 100
"""Publications of the tail of which the publisher is looked for at once."""

_OFFSET = re.compile(r"[0-9]{1,19}")

TOKEN_TTL = 300.0
"""Seconds for which an operator who lost the permission can still watch, at most."""


class Present(NamedTuple):
    """A client in the channel."""

    client: str
    user: str
    infos: list[tuple[str, JSONText]]
    """Name in the protocol ("conn_info"), value."""


class HistoryEntry(NamedTuple):
    """A publication in the history, or an entry of a map."""

    offset: int
    uid: str
    by: Present | None
    """The client that published it, if one did."""
    data: JSONText
    time: datetime | None
    """When it was kept; None where that is unknown."""
    tags: list[tuple[str, str]]
    """Name and value."""
    operator: str
    """The operator who published it in the panel; "" if none is known."""
    key: str
    """Of a change of a map; "" in other channels."""
    removed: bool
    """Whether the change removes the key."""


class MapState(NamedTuple):
    """The first entries of a map."""

    size: int
    entries: list[HistoryEntry]

    @property
    def is_cut(self) -> bool:
        """Whether the map has more entries."""
        return self.size > len(self.entries)


class ChannelState(NamedTuple):
    """The state of a channel. None for what its options do not keep."""

    subscribers: int
    missing: list[str]
    num_users: int | None
    present: ListPage[Any] | None
    """None also if there are too many clients, see `is_crowded`."""
    kept: ListPage[Any] | None
    is_crowded: bool
    is_cut: bool
    """Whether the channel may keep more than `kept`."""
    map: MapState | None

    @property
    def is_empty(self) -> bool:
        """Whether the channel has no subscribers and no history, as far as all nodes say."""
        lists = [part for part in (self.present, self.kept) if part is not None]
        has_entries = any(part.paginator.count for part in lists) or bool(
            self.map and self.map.size
        )
        return not (self.missing or self.subscribers or has_entries)


def show(request: PageRequest) -> HttpResponse:
    """Show the channel in the query; without one, a search field."""
    channel = request.http.GET.get("channel", "")
    if not channel:
        return request.render("channel.html")
    config = sources.current()
    try:
        options = service.options_of(channel)
    except Error as error:
        return request.render(
            "channel.html",
            status=404,
            channel=channel,
            namespace=namespace_of(channel, config),
            boundary=config.channel_namespace_boundary,
            error=error,
            namespace_is_unknown=isinstance(error, NamespaceNotFound),
            namespaces=sorted(config.namespaces),
        )
    context: dict[str, Any] = {
        "channel": channel,
        "namespace": namespace_of(channel, config),
        "options": options,
        "kinds": kinds_of(channel, options, config),
        "words": words_of(options),
        "endpoint": service.endpoint(request.http),
    }
    try:
        state = read(request, channel, options)
    except service.Unavailable as unavailable:
        return request.render("channel.html", status=503, unavailable=unavailable, **context)
    return request.render("channel.html", state=state, **context)


def read(request: PageRequest, channel: str, options: ChannelOptions) -> ChannelState:
    """Read the state of a channel.

    Raises:
        Unavailable: the service does not answer.
    """
    subscribers = service.subscribers([channel])
    present = kept = num_users = map_ = None
    is_cut = False
    number = request.http.GET.get("clients")
    is_crowded = options.presence and is_too_much(subscribers[channel], number)
    if options.presence and not is_crowded:
        clients = sorted(
            service.presence(channel, options).values(), key=lambda info: (info.user, info.client)
        )
        num_users = len({info.user for info in clients})
        present = page_of(clients, PRESENCE_PAGE_SIZE, number)
        present.object_list = [_present(info) for info in present]
    if options.keeps_history:
        publications, top = service.history(channel, options, HISTORY_READ + 1)
        is_cut = len(publications) > HISTORY_READ
        del publications[HISTORY_READ:]
        kept = page_of(publications, HISTORY_PAGE_SIZE, request.http.GET.get("kept"))
        operators = publishers(channel, top.epoch, [each.offset for each in kept])
        kept.object_list = [_kept(each, operators.get(each.offset, "")) for each in kept]
    if options.map:
        page = service.map_page(channel, MAP_READ)
        map_ = MapState(page.size, [_kept(entry, "") for entry in page.entries])
    return ChannelState(
        subscribers[channel],
        subscribers.missing,
        num_users,
        present,
        kept,
        is_crowded,
        is_cut,
        map_,
    )


def is_too_much(subscribers: int, asked: str | None) -> bool:
    """Return whether presence is too large to read.

    Args:
        subscribers: their number.
        asked: the page of the list in the query; with one, presence is read.
    """
    return subscribers > PRESENCE_READ and not asked


@sensitive_variables("token")
def token(request: PageRequest) -> HttpResponse:
    """Give the page's script an observer token; it asks again before the token expires."""
    try:
        token = realtime.observer_token(request.http.GET.get("channel", ""), TOKEN_TTL)
    except Error as error:
        return JsonResponse({"code": error.code, "message": error.message}, status=404)
    return JsonResponse({"token": token})


def named(request: PageRequest) -> HttpResponse:
    """Give the page's script the operators who published what its tail shows: offset → name."""
    channel, offsets = (request.http.GET.get(name, "") for name in ("channel", "offsets"))
    numbers = [int(text) for text in offsets.split(",")[:NAMED] if _OFFSET.fullmatch(text)]
    try:
        top = service.history(channel, service.options_of(channel), 0).top
    except (Error, service.Unavailable):
        return JsonResponse({"publishers": {}})  # the entries say "server", as before
    return JsonResponse({"publishers": publishers(channel, top.epoch, numbers)})


def data(request: PageRequest) -> HttpResponse:
    """Send the complete data of one publication, as they were published."""
    channel = request.http.GET.get("channel", "")
    offset = request.http.GET.get("offset", "")
    try:
        publication = service.publication(channel, int(offset))
    except (Error, ValueError):
        publication = None
    if publication is not None:
        return HttpResponse(publication.data.raw, content_type="application/json")
    request.warning(_("The history no longer has this publication."))
    return request.redirect("channel", channel=channel)


def remove(request: PageRequest) -> HttpResponse:
    """Ask for confirmation, then remove the history of a channel."""
    request.require("remove_history")
    channel = request.http.GET.get("channel", "")
    try:
        if request.http.method == "POST":
            with request.operator.logged(audit.REMOVE_HISTORY, channel):
                realtime.history_remove(channel)
            request.success(_("The history of %(channel)s was removed.") % {"channel": channel})
        else:
            options = service.options_of(channel)
            kept = len(service.history(channel, options, HISTORY_READ + 1).publications)
            return request.render(
                "channel_remove.html",
                title=_("Remove history"),
                channel=channel,
                kept=min(kept, HISTORY_READ),
                is_cut=kept > HISTORY_READ,
            )
    except Error:
        request.warning(_("The channel keeps no history."))
    return request.redirect("channel", channel=channel)


def _present(info: ClientInfo) -> Present:
    infos = [("conn_info", info.conn_info), ("chan_info", info.chan_info)]
    texts = [(name, json_text(value)) for name, value in infos if value is not None]
    return Present(info.client, info.user, texts)


def _kept(publication: Publication, operator: str) -> HistoryEntry:
    by = _present(publication.info) if publication.info is not None else None
    time = None
    if publication.time:
        time = datetime.fromtimestamp(publication.time / 1000, UTC)
    tags = sorted((publication.tags or {}).items())
    data = json_text(publication.data)
    return HistoryEntry(
        publication.offset,
        publication.uid,
        by,
        data,
        time,
        tags,
        operator,
        publication.key,
        publication.removed,
    )
