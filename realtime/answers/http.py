"""Answers over HTTP: as the response to the request that asked, and for those who join.

A view returns a response of Django's with nothing in it. The service, which stands in front of
Django, sends the stream in its place: after the view, with no thread and no database connection.

    data: {"type":"text-delta",...}     ui, ag-ui, events: each chunk
    data: Hello                         html: the text, escaped for a page
    id: 17.EPOCH                        from where `Last-Event-ID` goes on
    event: end                          text, html, events: the last event, with the status
    data: [DONE]                        ui: the last event
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import msgspec
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.html import escape
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from realtime import errors
from realtime.answers import forms, permission, rows
from realtime.answers.models import Answer, Status, answers
from realtime.config import sources
from realtime.hooks.requests import Request
from realtime.hooks.site_values import user_id
from realtime.node.reader import PublicationsLost
from realtime.pages import page_config
from realtime.protocol.v2.events import id_line, text_lines
from realtime.server_api.arguments import Position
from realtime.server_api.listening import listen
from realtime.server_api.queries import ahistory
from realtime.transports.asgi import Exchange
from realtime.transports.handover import HANDOVER, Handover
from realtime.transports.streaming.request import STREAM_HEADERS
from realtime.transports.streaming.transport import connection_of

PING = 15.0
"""Seconds between comments, which keep proxies from closing the response."""
MAX_BACKLOG = 256 * 1024
"""Bytes that a reader has not taken, after which the stream waits for it."""
DRAIN = 0.05

Check: TypeAlias = Callable[[Answer, Request], None]
Respond: TypeAlias = Callable[[], HttpResponse]

LOST = "lost"
"""In place of a status: the reader missed a part for good, and has to load the answer anew."""
OVER = "end"
"""The ID of the last event. A reader who comes back with it gets status 204, and stays away."""


def response(request: HttpRequest, row: Answer, *, as_html: bool = False) -> HttpResponse:
    """Return an answer as the response to a request: from its beginning, until its end.

    The answer goes on when the reader closes the response.

    Args:
        request: of a view that an ASGI server runs.
        row: the answer; that the visitor may read it is for the view to know.
        as_html: send the text, escaped, for a page that shows it as it comes.

    Raises:
        NotServing: this process serves no clients, or `realtime.asgi.application` is not in front
            of the site.
    """
    handover: Handover | None = getattr(request, "scope", {}).get(HANDOVER)
    if handover is None:
        raise errors.NotServing(
            "Answers are streamed by the ASGI server: put realtime.asgi.application in front of"
            " the site's ASGI application."
        )
    if request.method not in ("GET", "POST"):
        return HttpResponseNotAllowed(("GET", "POST"))
    since = request.headers.get("Last-Event-ID", "")
    if since == OVER:
        return HttpResponse(status=204)
    handover.serve = partial(_serve, AnswerEvents(row, as_html), position_of(since))
    headers = {name.decode(): value.decode() for name, value in STREAM_HEADERS}
    if row.form == "ui" and not as_html:
        headers["x-vercel-ai-ui-message-stream"] = "v1"
    return HttpResponse(content_type="text/event-stream", headers=headers)


def resume_response(request: HttpRequest, channel: str) -> HttpResponse:
    """Return the answer that is under way in a channel; status 204 if there is none.

    This is what `useChat({resume: true})` asks for. It never begins an answer.

    Raises:
        django.core.exceptions.PermissionDenied: the visitor may not read it.
        NotServing: as `response`.
    """
    unended = rows.unended(channel)
    if not unended:
        return HttpResponse(status=204)
    row = next((each for each in unended if each.busy), unended[-1])  # others wait for this one
    return _if_allowed(permission.check_read, request, row, lambda: response(request, row))


@never_cache
@require_GET
def events(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stream an answer, to those who may read it."""
    row, as_html = get_object_or_404(answers(), pk=pk), request.GET.get("format") == "html"
    respond = partial(response, request, row, as_html=as_html)
    return _if_allowed(permission.check_read, request, row, respond)


@never_cache
@require_POST
def stop(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stop an answer, for those who may. It answers with the status that the answer has then."""
    row = get_object_or_404(answers(), pk=pk)
    return _if_allowed(permission.check_stop, request, row, partial(_stop, row))


def _stop(row: Answer) -> HttpResponse:
    return JsonResponse({"status": rows.end(row, Status.STOPPED).status})


def _if_allowed(check: Check, request: HttpRequest, row: Answer, respond: Respond) -> HttpResponse:
    """Respond to a visitor who passes a check."""
    user = user_id(page_config.visitor(request) or "")
    handshake = page_config.handshake(request, sources.current())
    try:
        check(row, Request(client="", user=user, handshake=handshake))
        return respond()
    except errors.InternalError:
        return HttpResponse("A hook failed.\n", status=500)
    except errors.EngineUnavailable:
        return HttpResponse("The engine is away.\n", status=503)
    except (errors.Error, errors.Disconnect):
        raise PermissionDenied from None


class AnswerEvents:
    """The events of one answer, for one reader."""

    def __init__(self, row: Answer, as_html: bool) -> None:
        self.row = row
        self._is_text = as_html or row.form == "text"
        self._quoted: Callable[[str], str] = escape if as_html else str

    def of(
        self, chunks: Iterable[Any], at: Position | None = None, end: str | None = None
    ) -> bytes:
        """Return the events of chunks; the last event has an ID.

        Args:
            at: the position of the chunks.
            end: the status, if nothing follows.
        """
        if self._is_text:
            text = forms.text_of(self.row.of_form, chunks)
            events = [text_lines(self._quoted(text))] if text else []
        else:
            events = [b"data: %b\n" % msgspec.json.encode(chunk) for chunk in chunks]
        event_id = f"{at.offset}.{at.epoch}" if at is not None else ""
        if end is not None:
            event_id = OVER
            if self._is_text or self.row.form == "events":
                events.append(b"event: end\ndata: %b\n" % end.encode())
            elif self.row.form == "ui":
                events.append(b"data: [DONE]\n")
            events = events or [b""]
        if events and event_id:
            events[-1] = id_line(event_id) + events[-1]
        return b"".join(b"%b\n" % event for event in events)


async def _serve(events: AnswerEvents, since: Position | None, exchange: Exchange) -> None:
    """Send the body of the response: the stream."""
    pinging = asyncio.ensure_future(_ping(exchange))
    try:
        is_whole = await exchange.unless_gone(_send(_stream(events, since), exchange))
    finally:
        pinging.cancel()
    if is_whole:
        await exchange.end()


async def _ping(exchange: Exchange) -> None:
    while True:
        await exchange.write(b":\n\n")  # at once, for servers keep a head until there is a body
        await asyncio.sleep(PING)


async def _send(stream: AsyncGenerator[bytes], exchange: Exchange) -> bool:
    """Send what a stream yields, as fast as the reader takes it. Return True at its end."""
    connection = connection_of(exchange.send)
    async with aclosing(stream):
        async for part in stream:
            await exchange.write(part)
            while connection.backlog_bytes() > MAX_BACKLOG:
                await asyncio.sleep(DRAIN)
    return True


async def _stream(events: AnswerEvents, since: Position | None) -> AsyncGenerator[bytes]:
    """Yield the events of an answer: the chunks in the row, then the channel's publications."""
    row, part = events.row, b""
    try:
        if row.has_ended:
            chunks = row.chunks()
            if since is not None:
                if row.position < 0:  # its publications have left the engine
                    raise errors.UnrecoverablePosition
                missed = await ahistory(row.own_channel, since=since)
                chunks = [c for each in missed for c in forms.chunks_of(row.of_form, each["data"])]
            yield events.of(chunks, end=row.status)
            return
        if since is None and (part := events.of(row.chunks(), row.saved)):
            yield part
        async for publication in listen(row.own_channel, since=since or row.saved or 0):
            chunks = forms.chunks_of(row.of_form, publication.data)
            end = publication.tags.get(forms.END)
            part = events.of(chunks, Position(publication.offset, publication.epoch), end)
            yield part
            if end:
                return
    except (PublicationsLost, errors.UnrecoverablePosition):
        if not part:  # otherwise the reader comes back, and may recover
            yield events.of(forms.ending(row.of_form, LOST, ()), end=LOST)
    except (errors.EngineUnavailable, errors.NotServing):
        pass  # the reader comes back


def position_of(text: str) -> Position | None:
    """Return the position that an event ID names; None if it names none."""
    offset, _, epoch = text.partition(".")
    is_one = epoch and offset.isascii() and offset.isdigit() and len(offset) < 20
    return Position(int(offset), epoch) if is_one else None
