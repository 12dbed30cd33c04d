"""Publish data into one or many channels; each publication adds an entry to the admin's log.

    form ───────► not valid: the form again, as it was
     │   └──────► large: a page that asks for confirmation and keeps the input
     ▼
    published ──► a redirect to the form; if some channels failed: the form with those

Without JavaScript every step is a page. With it, the form shows its reach while the operator
types, and asks for confirmation in a dialog.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from realtime.config import sources
from realtime.errors import Error

from .. import channel_names, service
from ..operators import Operator
from ..panel import PageRequest
from ..publishing import recent, typed
from ..publishing.forms import EXTRAS, ChannelsField, PublishForm, TagsField
from ..publishing.reach import Reach, Target, check, count
from ..publishing.send import SentPublications, send
from .channels import find

SUGGESTED = 20
"""Channels that are suggested at once."""

SHOWN = 10
"""Channels that an error or a message names; of the others it gives the number."""

QUERY_MAX_LENGTH = 4000
"""Characters of a query that any server accepts; longer lists of channels are left out."""

_DRAFT = re.compile(r"[0-9a-zA-Z-]{1,64}")


def show(request: PageRequest) -> HttpResponse:
    """Show the form, or run the action of its button."""
    post = request.http.POST
    if request.http.method != "POST":
        return _page(request, PublishForm(initial=_from_query(request)))
    if "edit" in post or "check" in post:
        values = {name: post.get(name, "") for name in PublishForm.base_fields}
        context = reached(request.operator, values["channel"]) if "check" in post else {}
        return _page(request, PublishForm(initial=values), **context)
    form = PublishForm(post)
    if not form.is_valid():
        return _page(request, form)
    return _publish(request, form)


def reach(request: PageRequest) -> HttpResponse:
    """Send the page's script the reach of the channels in the form, and whether to confirm it."""
    if request.http.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    context = reached(request.operator, request.http.POST.get("channel", ""))
    reach: Reach | None = context.get("reach")
    return JsonResponse(
        {
            "html": request.fragment("_publish_reach.html", **context),
            "types": request.fragment("_publish_types.html", **context),
            "confirm": reach is not None and not reach.refused and reach.needs_confirmation,
            "deed": "" if reach is None else _deed(reach),
        }
    )


def channels(request: PageRequest) -> HttpResponse:
    """Send the page's script the channels that have a subscriber and contain a text."""
    try:
        known = service.channels()
    except service.Unavailable:
        return JsonResponse({"channels": []})  # they are suggestions only
    suggested: list[str] = []
    for channel in find(known, request.http.GET.get("q", "").strip()):
        if request.operator.may_publish(channel):
            suggested.append(channel)
            if len(suggested) == SUGGESTED:
                break
    return JsonResponse({"channels": suggested})


def reached(operator: Operator, text: str) -> dict[str, Any]:
    """Return the context of `_publish_reach.html` for the channels in a text."""
    try:
        names = ChannelsField(required=False).clean(text)
    except ValidationError as error:
        return {"asked": True, "reach_errors": error.messages}
    targets = check(operator, names)
    types = typed.described([target.channel for target in targets if not target.problem])
    try:
        return {"asked": True, "reach": count(targets), "types": types}
    except service.Unavailable as unavailable:
        return {"asked": True, "unavailable": unavailable}


def _publish(request: PageRequest, form: PublishForm) -> HttpResponse:
    targets = check(request.operator, form.cleaned_data["channel"])
    if any(target.problem for target in targets):
        _refuse(form, targets)
        forbidden = any(target.forbidden for target in targets)
        return _page(request, form, status=403 if forbidden else 200)
    channels, data, extras = form.cleaned_data["channel"], form.cleaned_data["data"], form.extras
    try:
        misfits = typed.misfits(channels, data)
        if misfits and typed.refuses():
            form.add_error("data", misfits)
            return _page(request, form)
        if "confirmed" not in request.http.POST:
            reach = count(targets)
            if reach.needs_confirmation:
                return _ask(request, reach)
        sent = send(request.operator, channels, data, **extras)
    except service.Unavailable as unavailable:
        form.add_error("channel", f"{unavailable.title}. {unavailable.advice}")
        return _page(request, form)
    except ValueError:
        form.add_error("data", _("The service does not accept this as JSON."))
        return _page(request, form)
    for misfit in misfits:
        request.warning(misfit)
    if sent.failed:
        return _page_of_failure(request, form, sent)
    request.success(_done(sent.published))
    return HttpResponseRedirect(_after(request, sent.published))


def _refuse(form: PublishForm, targets: list[Target]) -> None:
    """Add the refused channels and the reasons to the errors of the field."""
    refused = [target for target in targets if target.problem]
    if len(targets) == 1:
        form.add_error("channel", refused[0].problem)
        return
    for target in refused[:SHOWN]:
        form.add_error("channel", f"{target.channel}: {target.problem}")
    more = len(refused) - SHOWN
    if more > 0:
        text = ngettext(
            "%(count)d more channel is refused.", "%(count)d more channels are refused.", more
        )
        form.add_error("channel", text % {"count": more})


def _deed(reach: Reach) -> str:
    """Return the text of the button that publishes: to how many, if all nodes have answered."""
    if reach.missing:
        return _("Yes, publish")
    number = reach.subscribers
    text = ngettext("Publish to %(shown)s subscriber", "Publish to %(shown)s subscribers", number)
    return text % {"shown": number_format(number, force_grouping=True)}


def _ask(request: PageRequest, reach: Reach) -> HttpResponse:
    return request.render(
        "publish_confirm.html",
        title=_("Confirm a large publication"),
        channel=request.http.POST["channel"],
        data=request.http.POST["data"],
        extras=[(name, request.http.POST.get(name, "")) for name in EXTRAS],
        draft=_draft(request.http),
        reach=reach,
        deed=_deed(reach),
        asked=True,
    )


def _page_of_failure(
    request: PageRequest, form: PublishForm, sent: SentPublications
) -> HttpResponse:
    """Show the form with the channels into which publishing failed."""
    if sent.published:
        values = {name: request.http.POST.get(name, "") for name in PublishForm.base_fields}
        values["channel"] = channel_names.join(sent.failed)
        # unbound, because the remaining input is valid and may be sent again
        return _page(
            request,
            PublishForm(initial=values),
            sent=sent,
            outcomes=sorted(sent.outcomes, key=lambda outcome: not outcome.problem)[:100],
        )
    if sent.unavailable is not None and sent.logged:
        form.add_error("channel", f"{sent.unavailable.title}.")
        return _page(request, form, may_be_done=True)
    if sent.unavailable is not None:
        form.add_error("channel", f"{sent.unavailable.title}. {sent.unavailable.advice}")
    else:
        problems = (Target(each.channel, None, each.problem) for each in sent.outcomes)
        _refuse(form, list(problems))
    return _page(request, form)


def _page(
    request: PageRequest, form: PublishForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    publishable = namespaces_of(request.operator)
    return request.render(
        "publish.html",
        status=status,
        form=form,
        draft=_draft(request.http),
        publications=recent.publications(request.operator),
        namespaces=publishable,
        boundary=sources.current().channel_namespace_boundary,
        **context,
    )


def namespaces_of(operator: Operator) -> list[str] | None:
    """Return the namespaces that an operator may publish into; None for all channels."""
    if operator.may_publish(""):
        return None
    config = sources.current()
    boundary = config.channel_namespace_boundary
    return [name for name in config.namespaces if operator.may_publish(f"{name}{boundary}")]


def _from_query(request: PageRequest) -> dict[str, str]:
    """Return the initial values.

    `?channel=a&channel=b` names channels, `?use=<entry of the log>` a publication of an operator,
    and `?channel=a&offset=7` one of a history.
    """
    query = request.http.GET
    use = query.get("use")
    if use is None and "offset" in query:
        return _from_history(request, query.get("channel", ""), query["offset"])
    if use is None:
        return {"channel": channel_names.join(name for name in query.getlist("channel") if name)}
    try:
        publication = recent.publication(request.operator, use)
    except DatabaseError:
        request.warning(_("The log cannot be read"))
        return {}
    if publication is None:
        request.warning(_("This publication is no longer listed."))
        return {}
    if not publication.is_whole:
        request.warning(
            _("The log has only the beginning of the data, so only the channels are filled in.")
        )
    return publication.form_values


def _from_history(request: PageRequest, channel: str, offset: str) -> dict[str, str]:
    """Return the values of a publication that a channel keeps, to publish it again.

    The history shows what others published: only operators who may view get it.
    """
    values = {"channel": channel_names.join([channel])}
    if not request.operator.may_view:
        return values
    try:
        kept = service.publication(channel, int(offset))
    except (Error, ValueError):
        kept = None
    except service.Unavailable as unavailable:
        request.warning(f"{unavailable.title}. {unavailable.advice}")
        return values
    if kept is None:
        request.warning(_("The history no longer has this publication."))
        return values
    return values | {"data": kept.data.raw.decode(), "tags": TagsField.written(kept.tags or {})}


def _after(request: PageRequest, published: list[str]) -> str:
    """Return the URL of the form for the next publication into these channels."""
    query = [("channel", name) for name in published]
    if len(urlencode(query)) > QUERY_MAX_LENGTH:
        query = []
    draft = _draft(request.http)
    if draft:
        query.append(("sent", draft))
    url = request.url("publish")
    return f"{url}?{urlencode(query)}" if query else url


def _done(published: list[str]) -> str:
    if len(published) == 1:
        return _("Published into %(channel)s.") % {"channel": published[0]}
    names = ", ".join(published[:SHOWN])
    more = len(published) - SHOWN
    if more > 0:
        names = _("%(names)s and %(count)d more") % {"names": names, "count": more}
    return _("Published into %(count)d channels: %(names)s.") % {
        "count": len(published),
        "names": names,
    }


def _draft(request: HttpRequest) -> str:
    """Return the ID that the page's script gave to a draft, which it forgets once it was sent."""
    name = request.POST.get("draft", "")
    return name if _DRAFT.fullmatch(name) else ""
