"""Streams over plain ASGI: the routes, and what each request gets.

    POST /connection/http_stream   a stream of lines; the body is the first frame
    GET  /connection/sse           a stream of events; the first frame is in the query
    POST /connection/sse           the same, with the first frame as body
    POST /emulation                a frame for a stream at any node

    POST /connection/uni_http_stream   one way; the body is the connect request
    GET  /connection/uni_sse           one way; the connect request is in the query, or empty
    POST /connection/uni_sse           one way; the body is the connect request

    GET  /connection/events        channels as events; the query names them

docs/protocol.md, 15.7, 15.8 and 17.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from realtime import errors
from realtime.config import origins
from realtime.config.options import Config
from realtime.errors import EngineUnavailable
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.protocol.v2.emulation import decode_emulation_request
from realtime.protocol.v2.events import EventCodecs
from realtime.server_api.http import Response
from realtime.transports.asgi import (
    CONTENT_TOO_LARGE,
    UNAVAILABLE,
    Exchange,
    Headers,
    Receive,
    Scope,
    Send,
    header,
    path_of,
)
from realtime.transports.handshake import (
    cors,
    has_too_many_headers,
    may_use,
)
from realtime.transports.per_node import PerNode
from realtime.transports.servers import daphne, uvicorn
from realtime.transports.streaming import deferred, event_request, events, receivers, response
from realtime.transports.streaming.first_frame import (
    EMPTY_REQUEST,
    KEY,
    frame_of_query,
    has_field,
    hide_fields,
    is_connect_request,
)
from realtime.transports.streaming.formats import (
    EVENTS,
    HTTP_STREAM,
    HTTP_STREAM_BINARY,
    SSE,
    UNI_HTTP_STREAM,
    UNI_SSE,
    UNIDIRECTIONAL,
    Format,
)
from realtime.transports.streaming.request import (
    BODY_MAX_BYTES,
    STREAM_HEADERS,
    TEXT,
    StreamRequest,
)
from realtime.transports.streaming.sessions import StreamSessions

EVENTS_PATH = "/connection/events"
EMULATION_PATH = "/emulation"

BAD_REQUEST = 400, b"Bad Request\n"
FORBIDDEN = 403, b"Forbidden\n"
NOT_FOUND = 404, b"Not Found\n"
NOT_ALLOWED = 405, b"Method Not Allowed\n"
HEADERS_TOO_LARGE = 431, b"Request Header Fields Too Large\n"

SECRETS = event_request.SECRETS | {KEY}
"""Fields of a query that may hold a token."""

Endpoint = Callable[[StreamRequest], Awaitable[None]]


class Streaming:
    """Answers the requests that `serves` names."""

    def __init__(self) -> None:
        self._sessions = PerNode(StreamSessions)
        self._codecs = EventCodecs()

    async def __call__(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        query: bytes = scope.get("query_string", b"")
        hide_query(scope, send)  # also of a request that is refused
        exchange = Exchange(scope, receive, send)
        if has_too_many_headers(scope):
            await exchange.respond(*HEADERS_TOO_LARGE, TEXT)
            return
        if not may_use(node.config, node.hooks, scope):
            await exchange.respond(*FORBIDDEN, TEXT)
            return
        request = StreamRequest(node, self._sessions.of(node), self._codecs, exchange, query)
        endpoints = _endpoints(path_of(scope), node.config)
        endpoint = endpoints.get(exchange.method)
        if endpoint is None:
            allowed = ", ".join(sorted(endpoints, reverse=True)).encode()
            await request.respond(*NOT_ALLOWED, [(b"allow", allowed)])
            return
        with uvicorn.close_clients_on_stop(send):
            await endpoint(request)


def hide_query(scope: Scope, send: Send) -> None:
    """Keep a query string that may hold a token out of the access logs of servers."""
    if has_field(scope, SECRETS):
        hide_fields(scope, SECRETS)
        if (connection := daphne.connection_of(send)) is not None:
            connection.hide_query()


# streams


def _by_body(response_format: Format) -> Endpoint:
    """Return what serves a client whose first frame is the body."""

    async def serve(request: StreamRequest) -> None:
        is_binary = request.is_binary and response_format is HTTP_STREAM
        used = HTTP_STREAM_BINARY if is_binary else response_format
        # a body waits until the process has taken its connection
        if (opening := await request.admitted(used)) is None:
            return
        admission = request.node.admission
        admission.arriving += 1
        try:
            frame = await request.body()
        finally:
            admission.arriving -= 1
        if frame is None:
            return
        if used in UNIDIRECTIONAL and not is_connect_request(frame):
            await request.respond(*BAD_REQUEST)
            return
        await _serve(request, used, opening, frame)

    return serve


def _by_query(response_format: Format) -> Endpoint:
    """Return what serves a client whose first frame is in the query."""
    is_unidirectional = response_format in UNIDIRECTIONAL

    async def serve(request: StreamRequest) -> None:
        frame = frame_of_query(request.query)
        if len(frame) > BODY_MAX_BYTES:
            await request.respond(*CONTENT_TOO_LARGE)
            return
        frame = frame or (EMPTY_REQUEST if is_unidirectional else b"")
        if not frame or (is_unidirectional and not is_connect_request(frame)):
            await request.respond(*BAD_REQUEST)
        elif (opening := await request.admitted(response_format)) is not None:
            await _serve(request, response_format, opening, frame)

    return serve


async def _serve(
    request: StreamRequest, response_format: Format, opening: Handshake, first_frame: bytes
) -> None:
    serve = response.serve
    if response_format in UNIDIRECTIONAL and request.node.config.uni_error_mode:
        serve = receivers.serve
    await serve(request, response_format, opening, first_frame)


# listeners


async def _events(request: StreamRequest) -> None:
    try:
        wanted = event_request.read(request.scope, request.query)
    except event_request.BadListenRequest as error:
        answer = deferred.refusal(400, errors.BadRequest.code, f"bad request: {error}")
        await deferred.respond(request, answer)
    except event_request.Over:
        await deferred.respond(request, events.OVER)
    else:
        await events.serve(request, wanted)


def response_when_away(scope: Scope, config: Config) -> tuple[Response, Headers]:
    """Return the response to a request while the service cannot serve, and its headers.

    A page of another origin must be able to read that it is to come back, or its EventSource gives
    up. Without `allowed_origins` it is not known yet which pages may listen, so the response holds
    nothing else.
    """
    if path_of(scope) != EVENTS_PATH:
        return Response(*UNAVAILABLE, TEXT), ()
    origin = header(scope, b"origin") or ""
    allowed = config.allowed_origins
    if origin and allowed is not None and not origins.is_allowed(origin, allowed):
        return Response(*FORBIDDEN, TEXT), ()
    status, body = events.come_back()
    return Response(status, body, EVENTS.content_type), [*STREAM_HEADERS, *cors(scope, origin)]


# requests beside them


async def _emulation(request: StreamRequest) -> None:
    if (body := await request.body()) is not None:
        await request.respond(*await _deliver(request, body))


async def _deliver(request: StreamRequest, body: bytes) -> tuple[int, bytes]:
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


def _preflight(method: str) -> Endpoint:
    """Return what lets pages of allowed origins send requests with this method."""
    headers = (
        (b"access-control-allow-methods", f"{method}, OPTIONS".encode()),
        (b"access-control-max-age", b"300"),
    )

    async def respond(request: StreamRequest) -> None:
        await request.respond(204, headers=headers)

    return respond


Endpoints = Mapping[str, Endpoint]
"""Method → endpoint."""

_ROUTES: dict[str, tuple[tuple[str, ...], Endpoints]] = {
    "/connection/http_stream": (
        ("http_stream",),
        {"POST": _by_body(HTTP_STREAM), "OPTIONS": _preflight("POST")},
    ),
    "/connection/sse": (("sse",), {"GET": _by_query(SSE), "POST": _by_body(SSE)}),
    "/connection/uni_http_stream": (
        ("uni_http_stream",),
        {"POST": _by_body(UNI_HTTP_STREAM), "OPTIONS": _preflight("POST")},
    ),
    "/connection/uni_sse": (
        ("uni_sse",),
        {"GET": _by_query(UNI_SSE), "POST": _by_body(UNI_SSE)},
    ),
    EVENTS_PATH: (("events",), {"GET": _events, "OPTIONS": _preflight("GET")}),
    EMULATION_PATH: (
        ("http_stream", "sse"),
        {"POST": _emulation, "OPTIONS": _preflight("POST")},
    ),
}
"""Path → the options of which one turns it on, and its endpoints."""


def _endpoints(path: str, config: Config) -> Endpoints:
    """Return the endpoints of a path; none if it is not ours, or turned off."""
    options, endpoints = _ROUTES.get(path, ((), {}))
    return endpoints if any(getattr(config, option) for option in options) else {}


def begins(path: str, config: Config) -> bool:
    """Return whether a request with a body begins a connection."""
    return path != EMULATION_PATH and "POST" in _endpoints(path, config)


def serves(path: str, config: Config) -> bool:
    """Return whether a path is ours, and not turned off."""
    return bool(_endpoints(path, config))
