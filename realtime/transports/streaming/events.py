"""A listener over HTTP, from the head of its request to the end of the response.

A browser's EventSource comes back by itself when a response ends, and never again after any status
but 200. So that decides how a listener is answered:

    it may not listen              a status that says so, before the stream begins
    not known at the moment        status 200, a time to wait, and the end
    the stream cannot go on        a time to wait, and the end
    it must not come back          the event "disconnect" with the ID "end", and the end; if it
                                   comes all the same, status 410

docs/protocol.md, 17.
"""

from __future__ import annotations

from dataclasses import replace

from realtime.clients.commands.listening import ChannelRefused, Listener, ListenRequest, listen
from realtime.errors import (
    BadRequest,
    Disconnect,
    DisconnectServerError,
    Error,
    Expired,
    LimitExceeded,
    NamespaceNotFound,
    TokenExpired,
)
from realtime.node.limits.admission import NotAdmitted
from realtime.protocol.messages import ChannelName
from realtime.protocol.v2 import codes
from realtime.protocol.v2.events import RETRY, RETRY_LATER, EventCodecs, retry
from realtime.transports.handshake import request_handshake
from realtime.transports.streaming.deferred import Answer, DeferredTransport, refusal
from realtime.transports.streaming.formats import EVENTS
from realtime.transports.streaming.request import StreamRequest

_STATUSES = {
    BadRequest.code: 400,
    NamespaceNotFound.code: 400,
    LimitExceeded.code: 400,
    TokenExpired.code: 401,
    Expired.code: 401,
}
"""Status by the code of an error; 403 for others."""
_NOT_IDENTIFIED = (3500, 3501)
"""Close codes of clients that have a wrong token, or none: status 401."""

OVER: Answer = (410, b'{"error":{"code":410,"message":"this listener was ended"}}\n')
"""The answer to a listener that comes back although it must not."""


class EventsTransport(DeferredTransport):
    """The transport of a listener."""

    def __init__(self, request: StreamRequest) -> None:
        super().__init__(request, replace(EVENTS, opening=retry(*RETRY)), _answer_of_close)

    async def respond(self, answer: Answer) -> None:
        status, body = answer
        if status == 200:
            headers = self._request.stream_headers
            await self._exchange.respond(200, body, EVENTS.content_type, headers)
        else:
            await super().respond(answer)


async def serve(request: StreamRequest, wanted: ListenRequest) -> None:
    """Serve a listener until either side ends the response."""
    node, codecs = request.node, request.codecs
    handshake = request_handshake(node, request.scope, EVENTS.transport)
    transport = EventsTransport(request)
    try:
        await node.admission.take_turn(handshake.address)
    except NotAdmitted:
        await transport.respond(come_back())
        return
    listener = Listener(node, transport, codecs.shared(wanted.is_text), handshake)
    node.spawn(_listen(listener, transport, wanted, codecs))
    await transport.serve(listener)


def come_back() -> Answer:
    """Return the answer to a listener that may have more luck a moment later."""
    return 200, retry(*RETRY_LATER)


async def _listen(
    listener: Listener,
    transport: EventsTransport,
    request: ListenRequest,
    codecs: EventCodecs,
) -> None:
    channel: ChannelName | None = None
    why: Error | Disconnect
    try:
        await listen(listener, request, codecs, transport.begin)
        return
    except ChannelRefused as refused:
        why, channel = refused.why, refused.channel
    except (Error, Disconnect) as error:
        why = error.with_traceback(None)  # it holds this frame
    except Exception as error:  # raised by the engine, a hook, or a defect of this service
        listener.log_failed("listening", error)
        why = DisconnectServerError()
    transport.fail(listener, why, _answer(why, channel))


def _answer(why: Error | Disconnect, channel: ChannelName | None) -> Answer:
    if isinstance(why, Disconnect):
        code, reason = codes.closing(why)
        if channel is None or why.reconnect:
            return _answer_of_close(code, reason)
        return refusal(403, code, reason, channel)
    if why.temporary:
        return come_back()
    status = _STATUSES.get(why.code, 403)
    if channel is not None and status == 401:
        status = 403  # who the listener is, is known
    return refusal(status, why.code, codes.message_of(why), channel)


def _answer_of_close(code: int, reason: str) -> Answer:
    if code % 1000 < codes.HALF:
        return come_back()
    return refusal(401 if code in _NOT_IDENTIFIED else 403, code, reason)
