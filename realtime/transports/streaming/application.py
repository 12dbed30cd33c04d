"""Streams over plain ASGI: the routes, and what each request gets.

    POST /connection/http_stream   a stream of lines; the body is the first frame
    GET  /connection/sse           a stream of events; the first frame is in the query
    POST /connection/sse           the same, with the first frame as body
    POST /emulation                a frame for a stream at any node

docs/protocol.md, 15.7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs

from realtime.config import origins
from realtime.config.options import Config
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.protocol.v2.emulation import decode_emulation_request
from realtime.transports.asgi import Exchange, Headers, Receive, Scope, Send, path_of
from realtime.transports.handshake import cors, handshake, has_too_many_headers, header
from realtime.transports.per_node import PerNode
from realtime.transports.servers import daphne, uvicorn
from realtime.transports.streaming import stream
from realtime.transports.streaming.formats import (
    BINARY,
    HTTP_STREAM,
    HTTP_STREAM_BINARY,
    SSE,
    Format,
)
from realtime.transports.streaming.sessions import StreamSessions

TEXT = "text/plain; charset=utf-8"

BODY_MAX_BYTES = 65536
"""Largest body of a request."""

FIRST_FRAME = "cf_connect"
"""The field of the query that holds the first frame, with its token."""

PREFLIGHT = (
    (b"access-control-allow-methods", b"POST, OPTIONS"),
    (b"access-control-max-age", b"300"),
)

BAD_REQUEST = 400, b"Bad Request\n"
FORBIDDEN = 403, b"Forbidden\n"
NOT_FOUND = 404, b"Not Found\n"
NOT_ALLOWED = 405, b"Method Not Allowed\n"
TOO_LARGE = 413, b"Content Too Large\n"
HEADERS_TOO_LARGE = 431, b"Request Header Fields Too Large\n"
UNAVAILABLE = 503, b"Service Unavailable\n"

Endpoint = Callable[["Request"], Awaitable[None]]


class Request:
    """One request, and what is needed to answer it."""

    def __init__(
        self, node: Node, sessions: StreamSessions, exchange: Exchange, query: bytes
    ) -> None:
        """Args: `query`: the query string, which `hide_query` took from the scope."""
        self.node = node
        self.sessions = sessions
        self.exchange = exchange
        self.scope = exchange.scope
        self.is_binary = header(self.scope, b"content-type") == BINARY
        self._query = query

    @property
    def query(self) -> Mapping[str, list[str]]:
        """The fields of the query string."""
        return parse_qs(self._query.decode("latin-1"), keep_blank_values=True)

    def cors(self) -> Headers:
        """Return the headers for the page that sent the request; its origin is allowed."""
        return cors(self.scope, header(self.scope, b"origin") or "")

    async def respond(self, status: int, body: bytes = b"", headers: Headers = ()) -> None:
        """Respond at once."""
        content_type = TEXT if body else None
        await self.exchange.respond(status, body, content_type, [*self.cors(), *headers])

    async def body(self) -> bytes | None:
        """Return the body; None if the request was refused because of its size, or has ended."""
        body = await self.exchange.body(BODY_MAX_BYTES)
        if body is None:
            await self.respond(*TOO_LARGE)
        return body


class Streaming:
    """Answers the requests that `serves` names."""

    def __init__(self) -> None:
        self._sessions = PerNode(StreamSessions)

    async def __call__(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        query = hide_query(scope, send)  # also of a request that is refused
        exchange = Exchange(scope, receive, send)
        if has_too_many_headers(scope):
            await exchange.respond(*HEADERS_TOO_LARGE, TEXT)
            return
        if not may_use(node, scope):
            await exchange.respond(*FORBIDDEN, TEXT)
            return
        request = Request(node, self._sessions.of(node), exchange, query)
        endpoints = _endpoints(path_of(scope), node.config)
        endpoint = endpoints.get(exchange.method)
        if endpoint is None:
            allowed = ", ".join(sorted(endpoints, reverse=True)).encode()
            await request.respond(*NOT_ALLOWED, [(b"allow", allowed)])
            return
        with uvicorn.close_clients_on_stop(send):
            await endpoint(request)


def hide_query(scope: Scope, send: Send) -> bytes:
    """Keep a query string that may hold a token out of the access logs of servers.

    Returns:
        The query string.
    """
    query: bytes = scope.get("query_string", b"")
    if FIRST_FRAME.encode() in query:
        scope["query_string"] = b""
        if (connection := daphne.connection_of(send)) is not None:
            connection.hide_query()
    return query


def may_use(node: Node, scope: Scope) -> bool:
    """Return whether the page that sent a request may use the service.

    Without `allowed_origins` any page may, unless login sessions identify clients: then only pages
    of the same host may. Requests without an Origin do not come from scripts of other sites; what
    else a browser sends for a page of another site, such as the address of a picture, is refused.
    """
    origin = header(scope, b"origin")
    if origin is None:
        return header(scope, b"sec-fetch-site") in (None, "none", "same-origin")
    config = node.config
    if config.allowed_origins is not None:
        return origins.is_allowed(origin, config.allowed_origins)
    extra, site_headers = config.proxy_extra_http_headers, node.hooks.site_headers
    return node.hooks.trusts_page(handshake(scope, "json", extra, site_headers=site_headers))


# streams


async def _http_stream(request: Request) -> None:
    response_format = HTTP_STREAM_BINARY if request.is_binary else HTTP_STREAM
    if (frame := await request.body()) is not None:
        await _stream(request, response_format, frame)


async def _sse_with_body(request: Request) -> None:
    if (frame := await request.body()) is not None:
        await _stream(request, SSE, frame)


async def _sse(request: Request) -> None:
    frame = request.query.get(FIRST_FRAME, [""])[0].encode()
    if not frame:
        await request.respond(*BAD_REQUEST)
    elif len(frame) > BODY_MAX_BYTES:
        await request.respond(*TOO_LARGE)
    else:
        await _stream(request, SSE, frame)


async def _stream(request: Request, response_format: Format, first_frame: bytes) -> None:
    await stream.serve(
        request.node,
        request.sessions,
        request.exchange,
        response_format,
        first_frame,
        request.cors(),
    )


# requests beside them


async def _emulation(request: Request) -> None:
    if (body := await request.body()) is not None:
        await request.respond(*await _deliver(request, body))


async def _deliver(request: Request, body: bytes) -> tuple[int, bytes]:
    """Deliver the frame in a body, and return status and body of the response."""
    try:
        content = decode_emulation_request(body, binary=request.is_binary)
    except ValueError:
        return BAD_REQUEST
    if content.frame is None:
        return NOT_FOUND
    delivering = request.sessions.deliver(content.node, content.session, content.frame)
    try:
        # a frame that the session has not taken ends with the connection that it came by
        is_taken = await request.exchange.unless_gone(delivering)
    except EngineUnavailable:
        return UNAVAILABLE
    return (204, b"") if is_taken else NOT_FOUND


async def _preflight(request: Request) -> None:
    await request.respond(204, headers=PREFLIGHT)


Endpoints = Mapping[str, Endpoint]
"""Method → endpoint."""

_HTTP_STREAM: Endpoints = {"POST": _http_stream, "OPTIONS": _preflight}
_SSE: Endpoints = {"GET": _sse, "POST": _sse_with_body}
_EMULATION: Endpoints = {"POST": _emulation, "OPTIONS": _preflight}


def _endpoints(path: str, config: Config) -> Endpoints:
    """Return the endpoints of a path; none if it is not ours, or turned off."""
    match path:
        case "/connection/http_stream" if config.http_stream:
            return _HTTP_STREAM
        case "/connection/sse" if config.sse:
            return _SSE
        case "/emulation" if config.http_stream or config.sse:
            return _EMULATION
    return {}


def serves(path: str, config: Config) -> bool:
    """Return whether a path is ours, and not turned off."""
    return bool(_endpoints(path, config))
