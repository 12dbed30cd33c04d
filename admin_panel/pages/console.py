"""Run any command of the server API, and see what it answers.

    typed ──► refused: the form again, with everything in it
      │
      ▼
    run ────► it only reads: the answer beside the request, on the page of the form
      └─────► it changes something: the same after a redirect, so that loading it again does nothing

With JavaScript the answer comes as JSON and is put into the page, which keeps the last commands.
"""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

import msgspec
from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from realtime.errors import Error
from realtime.payload import replace_lone_surrogates

from .. import service
from ..panel import PageRequest
from ..publishing.forms import check_json, check_number, text_area
from .console_methods import BY_NAME, METHODS, Command, command

LONGEST = 200_000
"""Characters of an answer that are shown."""

INDENTED = 20_000
INDENTED_DEPTH = 32
"""Longer texts are indented only if they are not nested deeper: their size could explode."""

FLASH = "realtime_admin.console"
FLASH_MAX_LENGTH = 2500
"""Characters that the session keeps over a redirect; it may be a cookie."""

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class Answer(NamedTuple):
    """A command that was run, ready to be shown."""

    method: str
    request: str
    """JSON, laid out."""
    response: str
    """JSON, laid out; the beginning of it where it is very long."""
    num_bytes: int
    """Of the response."""
    is_cut: bool
    ok: bool
    """Whether it is a result, and not an error."""
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
        """As they were typed; nothing is a value, too."""
        text: str = self.cleaned_data["params"]
        if not text.strip():
            return ""
        check_json(text)
        return text

    def clean(self) -> dict[str, Any]:
        """The two together: `command` is what is to be run."""
        given = self.cleaned_data
        if "method" in given and "params" in given:
            given["command"] = command(BY_NAME[given["method"]], given["params"])
            try:
                check_number(len(given["command"].targets))
            except forms.ValidationError as error:
                self.add_error("params", error)
        return given


def show(request: PageRequest) -> HttpResponse:
    """The form, and what it answered without JavaScript."""
    if request.http.method != "POST":
        method = BY_NAME.get(request.http.GET.get("method", ""), METHODS[0])
        values = {"method": method.name, "params": method.example}
        kept = _take(request)
        if kept is None:
            return _page(request, ConsoleForm(initial=values))
        values = {"method": kept["method"], "params": kept.pop("params")}
        return _page(request, ConsoleForm(initial=values), answer=Answer(**kept))
    form = ConsoleForm(request.http.POST)
    if not form.is_valid():
        return _page(request, form)
    wanted: Command = form.cleaned_data["command"]
    try:
        answer = execute(request, wanted)
    except PermissionDenied:
        form.add_error("method", _refusal(wanted))
        return _page(request, form, status=403)
    except service.Unavailable as unavailable:
        return _page(request, form, status=503, unavailable=unavailable)
    if wanted.method.change is None:
        return _page(request, form, answer=answer)
    if answer.ok:
        request.success(_("%(method)s was run.") % {"method": wanted.method.name})
    else:
        request.warning(
            _("%(method)s was answered with an error.") % {"method": wanted.method.name}
        )
    _keep(request, answer, wanted.params)
    return request.redirect("console", method=wanted.method.name)


def run(request: PageRequest) -> HttpResponse:
    """For the page's script: run the form's command; JSON that holds HTML to show."""
    if request.http.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = ConsoleForm(request.http.POST)
    if not form.is_valid():
        errors = {name: messages[0] for name, messages in form.errors.items()}
        return JsonResponse({"errors": errors})
    wanted: Command = form.cleaned_data["command"]
    try:
        answer = execute(request, wanted)
    except PermissionDenied:
        return JsonResponse({"errors": {"method": _refusal(wanted)}}, status=403)
    except service.Unavailable as unavailable:
        html = request.fragment("_unavailable.html", unavailable=unavailable)
        return JsonResponse({"html": html}, status=503)
    html = request.fragment("_console_answer.html", answer=answer)
    return JsonResponse({"html": html, "ok": answer.ok})


def execute(request: PageRequest, wanted: Command) -> Answer:
    """Run a command as /api would, and log what it changes.

    Raises:
        PermissionDenied
        Unavailable
    """
    if not wanted.is_allowed(request.operator):
        raise PermissionDenied
    started = time.perf_counter()
    ok, response = True, b""
    change = wanted.method.change
    try:
        if change is None or not wanted.targets:
            response = _run(wanted)
        else:
            targets = reached(wanted)
            with request.operator.logged(change.kind, *targets, detail=wanted.detail):
                try:
                    response = _run(wanted)
                except Error as error:
                    if len(targets) in (0, len(wanted.targets)):
                        raise  # nothing was done
                    ok, response = False, _error(error)
    except Error as error:
        ok, response = False, _error(error)
    milliseconds = (time.perf_counter() - started) * 1000
    text = laid_out(response)
    return Answer(
        wanted.method.name,
        laid_out(_request(wanted)),
        text[:LONGEST],
        len(response),
        is_cut=len(text) > LONGEST,
        ok=ok,
        milliseconds=milliseconds,
    )


def reached(wanted: Command) -> list[str]:
    """What a command reaches: a broadcast ends at the first channel that is refused."""
    if wanted.method.name != "broadcast":
        return wanted.targets
    found: list[str] = []
    for channel in wanted.targets:
        try:
            service.options_of(channel)
        except Error:
            break
        found.append(channel)
    return found


def laid_out(text: bytes) -> str:
    """JSON as it is shown: indented, if that does not blow it up."""
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


def _run(wanted: Command) -> bytes:
    result = service.run_command(wanted.method.name, wanted.params.encode())
    return b'{"result":%b}' % result


def _error(error: Error) -> bytes:
    return msgspec.json.encode({"error": {"code": error.code, "message": error.message}})


def _request(wanted: Command) -> bytes:
    params = b',"params":%b' % wanted.params.encode() if wanted.params else b""
    return b'{"method":"%b"%b}' % (wanted.method.name.encode(), params)


def _refusal(wanted: Command) -> str:
    return _("You may not run this %(method)s.") % {"method": wanted.method.name}


def _page(
    request: PageRequest, form: ConsoleForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    methods = [method for method in METHODS if method.may(request.operator)]
    return request.render("console.html", status=status, form=form, methods=methods, **context)


# over a redirect


def _keep(request: PageRequest, answer: Answer, params: str) -> None:
    """Show the answer on the next page, if the session can hold it."""
    session = getattr(request.http, "session", None)
    kept = answer._asdict() | {"params": params}
    if session is not None and sum(len(str(value)) for value in kept.values()) <= FLASH_MAX_LENGTH:
        session[FLASH] = kept


def _take(request: PageRequest) -> dict[str, Any] | None:
    """The answer that was kept for this page, once; not one that another release kept."""
    session = getattr(request.http, "session", None)
    kept: dict[str, Any] = {} if session is None else session.pop(FLASH, {})
    return kept if kept.keys() == {*Answer._fields, "params"} else None
