"""Run any command of the server API, and show its response.

    form ─────► not valid: the form again, as it was
      │
      ▼
    command ──► that only reads: request and response below the form
      └───────► that changes something: the same after a redirect, so that a reload does nothing

With JavaScript the page asks before a command that changes something. The response arrives as JSON,
and the page keeps the last commands.
"""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

import msgspec
from django import forms
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from realtime.errors import Error
from realtime.payload import replace_lone_surrogates

from .. import audit, commands, service
from ..panel import PageRequest
from ..publishing.forms import check_json, check_number, text_area
from ..publishing.positions import record
from .console_methods import BY_NAME, METHODS, Command, command

LONGEST = 200_000
"""Characters of a response that are shown."""

INDENTED = 20_000
INDENTED_DEPTH = 32
"""Texts longer than this are indented up to this depth of nesting, because they could explode."""

FLASH = "realtime_admin.console"
FLASH_MAX_LENGTH = 2500
"""Characters that the session keeps for the next page; it may be a cookie."""

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class ConsoleAnswer(NamedTuple):
    """A command that was run, and its response."""

    method: str
    request: str
    """JSON, laid out."""
    response: str
    """JSON, laid out; only the beginning if it is very long."""
    num_bytes: int
    """Size of the response."""
    is_cut: bool
    ok: bool
    """True for a result, False for an error."""
    milliseconds: float


class ConsoleForm(forms.Form):
    """One command."""

    method = forms.ChoiceField(
        label=gettext_lazy("Method"), choices=[(method.name, method.name) for method in METHODS]
    )
    params = forms.CharField(
        label=gettext_lazy("Params (JSON)"),
        required=False,
        strip=False,
        widget=text_area(8, "ltr"),
    )

    def clean_params(self) -> str:
        """Check the params and return them as they were typed; "" for none."""
        text: str = self.cleaned_data["params"]
        if not text.strip():
            return ""
        check_json(text)
        return text

    def clean(self) -> dict[str, Any]:
        """Add the command to run, as `command`."""
        values = self.cleaned_data
        if "method" in values and "params" in values:
            values["command"] = command(BY_NAME[values["method"]], values["params"])
            try:
                check_number(len(values["command"].targets))
            except forms.ValidationError as error:
                self.add_error("params", error)
        return values


def show(request: PageRequest) -> HttpResponse:
    """Show the form and, without JavaScript, run its command."""
    if request.http.method != "POST":
        method = BY_NAME.get(request.http.GET.get("method", ""), METHODS[0])
        values = {"method": method.name, "params": method.example}
        kept = _take(request)
        if kept is None:
            return _page(request, ConsoleForm(initial=values))
        values = {"method": kept["method"], "params": kept.pop("params")}
        return _page(request, ConsoleForm(initial=values), answer=ConsoleAnswer(**kept))
    form = ConsoleForm(request.http.POST)
    if not form.is_valid():
        return _page(request, form)
    to_run: Command = form.cleaned_data["command"]
    try:
        answer = execute(request, to_run)
    except PermissionDenied:
        form.add_error("method", _refusal(to_run))
        return _page(request, form, status=403)
    except service.Unavailable as unavailable:
        return _page(request, form, status=503, unavailable=unavailable)
    if to_run.method.change is None:
        return _page(request, form, answer=answer)
    if answer.ok:
        request.success(_("%(method)s was run.") % {"method": to_run.method.name})
    else:
        request.warning(_("%(method)s failed with an error.") % {"method": to_run.method.name})
    _keep(request, answer, to_run.params)
    return request.redirect("console", method=to_run.method.name)


def run(request: PageRequest) -> HttpResponse:
    """Run the form's command for the page's script, and send HTML to show in JSON."""
    if request.http.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = ConsoleForm(request.http.POST)
    if not form.is_valid():
        errors = {name: messages[0] for name, messages in form.errors.items()}
        return JsonResponse({"errors": errors})
    to_run: Command = form.cleaned_data["command"]
    try:
        answer = execute(request, to_run)
    except PermissionDenied:
        return JsonResponse({"errors": {"method": _refusal(to_run)}}, status=403)
    except service.Unavailable as unavailable:
        html = request.fragment("_unavailable.html", unavailable=unavailable)
        return JsonResponse({"html": html}, status=503)
    html = request.fragment("_console_answer.html", answer=answer)
    return JsonResponse({"html": html, "ok": answer.ok})


def execute(request: PageRequest, to_run: Command) -> ConsoleAnswer:
    """Run a command as /api would, and log its changes.

    Raises:
        PermissionDenied: the operator may not run it.
        Unavailable: the service does not answer.
    """
    if not to_run.is_allowed(request.operator):
        raise PermissionDenied
    started = time.perf_counter()
    ok, response = True, b""
    change = to_run.method.change
    try:
        targets = reached(to_run)
        if change is None or not targets:  # nothing is done to any
            response = _run(to_run)
        else:
            with request.operator.logged(change.kind, *targets, detail=to_run.detail) as entry:
                if change.kind is audit.PUBLISH:
                    response = _publish(entry, targets, to_run.detail)
                else:
                    response = _run(to_run)
            if len(targets) < len(to_run.targets):
                service.options_of(to_run.targets[len(targets)])  # refuses: the API stops there
    except Error as error:
        ok, response = False, _error(error)
    milliseconds = (time.perf_counter() - started) * 1000
    text = laid_out(response)
    return ConsoleAnswer(
        to_run.method.name,
        laid_out(_request(to_run)),
        text[:LONGEST],
        len(response),
        is_cut=len(text) > LONGEST,
        ok=ok,
        milliseconds=milliseconds,
    )


def reached(to_run: Command) -> list[str]:
    """Return the targets that a command reaches: a broadcast stops at the first refused channel."""
    if to_run.method.name != "broadcast":
        return to_run.targets
    found: list[str] = []
    for channel in to_run.targets:
        try:
            service.options_of(channel)
        except Error:
            break
        found.append(channel)
    return found


def laid_out(text: bytes) -> str:
    """Lay JSON out for the page: indented, unless that makes it explode."""
    indent = 2 if len(text) <= INDENTED or _depth(text) <= INDENTED_DEPTH else 0
    for spelling in (text, replace_lone_surrogates(text)):
        try:
            return msgspec.json.format(spelling, indent=indent).decode()
        except (msgspec.MsgspecError, RecursionError):
            pass
    return text.decode()


def _depth(text: bytes) -> int:
    depth = deepest = 0
    for token in _STRUCTURE.findall(text):
        if token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in b"]}":
            depth -= 1
    return deepest


def _publish(entry: LogEntry, channels: list[str], data: str) -> bytes:
    """Publish as the API does, and keep where the publications of the entry are."""
    record(entry, zip(channels, commands.publish(channels, data), strict=True))
    return b'{"result":{}}'


def _run(to_run: Command) -> bytes:
    result = commands.run_command(to_run.method.name, to_run.params.encode())
    return b'{"result":%b}' % result


def _error(error: Error) -> bytes:
    return msgspec.json.encode({"error": {"code": error.code, "message": error.message}})


def _request(to_run: Command) -> bytes:
    params = b',"params":%b' % to_run.params.encode() if to_run.params else b""
    return b'{"method":"%b"%b}' % (to_run.method.name.encode(), params)


def _refusal(to_run: Command) -> str:
    return _("You may not run this %(method)s.") % {"method": to_run.method.name}


def _page(
    request: PageRequest, form: ConsoleForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    methods = [method for method in METHODS if method.may(request.operator)]
    try:
        api = reverse("realtime_api:commands")
    except NoReverseMatch:
        api = ""  # the site has no server API
    return request.render(
        "console.html", status=status, form=form, methods=methods, api=api, **context
    )


# over a redirect


def _keep(request: PageRequest, answer: ConsoleAnswer, params: str) -> None:
    """Keep the answer for the next page, if the session can hold it."""
    session = getattr(request.http, "session", None)
    kept = answer._asdict() | {"params": params}
    if session is not None and sum(len(str(value)) for value in kept.values()) <= FLASH_MAX_LENGTH:
        session[FLASH] = kept


def _take(request: PageRequest) -> dict[str, Any] | None:
    """Return the answer that was kept for this page, once; None if another release kept it."""
    session = getattr(request.http, "session", None)
    kept: dict[str, Any] = {} if session is None else session.pop(FLASH, {})
    return kept if kept.keys() == {*ConsoleAnswer._fields, "params"} else None
