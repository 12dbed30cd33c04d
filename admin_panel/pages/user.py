"""One user: the connections at every node, their channels, and what can be done about them.

A node tells of 1000 connections at most and all of them are asked at once, so the page takes
as long for a user with ten thousand connections as for any other; it says what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from heapq import merge
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page as ListPage
from django.http import HttpResponse
from django.utils.translation import gettext as _

from realtime import payload
from realtime.errors import Error

from .. import audit, service
from ..json_text import JSONText, json_text
from ..paging import page_of
from ..panel import PageRequest
from ..service import ClientReport

CONNECTIONS_PAGE_SIZE = 50
CHANNELS_PAGE_SIZE = 50

UNFOLDED = 3
"""Channels of a connection that are shown without being asked for."""

SHOWN = 100
"""Channels of a connection that are shown beside it; the list of channels has the others."""


class Row(NamedTuple):
    """One connection."""

    client: str
    node: str
    transport: str
    seconds: float
    num_channels: int
    channels: list[str]
    """The first of them."""
    info: JSONText | None

    @property
    def is_folded(self) -> bool:
        """Whether the channels are shown when asked for."""
        return self.num_channels > UNFOLDED

    @property
    def others(self) -> int:
        """Channels that are not shown here."""
        return self.num_channels - len(self.channels)


class State(NamedTuple):
    """What is known of a user."""

    rows: ListPage[Any]
    channels: ListPage[Any]
    """Channel, and how many of the connections are subscribed to it."""
    total: int
    """Connections, as far as nodes answered."""
    told: int
    """Those that the nodes told of."""
    channels_are_cut: bool
    """Whether a connection has more channels than its node told of."""
    num_nodes: int
    missing: list[str]
    """Names of the nodes that did not answer."""

    @property
    def answered(self) -> int:
        """Nodes that answered."""
        return self.num_nodes - len(self.missing)

    @property
    def is_cut(self) -> bool:
        """Whether connections are left out."""
        return self.told < self.total

    @property
    def is_certain(self) -> bool:
        """Whether everything is known."""
        return not (self.missing or self.is_cut or self.channels_are_cut)


def show(request: PageRequest) -> HttpResponse:
    """The user that the query names; without one, a field to name one."""
    user = _user(request)
    if not user:
        return request.render("user.html", is_anonymous="user" in request.http.GET)
    try:
        state = read(request, user)
    except service.Unavailable as unavailable:
        return request.render("user.html", status=503, user_id=user, unavailable=unavailable)
    return request.render("user.html", user_id=user, state=state)


def read(request: PageRequest, user: str) -> State:
    """Ask every node.

    Raises:
        Unavailable
    """
    surveyed = service.connections(user)
    # oldest first, as each node tells them: times of two clocks are good for no finer order
    lists = ([(report, each.name) for report in each.connections] for each in surveyed.answers)
    told = list(merge(*lists, key=lambda entry: -entry[0].seconds))
    names = Counter(channel for report, _node in told for channel in report.channels)
    rows = page_of(told, CONNECTIONS_PAGE_SIZE, request.http.GET.get("page"))
    rows.object_list = [_row(report, node) for report, node in rows]
    return State(
        rows,
        page_of(sorted(names.items()), CHANNELS_PAGE_SIZE, request.http.GET.get("channels")),
        total=sum(answer.total for answer in surveyed.answers),
        told=len(told),
        channels_are_cut=any(report.num_channels > len(report.channels) for report, _node in told),
        num_nodes=len(surveyed.answers) + len(surveyed.missing),
        missing=surveyed.missing,
    )


def disconnect(request: PageRequest) -> HttpResponse:
    """Ask whether to disconnect a user; do it, log it, and go back."""
    if not request.operator.may_disconnect:
        raise PermissionDenied
    user = _user(request)
    if not user:
        return request.redirect("user", user="")
    if request.http.method != "POST":
        state = read(request, user)
        return request.render(
            "user_disconnect.html", title=_("Disconnect user"), user_id=user, state=state
        )
    with request.operator.logged(audit.DISCONNECT, user):
        service.disconnect(user)
    request.success(_("All connections of %(user)s were told to disconnect.") % {"user": user})
    return request.redirect("user", user=user)


def unsubscribe(request: PageRequest) -> HttpResponse:
    """Ask whether to unsubscribe a user from a channel, or from all; do it, log it, go back."""
    if not request.operator.may_unsubscribe:
        raise PermissionDenied
    user = _user(request)
    if not user:
        return request.redirect("user", user="")
    channel = request.http.GET.get("channel", "")
    if not channel and "all" not in request.http.GET:
        # never taken for "all": an empty field is more likely a slip
        request.warning(_("No channel was named, so nothing was done."))
        return request.redirect("user", user=user)
    if request.http.method != "POST":
        return request.render(
            "user_unsubscribe.html", title=_("Unsubscribe user"), user_id=user, channel=channel
        )
    try:
        with request.operator.logged(audit.UNSUBSCRIBE, user, detail=channel):
            service.unsubscribe(user, channel)
    except Error as error:
        request.warning(
            _("Nothing was done. Error %(code)d: %(message)s.")
            % {"code": error.code, "message": error.message}
        )
        return request.redirect("user", user=user)
    if channel:
        text = _("All connections of %(user)s were unsubscribed from %(channel)s.")
    else:
        text = _("All connections of %(user)s were unsubscribed from all channels.")
    request.success(text % {"user": user, "channel": channel})
    return request.redirect("user", user=user)


def _user(request: PageRequest) -> str:
    return request.http.GET.get("user", "")


def _row(report: ClientReport, node: str) -> Row:
    return Row(
        report.client,
        node,
        report.transport,
        report.seconds,
        report.num_channels,
        report.channels[:SHOWN],
        None if report.info is None else info_text(report.info),
    )


def info_text(info: str) -> JSONText:
    """The info as clients get it: its numbers may have no Python form."""
    raw = info.encode()
    try:
        return json_text(payload.check(raw))
    except ValueError:  # accepted where the call stack was not as deep as here
        return json_text(payload.Payload(raw, raw))
