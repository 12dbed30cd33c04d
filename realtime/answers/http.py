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
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    JsonResponse,
)
from django.utils.html import escape
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from realtime.answers import forms, permission, rows
from realtime.answers.models import Answer, Status
from realtime.config import sources
from realtime.errors import (
    Disconnect,
    EngineUnavailable,
    Error,
    InternalError,
    NotServing,
    UnrecoverablePosition,
)
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

logger = logging.getLogger("realtime.answers")

PING = 15.0
"""Seconds between comments, which keep proxies from closing the response."""
MAX_BACKLOG = 256 * 1024
"""Bytes that a reader has not taken, after which the stream waits for it."""
DRAIN = 0.05

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
        raise NotServing(
            "Answers are streamed by the ASGI server: put realtime.asgi.application in front of"
            " the site's ASGI application."
        )
    if request.method not in ("GET", "POST"):
        return HttpResponseNotAllowed(("GET", "POST"))
    since = request.headers.get("Last-Event-ID", "")
    if since == OVER:
        return HttpResponse(status=204)
    handover.serve = partial(_serve, AnswerEvents(row, as_html), position_of(since))
    answer = HttpResponse(content_type="text/event-stream")
    for name, value in STREAM_HEADERS:
        answer[name.decode()] = value.decode()
    if row.form == "ui" and not as_html:
        answer["x-vercel-ai-ui-message-stream"] = "v1"
    return answer


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
    return _respond(request, row)


@never_cache
@require_GET
def events(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stream an answer, to those who may read it."""
    return _respond(request, _row(pk), as_html=request.GET.get("format") == "html")


@never_cache
@require_POST
def stop(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stop an answer, for those who may. It answers with the status that the answer has then."""
    row = _row(pk)
    try:
        permission.check_stop(row, _request_of(request))
        row = rows.end(row, Status.STOPPED)
    except (InternalError, EngineUnavailable):
        return HttpResponse("The answer could not be stopped now.\n", status=503)
    except (Error, Disconnect):
        raise DjangoPermissionDenied from None
    return JsonResponse({"status": row.status})


def _respond(request: HttpRequest, row: Answer, *, as_html: bool = False) -> HttpResponse:
    """Respond with an answer to a visitor who may read it."""
    try:
        permission.check_read(row, _request_of(request))
    except InternalError:
        return HttpResponse("The permission check failed.\n", status=500)
    except (Error, Disconnect):
        raise DjangoPermissionDenied from None
    return response(request, row, as_html=as_html)


def _row(pk: UUID) -> Answer:
    row = rows.fetch(pk)
    if row is None:
        raise Http404
    return row


def _request_of(request: HttpRequest) -> Request:
    """Return what hooks learn of a visitor."""
    return Request(
        client="",
        user=user_id(page_config.visitor(request) or ""),
        handshake=page_config.handshake(request, sources.current()),
    )


class AnswerEvents:
    """The events of one answer, for one reader."""

    def __init__(self, row: Answer, as_html: bool) -> None:
        self.row = row
        self._as_html = as_html

    def of(
        self, chunks: Iterable[Any], position: Position | None = None, end: str | None = None
    ) -> bytes:
        """Return the events of chunks; the last event has the ID of the position, or of the end.

        Args:
            end: the status, if nothing follows.
        """
        is_text = self._as_html or self.row.form == "text"
        if is_text:
            text = forms.text_of(self.row.of_form, chunks)
            events = [text_lines(escape(text) if self._as_html else text)] if text else []
        else:
            events = [b"data: %b\n" % msgspec.json.encode(chunk) for chunk in chunks]
        if end is not None:
            if is_text or self.row.form == "events":
                events.append(b"event: end\ndata: %b\n" % end.encode())
            elif self.row.form == "ui":
                events.append(b"data: [DONE]\n")
            events = events or [b""]
            events[-1] = id_line(OVER) + events[-1]
        elif events and position is not None:
            events[-1] = id_line(f"{position.offset}.{position.epoch}") + events[-1]
        return b"".join(b"%b\n" % event for event in events)

    def lost(self) -> bytes:
        """Return the last event for a reader who missed a part for good."""
        is_text = self._as_html or self.row.form == "text"
        return self.of(() if is_text else forms.ending(self.row.of_form, LOST, ()), end=LOST)


async def _serve(events: AnswerEvents, since: Position | None, exchange: Exchange) -> None:
    """Send the body of the response: the stream."""
    await exchange.write(b":\n\n")  # servers keep a head until there is a body
    pinging = asyncio.ensure_future(_ping(exchange))
    try:
        is_whole = await exchange.unless_gone(_send(_stream(events, since), exchange))
    finally:
        pinging.cancel()
    if is_whole:
        await exchange.end()


async def _ping(exchange: Exchange) -> None:
    while True:
        await asyncio.sleep(PING)
        await exchange.write(b":\n\n")


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
    row, begin = events.row, since
    if begin is None and row.epoch:
        begin = Position(row.position, row.epoch)
    part: bytes | None = None
    try:
        if row.has_ended:
            chunks = row.chunks()
            if since is not None:
                if row.position < 0:  # its publications have left the engine
                    raise UnrecoverablePosition
                missed = await ahistory(row.own_channel, since=since)
                chunks = [c for each in missed for c in forms.chunks_of(row.of_form, each["data"])]
            yield events.of(chunks, end=row.status)
            return
        if since is None and (part := events.of(row.chunks(), begin) or None):
            yield part
        async for publication in listen(row.own_channel, since=begin or 0):
            chunks = forms.chunks_of(row.of_form, publication.data)
            end = (publication.tags or {}).get(forms.END)
            part = events.of(chunks, Position(publication.offset, publication.epoch), end)
            yield part
            if end:
                return
    except (PublicationsLost, UnrecoverablePosition):
        if part is None:  # otherwise the reader comes back, and may recover
            yield events.lost()
    except (EngineUnavailable, NotServing) as error:
        logger.debug("A reader of answer %s has to come back: %s", row.pk, error)


def position_of(text: str) -> Position | None:
    """Return the position that an event ID names; None if it names none."""
    offset, _, epoch = text.partition(".")
    is_one = epoch and offset.isascii() and offset.isdigit() and len(offset) < 20
    return Position(int(offset), epoch) if is_one else None
