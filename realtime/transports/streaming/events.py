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

import asyncio
import logging
from typing import TypeAlias

import msgspec

from realtime.auth.keys import KeysUnavailable
from realtime.clients.commands.listening import ListenRequest, Refused, listen
from realtime.clients.listener import Listener
from realtime.errors import (
    BadRequest,
    Disconnect,
    DisconnectServerError,
    DisconnectShutdown,
    EngineUnavailable,
    Error,
    Expired,
    LimitExceeded,
    NamespaceNotFound,
    TokenExpired,
)
from realtime.node.node import Node
from realtime.payload import escape
from realtime.protocol.messages import ChannelName
from realtime.protocol.v2 import codes
from realtime.protocol.v2.events import RETRY, RETRY_LATER, EventCodecs, retry
from realtime.transports.asgi import Exchange, Headers
from realtime.transports.handshake import request_handshake
from realtime.transports.streaming.formats import EVENTS
from realtime.transports.streaming.sessions import new_session
from realtime.transports.streaming.stream import UNBUFFERED
from realtime.transports.streaming.transport import StreamTransport

logger = logging.getLogger("realtime.client")

Answer: TypeAlias = tuple[int, bytes]
"""Status and body of a response that is no stream."""

JSON = "application/json"
NO_STORE = (b"cache-control", b"no-store")
NEEDS_TOKEN = (b"www-authenticate", b"Bearer")

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

_encode = msgspec.json.Encoder().encode


OVER: Answer = (410, b'{"error":{"code":410,"message":"this listener was ended"}}\n')
"""The answer to a listener that comes back although it must not."""


class EventsTransport(StreamTransport):
    """The transport of a listener. Its head is sent by `begin`; until then messages wait."""

    def __init__(self, exchange: Exchange, headers: Headers) -> None:
        super().__init__(exchange.send, EVENTS, new_session())
        self._exchange = exchange
        self._headers = headers
        self.ready = False
        self.has_begun = False
        self._beginning: asyncio.Event | None = None
        """While the head is on its way; set when it has left."""
        self.answer: Answer | None = None
        """What the listener gets in place of a stream."""

    async def begin(self) -> None:
        """Send the head of the response, and what has waited for it."""
        if self._ended.is_set():
            return
        self.has_begun = True
        self._beginning = beginning = asyncio.Event()
        try:
            await self._exchange.begin(EVENTS.content_type, [*UNBUFFERED, *self._headers])
            await self._exchange.write(retry(*RETRY))
        finally:
            self._beginning = None
            beginning.set()
        self.ready = True
        if self._on_ready is not None:
            self._on_ready()

    def refuse(self, answer: Answer) -> None:
        """End the request with an answer that is no stream. The first answer counts."""
        if not self.has_begun and self.answer is None:
            self.answer = answer
            self._ended.set()

    async def _end(self, code: int, reason: str) -> None:
        if self.has_begun:
            if self._beginning is not None:
                await self._beginning.wait()
                await asyncio.sleep(0)  # the outbox sends what has waited
                await self._until_sent()
                self.ready = False
            await super()._end(code, reason)
        else:
            self.refuse(_answer_of_close(code, reason))


async def serve(
    node: Node,
    codecs: EventCodecs,
    exchange: Exchange,
    request: ListenRequest,
    headers: Headers,
) -> None:
    """Serve a listener until either side ends the response.

    Args:
        headers: of the response, besides those that every stream has.
    """
    transport = EventsTransport(exchange, headers)
    handshake = request_handshake(node, exchange.scope, EVENTS.transport)
    listener = Listener(node, transport, codecs.shared(request.is_text), handshake)
    transport.when_ready(listener.outbox.ready)
    node.spawn(_listen(listener, transport, request, codecs))
    try:
        try:
            await transport.until_end(exchange)
        except asyncio.CancelledError:
            # some servers end their applications before, or while, the node closes its clients
            listener.close(DisconnectShutdown())
            await transport.until_end(exchange)
        if transport.answer is not None:
            await respond(exchange, transport.answer, headers)
    finally:
        transport.closed()
        listener.close(None)


async def respond(exchange: Exchange, answer: Answer, headers: Headers) -> None:
    """Answer a request at once."""
    status, body = answer
    if status == 200:
        await exchange.respond(200, body, EVENTS.content_type, [*UNBUFFERED, *headers])
        return
    fields = [NO_STORE, *headers]
    if status == 401:
        fields.append(NEEDS_TOKEN)
    await exchange.respond(status, body, JSON, fields)


def refusal(status: int, code: int, message: str, channel: ChannelName | None = None) -> Answer:
    """Return an answer that says why a listener is refused."""
    error: dict[str, object] = {"code": code, "message": message}
    if channel is not None:
        error["channel"] = channel
    return status, escape(_encode({"error": error})) + b"\n"


def come_back() -> Answer:
    """Return the answer to a listener that may have more luck a moment later."""
    return 200, retry(*RETRY_LATER)


async def _listen(
    listener: Listener,
    transport: EventsTransport,
    request: ListenRequest,
    codecs: EventCodecs,
) -> None:
    try:
        await listen(listener, request, codecs, transport.begin)
    except Refused as refused:
        _refuse(listener, transport, refused.why, refused.channel)
    except (Error, Disconnect) as error:
        _refuse(listener, transport, error, None)
    except Exception as error:  # raised by the engine, a hook, or a defect of this service
        _log_failure(listener, error)
        _refuse(listener, transport, DisconnectServerError(), None)


def _refuse(
    listener: Listener,
    transport: EventsTransport,
    why: Error | Disconnect,
    channel: ChannelName | None,
) -> None:
    if transport.has_begun:
        listener.close(why if isinstance(why, Disconnect) else DisconnectServerError())
    else:
        transport.refuse(_answer(why, channel))
        listener.close(None)


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


def _log_failure(listener: Listener, error: Exception) -> None:
    """Log why a listener could not be served; not for each one while the engine is away."""
    if isinstance(error, KeysUnavailable):  # why is logged, and any token can ask for a key
        logger.info("Client %s: listening failed: %s", listener.id, error)
    elif not isinstance(error, EngineUnavailable):
        logger.error("Listening failed: %s", error, exc_info=error)
    elif listener.node.outage.begins():
        logger.error("Listening failed, as it may for others for now: %s", error)
