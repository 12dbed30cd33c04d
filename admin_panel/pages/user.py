"""One user: the connections at every node, their channels, and the actions on them.

A node reports 1000 connections at most, and all nodes are asked at once, so the page takes as
long for a user with ten thousand connections as for any other. It says what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from heapq import merge
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page as ListPage
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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
"""Channels of a connection that are not folded."""

SHOWN = 100
"""Channels in the row of a connection; the list of channels has the others."""


class Row(NamedTuple):
    """One connection."""

    client: str
    node: str
    transport: str
    seconds: float
    num_channels: int
    channels: list[str]
    """The first `SHOWN` of them."""
    info: JSONText | None

    @property
    def is_folded(self) -> bool:
        """Whether the channels are folded."""
        return self.num_channels > UNFOLDED

    @property
    def others(self) -> int:
        """Number of channels that the row leaves out."""
        return self.num_channels - len(self.channels)


class State(NamedTuple):
    """The connections of a user, as far as nodes report them."""

    rows: ListPage[Any]
    channels: ListPage[Any]
    """Channel, and the number of connections that are subscribed to it."""
    total: int
    """Connections at the nodes that answered."""
    listed: int
    """Connections that the nodes listed."""
    channels_are_cut: bool
    """Whether a connection has more channels than its node listed."""
    num_nodes: int
    missing: list[str]
    """Names of the nodes that did not answer."""

    @property
    def answered(self) -> int:
        """Number of nodes that answered."""
        return self.num_nodes - len(self.missing)

    @property
    def is_cut(self) -> bool:
        """Whether connections are left out."""
        return self.listed < self.total

    @property
    def is_certain(self) -> bool:
        """Whether the state is complete."""
        return not (self.missing or self.is_cut or self.channels_are_cut)


def show(request: PageRequest) -> HttpResponse:
    """Show the user in the query; without one, a search field."""
    user = _user(request)
    if not user:
        return request.render("user.html", is_anonymous="user" in request.http.GET)
    try:
        state = read(request, user)
    except service.Unavailable as unavailable:
        return request.render("user.html", status=503, user_id=user, unavailable=unavailable)
    return request.render("user.html", user_id=user, state=state)


def read(request: PageRequest, user: str) -> State:
    """Ask every node for the connections of a user.

    Raises:
        Unavailable: the service does not answer.
    """
    surveyed = service.connections(user)
    # oldest first, as each node lists them; clocks of nodes differ, so a finer order means nothing
    lists = ([(report, each.name) for report in each.connections] for each in surveyed.answers)
    reports = list(merge(*lists, key=lambda entry: -entry[0].seconds))
    names = Counter(channel for report, _node in reports for channel in report.channels)
    rows = page_of(reports, CONNECTIONS_PAGE_SIZE, request.http.GET.get("page"))
    rows.object_list = [_row(report, node) for report, node in rows]
    return State(
        rows,
        page_of(sorted(names.items()), CHANNELS_PAGE_SIZE, request.http.GET.get("channels")),
        total=sum(answer.total for answer in surveyed.answers),
        listed=len(reports),
        channels_are_cut=any(
            report.num_channels > len(report.channels) for report, _node in reports
        ),
        num_nodes=len(surveyed.answers) + len(surveyed.missing),
        missing=surveyed.missing,
    )


def disconnect(request: PageRequest) -> HttpResponse:
    """Ask for confirmation, then disconnect a user."""
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
        silent = service.disconnect(user)
    if silent:
        text = _("Connections of %(user)s are being closed at the nodes that answer.")
    else:
        text = _("All connections of %(user)s are being closed.")
    request.success(text % {"user": user})
    _warn_of(request, silent)
    return request.redirect("user", user=user)


def unsubscribe(request: PageRequest) -> HttpResponse:
    """Ask for confirmation, then unsubscribe a user from a channel or from all channels."""
    if not request.operator.may_unsubscribe:
        raise PermissionDenied
    user = _user(request)
    if not user:
        return request.redirect("user", user="")
    channel = request.http.GET.get("channel", "")
    if not channel and "all" not in request.http.GET:
        # an empty field is more likely a slip than a wish for all channels
        request.warning(_("Nothing was done: no channel was given."))
        return request.redirect("user", user=user)
    if request.http.method != "POST":
        return request.render(
            "user_unsubscribe.html", title=_("Unsubscribe user"), user_id=user, channel=channel
        )
    try:
        with request.operator.logged(audit.UNSUBSCRIBE, user, detail=channel):
            silent = service.unsubscribe(user, channel)
    except Error as error:
        request.warning(
            _("Nothing was done. Error %(code)d: %(message)s.")
            % {"code": error.code, "message": error.message}
        )
        return request.redirect("user", user=user)
    if silent:
        text = _("Connections of %(user)s were unsubscribed at the nodes that answer.")
    elif channel:
        text = _("All connections of %(user)s were unsubscribed from %(channel)s.")
    else:
        text = _("All connections of %(user)s were unsubscribed from all channels.")
    request.success(text % {"user": user, "channel": channel})
    _warn_of(request, silent)
    return request.redirect("user", user=user)


def _warn_of(request: PageRequest, silent: list[str]) -> None:
    """Say that an action reaches silent nodes later."""
    if silent:
        text = ngettext(
            "A node is silent: %(names)s. The action takes effect there when it answers again.",
            "%(n)d nodes are silent: %(names)s."
            " The action takes effect there when they answer again.",
            len(silent),
        )
        request.warning(text % {"n": len(silent), "names": ", ".join(silent)})


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
    """Return the info as clients get it. Python might not be able to decode its numbers."""
    raw = info.encode()
    try:
        return json_text(payload.check(raw))
    except ValueError:  # it was accepted with a shallower call stack
        return json_text(payload.Payload(raw, raw))
