"""One user: the connections at every node, what became of earlier ones, and the actions on them.

A node reports 1000 connections at most, and all nodes are asked at once, so the page takes as
long for a user with ten thousand connections as for any other. It says what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from heapq import merge
from typing import Any, NamedTuple

from django.core.paginator import Page as ListPage
from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

import realtime
from realtime import payload
from realtime.errors import Error

from .. import audit, people, service
from ..end_words import browser_of, end_in_words, refusal_in_words
from ..json_text import JSONText, json_text
from ..paging import page_of
from ..panel import PageRequest, View
from ..people import Person, Refusal, UserPast
from ..service import ClientReport
from ..words import duration

CONNECTIONS_PAGE_SIZE = 50
CHANNELS_PAGE_SIZE = 50

UNFOLDED = 3
"""Channels of a connection that are not folded."""

SHOWN = 100
"""Channels in the row of a connection; the list of channels has the others."""


DEFAULT_MINUTES = 60
MAX_MINUTES = 365 * 24 * 60
"""Of a block."""

FOUND = 50
"""Users in a list of those who were found, or are blocked."""


class ConnectionRow(NamedTuple):
    """One connection."""

    report: ClientReport
    node: str
    channels: list[str]
    """The first `SHOWN` of them."""
    info: JSONText | None

    @property
    def num_channels(self) -> int:
        """The number of its channels."""
        return self.report.num_channels

    @property
    def browser(self) -> str:
        """The browser, or the program, in a word or two; "" if it is not known."""
        return browser_of(self.report.agent)

    @property
    def is_folded(self) -> bool:
        """Whether the channels are folded."""
        return self.num_channels > UNFOLDED

    @property
    def others(self) -> int:
        """Number of channels that the row leaves out."""
        return self.num_channels - len(self.channels)


class BlockedList(NamedTuple):
    """The users who are blocked."""

    first: list[tuple[str, datetime | None]]
    """User ID, and when the block ends."""
    total: int


class RefusedCommand(NamedTuple):
    """A command that was refused."""

    refusal: Refusal
    at: datetime | None
    words: str | Promise

    @property
    def action(self) -> str:
        """The action of the page "Why?" that explains it."""
        command = self.refusal.command.removesuffix("_stats")
        return command if command in people.ACTIONS else ""


class UserState(NamedTuple):
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
    past: UserPast | None = None
    """What became of earlier connections and commands; None where that was not asked for."""
    blocked_until: datetime | None = None
    """When the block of the user ends; None if the user is not blocked."""

    @property
    def ended_at(self) -> datetime | None:
        """When the last connection ended, as far as nodes remember."""
        return None if self.past is None else _moment(self.past.ended_at)

    @property
    def end(self) -> str | Promise:
        """Why it ended, in words."""
        return "" if self.past is None else end_in_words(self.past.code, self.past.reason)

    @property
    def refusals(self) -> list[RefusedCommand]:
        """The last refused commands, newest first."""
        if self.past is None:
            return []
        return [
            RefusedCommand(each, _moment(each.time), refusal_in_words(each.code))
            for each in self.past.refusals
        ]

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
    """Show the user in the query, and who else was found; without one, a search field."""
    user = _user(request)
    if not user:
        return _without_user(request)
    try:
        state = read(request, user)
        past, until = people.past(user), people.blocked().get(user)
        state = state._replace(past=past, blocked_until=_moment(until or 0.0))
        found = people.find(user, FOUND) if "search" in request.http.GET else None
    except service.Unavailable as unavailable:
        return request.render("user.html", status=503, user_id=user, unavailable=unavailable)
    persons: list[Person] = []
    more_persons = False
    if found is not None and request.operator.may_find_people:
        persons, more_persons = people.find_people(user, FOUND)
    return request.render(
        "user.html",
        user_id=user,
        state=state,
        found=found,
        others=[] if found is None else [each for each in found.users if each[0] != user],
        persons=persons,
        more_persons=more_persons,
    )


def _without_user(request: PageRequest) -> HttpResponse:
    """Show the search field, and the users who are blocked."""
    if "user" in request.http.GET:
        return request.render("user.html", is_anonymous=True)
    try:
        ends = list(people.blocked().items())
    except service.Unavailable as unavailable:
        return request.render("user.html", status=503, unavailable=unavailable)
    first = [(user, _moment(end)) for user, end in ends[:FOUND]]
    return request.render("user.html", blocked=BlockedList(first, len(ends)))


def read(request: PageRequest, user: str) -> UserState:
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
    return UserState(
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


def _action(codename: str) -> Callable[[Callable[[PageRequest, str], HttpResponse]], View]:
    """Return a decorator for actions on the user in the query, which need a permission."""

    def decorate(act: Callable[[PageRequest, str], HttpResponse]) -> View:
        @wraps(act)
        def view(request: PageRequest) -> HttpResponse:
            request.require(codename)
            user = _user(request)
            return act(request, user) if user else request.redirect("user", user="")

        return view

    return decorate


@_action("disconnect")
def disconnect(request: PageRequest, user: str) -> HttpResponse:
    """Ask for confirmation, then disconnect a user."""
    if request.http.method != "POST":
        state = read(request, user)
        return request.render(
            "user_disconnect.html", title=_("Disconnect user"), user_id=user, state=state
        )
    with request.operator.logged(audit.DISCONNECT, user):
        silent = realtime.disconnect(user)
    if silent:
        text = _("Connections of %(user)s are being closed at the nodes that answer.")
    else:
        text = _("All connections of %(user)s are being closed.")
    return _done(request, user, text % {"user": user}, silent)


@_action("disconnect")
def close(request: PageRequest, user: str) -> HttpResponse:
    """Ask for confirmation, then close one connection of a user."""
    client = request.http.GET.get("client", "")
    if not client:
        return request.redirect("user", user=user)
    if request.http.method != "POST":
        title = _("Close connection")
        return request.render("user_close.html", title=title, user_id=user, client=client)
    with request.operator.logged(audit.DISCONNECT, user, detail=client):
        silent = realtime.disconnect(user, client=client)
    text = _("The connection %(client)s is being closed.")
    return _done(request, user, text % {"client": client}, silent)


@_action("block")
def block(request: PageRequest, user: str) -> HttpResponse:
    """Ask for how long, then close a user's connections and refuse new ones."""
    if request.http.method == "POST":
        minutes = _minutes(request.http.POST.get("minutes", ""))
        if minutes is not None:
            return _block(request, user, minutes)
        request.warning(_("Nothing was done: the number of minutes is not between 1 and 525600."))
    return request.render(
        "user_block.html",
        title=_("Block user"),
        user_id=user,
        state=read(request, user),
        minutes=DEFAULT_MINUTES,
        most=MAX_MINUTES,
    )


def _block(request: PageRequest, user: str, minutes: int) -> HttpResponse:
    span = duration(minutes * 60)
    try:
        with request.operator.logged(audit.BLOCK, user, detail=span):
            silent = realtime.block(user, minutes * 60)
    except Error as error:
        return _refused(request, user, error)
    text = _("Blocked for %(time)s: %(user)s. All connections are being closed.")
    return _done(request, user, text % {"user": user, "time": span}, silent)


@_action("block")
def unblock(request: PageRequest, user: str) -> HttpResponse:
    """Ask for confirmation, then let a user connect again."""
    if request.http.method != "POST":
        return request.render("user_unblock.html", title=_("Unblock user"), user_id=user)
    with request.operator.logged(audit.UNBLOCK, user):
        silent = realtime.unblock(user)
    text = _("The user %(user)s may connect again.")
    return _done(request, user, text % {"user": user}, silent)


def _minutes(text: str) -> int | None:
    """Return a number of minutes; None if it is longer than a user can be blocked."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_MINUTES))):
        return None
    return int(text) if 1 <= int(text) <= MAX_MINUTES else None


@_action("unsubscribe")
def unsubscribe(request: PageRequest, user: str) -> HttpResponse:
    """Ask for confirmation, then unsubscribe a user from a channel or from all channels."""
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
            silent = realtime.unsubscribe(user, channel)
    except Error as error:
        return _refused(request, user, error)
    if silent:
        text = _("Connections of %(user)s were unsubscribed at the nodes that answer.")
    elif channel:
        text = _("All connections of %(user)s were unsubscribed from %(channel)s.")
    else:
        text = _("All connections of %(user)s were unsubscribed from all channels.")
    return _done(request, user, text % {"user": user, "channel": channel}, silent)


def _refused(request: PageRequest, user: str, error: Error) -> HttpResponse:
    """Go back to the user, and say why an action did nothing."""
    text = _("Nothing was done. Error %(code)d: %(message)s.")
    request.warning(text % {"code": error.code, "message": error.message})
    return request.redirect("user", user=user)


def _done(request: PageRequest, user: str, text: str, silent: list[str]) -> HttpResponse:
    """Go back to the user, and say what was done, and that it reaches silent nodes later."""
    request.success(text)
    if silent:
        warning = ngettext(
            "A node is silent: %(names)s. The action takes effect there when it answers again.",
            "%(n)d nodes are silent: %(names)s."
            " The action takes effect there when they answer again.",
            len(silent),
        )
        request.warning(warning % {"n": len(silent), "names": ", ".join(silent)})
    return request.redirect("user", user=user)


def _user(request: PageRequest) -> str:
    return request.http.GET.get("user", "")


def _row(report: ClientReport, node: str) -> ConnectionRow:
    info = None if report.info is None else info_text(report.info)
    return ConnectionRow(report, node, report.channels[:SHOWN], info)


def _moment(seconds: float) -> datetime | None:
    """Return Unix seconds as a moment; None for 0."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def info_text(info: str) -> JSONText:
    """Return the info as clients get it. Python might not be able to decode its numbers."""
    raw = info.encode()
    try:
        return json_text(payload.check(raw))
    except ValueError:  # it was accepted with a shallower call stack
        return json_text(payload.Payload(raw, raw))
