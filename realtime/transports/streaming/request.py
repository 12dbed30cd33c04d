"""One request, and what is needed to answer it."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.node.hooks import Handshake
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
from realtime.protocol.v2.events import EventCodecs
from realtime.transports.asgi import Exchange, Headers, Scope, header
from realtime.transports.handshake import cors, request_handshake, respond_later
from realtime.transports.streaming.formats import BINARY, Format
from realtime.transports.streaming.sessions import StreamSessions

TEXT = "text/plain; charset=utf-8"

BODY_MAX_BYTES = 65536
"""Largest body of a request."""

STREAM_HEADERS = (
    (b"x-accel-buffering", b"no"),
    (b"cache-control", b"private, no-cache, no-store, must-revalidate, max-age=0"),
    (b"pragma", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
)
"""Tell reverse proxies to pass on each byte as it comes, caches to keep none, and browsers that
what others have published is no page."""


@dataclass(eq=False, repr=False)
class StreamRequest:
    """See the module."""

    node: Node
    sessions: StreamSessions
    codecs: EventCodecs
    exchange: Exchange
    query: bytes
    """The query string, which the scope may not have any more."""

    @property
    def scope(self) -> Scope:
        """The scope of the request."""
        return self.exchange.scope

    @property
    def is_binary(self) -> bool:
        """Whether the body is Protobuf."""
        return header(self.scope, b"content-type") == BINARY

    @property
    def cors(self) -> Headers:
        """The headers for the page that sent the request; its origin is allowed."""
        return cors(self.scope, header(self.scope, b"origin") or "")

    @property
    def stream_headers(self) -> Headers:
        """The headers of a stream for the page that sent the request."""
        return [*STREAM_HEADERS, *self.cors]

    async def respond(self, status: int, body: bytes = b"", headers: Headers = ()) -> None:
        """Respond at once."""
        content_type = TEXT if body else None
        await self.exchange.respond(status, body, content_type, [*self.cors, *headers])

    async def body(self) -> bytes | None:
        """Return the body; None if the request was refused because of it, or has ended."""
        body = await self.exchange.body(BODY_MAX_BYTES)
        if body is None:
            await self.respond(*self.exchange.refusal)
        return body

    async def admitted(self, response_format: Format) -> Handshake | None:
        """Return the handshake of a connection that the process takes; None after a refusal."""
        format_name = "protobuf" if response_format.binary else "json"
        opening = request_handshake(self.node, self.scope, response_format.transport, format_name)
        try:
            await self.node.admission.take_turn(opening.address)
        except NotAdmitted as refused:
            await respond_later(self.exchange, refused, self.cors)
            return None
        return opening
