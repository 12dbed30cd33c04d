"""The frames of a user's connections, in both directions, for a limited time.

    QUESTION ──POST, logged──► FOLLOWING ──time over, "stop", or not asked for ten seconds──► OVER

What is followed, until when, and by which operator, is in a signed text in the URL, so any process
answers, and another operator has to begin, and to be logged, too. Nodes keep copies until they are
asked, in bounded number; leaving the page ends it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from django.core import signing
from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .. import audit, people, service
from ..panel import PageRequest
from ..people import CopiedFrame, Frames
from ..words import duration

DEFAULT_MINUTES = 2
MAX_MINUTES = 10
"""How long a user is followed."""

SALT = "realtime.panel.frames"

MAX_TAKEN = 1000
"""Nodes of which the page says what it has."""

_TAKEN = msgspec.json.Decoder(dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]])

KINDS: Mapping[str, str | Promise] = {
    "there": gettext_lazy("was connected"),
    "opened": gettext_lazy("connected"),
    "received": gettext_lazy("from the client"),
    "sent": gettext_lazy("to the client"),
    "closed": gettext_lazy("closed"),
}
"""Kind of a copy → what it is."""


class Following(NamedTuple):
    """Whom an operator follows."""

    mirror: str
    user: str
    masked: bool
    until: float
    """Unix seconds."""

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.time() >= self.until


def show(request: PageRequest) -> HttpResponse:
    """Ask whether to follow a user; or show the frames of the one in the signed query."""
    user = request.http.GET.get("user", "")
    if not user:
        return request.redirect("user", user="")
    if request.http.method == "POST":
        return _begin(request, user)
    following = _followed(request)
    if following is None:
        return _question(request, user)
    context: dict[str, Any] = {
        "user_id": user,
        "masked": following.masked,
        "until": datetime.fromtimestamp(following.until, UTC),
        "trace": request.http.GET["trace"],
    }
    if following.is_over:
        return request.render("frames.html", is_over=True, **context)
    try:
        frames = people.frames(following.mirror, user, masked=following.masked, taken={})
    except service.Unavailable as unavailable:
        return request.render("frames.html", status=503, unavailable=unavailable, **context)
    return request.render(
        "frames.html",
        frames=frames,
        entries=[_entry(frame) for frame in frames.frames],
        taken=json.dumps(frames.taken),
        **context,
    )


def _question(request: PageRequest, user: str) -> HttpResponse:
    return request.render(
        "frames_question.html", user_id=user, minutes=DEFAULT_MINUTES, most=MAX_MINUTES
    )


def _begin(request: PageRequest, user: str) -> HttpResponse:
    text = request.http.POST.get("minutes", "")
    if not (text.isascii() and text.isdigit() and len(text) < 3 and 1 <= int(text) <= MAX_MINUTES):
        request.warning(_("Nothing was done: the number of minutes is not between 1 and 10."))
        return _question(request, user)
    masked = "masked" in request.http.POST
    seconds = int(text) * 60
    span = _("%(time)s, payloads hidden") if masked else _("%(time)s, payloads shown")
    following = Following(uuid.uuid4().hex, user, masked, time.time() + seconds)
    # the first question begins the mirror: an operator who sees nothing is not in the log
    with request.operator.logged(audit.TRACE, user, detail=span % {"time": duration(seconds)}):
        people.frames(following.mirror, user, masked=masked, taken={})
    trace = signing.dumps(following, salt=_salt(request))
    return request.redirect("frames", user=user, trace=trace)


def data(request: PageRequest) -> HttpResponse:
    """Give the page's script what came since it asked last."""
    following = _followed(request)
    if following is None or following.is_over:
        return JsonResponse({"over": True})
    try:
        taken = _taken(request.http.GET.get("taken", ""))
        frames = people.frames(
            following.mirror, following.user, masked=following.masked, taken=taken
        )
    except service.Unavailable as unavailable:
        return JsonResponse({"note": str(unavailable.title)})
    return JsonResponse(
        {
            "entries": [_entry(frame)._asdict() for frame in frames.frames],
            "taken": frames.taken,
            "note": note(frames),
        }
    )


def stop(request: PageRequest) -> HttpResponse:
    """End it at all nodes, and go back to the user."""
    following = _followed(request)
    if request.http.method == "POST" and following is not None:
        people.end_frames(following.mirror)
    return request.redirect("user", user=request.http.GET.get("user", ""))


class Entry(NamedTuple):
    """A frame on the page."""

    time: str
    node: str
    client: str
    kind: str
    """That of the copy, for styles."""
    what: str
    text: str


def _entry(frame: CopiedFrame) -> Entry:
    at = timezone.localtime(datetime.fromtimestamp(frame.copy.time, UTC))
    return Entry(
        at.strftime("%H:%M:%S.%f")[:-3],
        frame.node,
        frame.copy.client,
        frame.copy.kind,
        str(KINDS.get(frame.copy.kind, frame.copy.kind)),
        frame.copy.text,
    )


def note(frames: Frames) -> str:
    """Return what is missing, in words; "" if nothing is."""
    notes = []
    if frames.left_out:
        text = _("Left out, because more came than nodes keep: %(n)s")
        notes.append(text % {"n": frames.left_out})
    if frames.refused:
        text = _(
            "These nodes follow as many users as they may: %(names)s."
            " End another one, or wait ten seconds."
        )
        notes.append(text % {"names": ", ".join(frames.refused)})
    if frames.missing:
        text = _("These nodes did not answer: %(names)s.")
        notes.append(text % {"names": ", ".join(frames.missing)})
    return " ".join(notes)


def _followed(request: PageRequest) -> Following | None:
    """Return what the signed text says; None if there is none, or it is for others."""
    text = request.http.GET.get("trace", "")
    try:
        fields = signing.loads(text, salt=_salt(request), max_age=MAX_MINUTES * 60 + 60)
    except signing.BadSignature:
        return None
    following = Following(*fields)
    return following if following.user == request.http.GET.get("user", "") else None


def _salt(request: PageRequest) -> str:
    """Return what makes the signature valid for one operator only."""
    return f"{SALT}:{request.operator.name}"


def _taken(text: str) -> dict[str, int]:
    """Return what the page says that it has; nothing if that cannot be read."""
    try:
        found = _TAKEN.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return {}
    return {} if len(found) > MAX_TAKEN else found
