"""SockJS over plain ASGI: what each request does.

    GET  /                        a greeting
    GET  /info                    what this server can do
    GET  /iframe.html             the page for requests from another origin
    POST /<srv>/<sess>/xhr        one frame of a session; the first request begins it
    POST /<srv>/<sess>/xhr_send   frames of the client
    ...

<sess> alone names a session; <srv> is for load balancers.

See docs/protocol.md, 8, and SockJS protocol 0.3.4.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import partial
from time import time

import msgspec

from realtime.config import origins
from realtime.config.options import Config
from realtime.errors import EngineUnavailable
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
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
from realtime.transports.emulation.owning_client import Bearer
from realtime.transports.emulation.response import ResponseFormat, SessionResponse
from realtime.transports.emulation.session import NotOwnerError
from realtime.transports.emulation.sessions import Sessions
from realtime.transports.handshake import (
    cors,
    has_too_many_headers,
    may_use,
    request_handshake,
    respond_later,
)
from realtime.transports.per_node import PerNode
from realtime.transports.servers import uvicorn
from realtime.transports.sockjs import formats, framing, iframe

GREETING = b"Welcome to SockJS!\n"
TEXT = "text/plain; charset=UTF-8"
JSON = "application/json; charset=UTF-8"

YEAR = 365 * 24 * 3600
NEVER_CACHED = (
    (b"cache-control", b"no-store, no-cache, no-transform, must-revalidate, max-age=0"),
    (b"x-content-type-options", b"nosniff"),
)

FORBIDDEN = 403, b"Forbidden\n"
NOT_FOUND = 404, b"Not Found\n"

UNBUFFERED = (b"x-accel-buffering", b"no")
"""Tells nginx, and reverse proxies that follow it, to pass on each frame as it comes."""

LARGE_BYTES = 64 * 1024
"""A larger body is decoded in a thread: escapes in forms and in broken JSON take a while."""

_IFRAME = re.compile(r"/iframe[-0-9a-z_.]*\.html")
_SESSION = re.compile(r"/[^/.]+/(?P<session>[^/.]{1,128})/(?P<transport>[a-z_]+)")
"""Below the prefix. Longer session names are rejected."""

Endpoint = Callable[["SockJSRequest"], Awaitable[None]]


def serves_sockjs(path: str, config: Config) -> bool:
    """Return whether a path is one of SockJS, and not turned off."""
    prefix = config.sockjs_handler_prefix
    return not config.sockjs_disable and (path == prefix or path.startswith(f"{prefix}/"))


class SockJS:
    """Answers every HTTP request below the prefix."""

    def __init__(self, size_limit: int | None) -> None:
        """
        Args:
            size_limit: largest body of a request in bytes; None for no limit.
        """
        self._size_limit = size_limit
        self._sessions = PerNode(partial(Sessions, framing=framing.SOCKJS))

    async def __call__(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        if has_too_many_headers(scope):
            await exchange.respond(431, b"Request Header Fields Too Large\n", TEXT)
            return
        request = SockJSRequest(node, self._sessions.of(node), exchange, self._size_limit)
        endpoints = _endpoints(request)
        endpoint = endpoints.get(exchange.method)
        if endpoint is not None and not request.may_use(exchange.method):
            await request.respond(*FORBIDDEN)
        elif endpoint is not None:
            with uvicorn.close_clients_on_stop(send):
                await endpoint(request)
        elif endpoints:
            allowed = ", ".join(sorted(endpoints, reverse=True))
            await exchange.respond(405, headers=[(b"allow", allowed.encode())])
        else:
            await exchange.respond(*NOT_FOUND, TEXT)


class SockJSRequest:
    """One request, and what is needed to answer it."""

    def __init__(
        self, node: Node, sessions: Sessions, exchange: Exchange, size_limit: int | None
    ) -> None:
        self.size_limit = size_limit
        self.node = node
        self.sessions = sessions
        self.exchange = exchange
        self.path = path_of(exchange.scope).removeprefix(node.config.sockjs_handler_prefix)
        match = _SESSION.fullmatch(self.path)
        self.session: str = "" if match is None else match["session"]
        self.transport: str = "" if match is None else match["transport"]
        self.query = exchange.scope.get("query_string", b"").decode("latin-1")

    def cors(self) -> list[tuple[bytes, bytes]]:
        """Return headers that let a page of another origin read the response, if it may."""
        scope = self.exchange.scope
        origin = header(scope, b"origin")
        headers = [(b"vary", b"Origin")]
        if origins.is_allowed(origin, self.node.config.allowed_origins):
            headers += cors(scope, origin or "*")
        return headers

    async def respond(self, status: int, body: bytes, content_type: str = TEXT) -> None:
        """Respond with something that is for this client alone and never cached."""
        headers = [*NEVER_CACHED, *self.cors()]
        await self.exchange.respond(status, body, content_type, headers)

    def may_use(self, method: str) -> bool:
        """Return whether it may begin or use a session, if it does; see `handshake.may_use`."""
        if not self.session or method == "OPTIONS":
            return True
        node = self.node
        # those of the iframe's page, which decides by itself which pages it is for
        own_pages = node.config.sockjs_iframe
        return may_use(node.config, node.hooks, self.exchange.scope, own_pages=own_pages)

    def bearer(self) -> Bearer:
        """Return what it shows of its client: it begins a session, or belongs to one."""
        node, scope = self.node, self.exchange.scope
        return Bearer(
            node.hooks, scope, lambda: request_handshake(node, scope, framing.SOCKJS.transport)
        )


def _endpoints(request: SockJSRequest) -> dict[str, Endpoint]:
    """Return method → endpoint for the path of a request; empty if the path is unknown."""
    path = request.path
    if path in _SERVER_ROUTES:
        return _SERVER_ROUTES[path]
    if _IFRAME.fullmatch(path) and request.node.config.sockjs_iframe:
        return {"GET": _iframe}
    return _SESSION_ROUTES.get(request.transport, {})


# the server


async def _redirect(request: SockJSRequest) -> None:
    # relative: the path that the client sees may be another one than ours
    location = f"./{request.node.config.sockjs_handler_prefix.rpartition('/')[2]}/"
    await request.exchange.respond(301, headers=[(b"location", location.encode())])


async def _greet(request: SockJSRequest) -> None:
    await request.exchange.respond(200, GREETING, TEXT)


async def _info(request: SockJSRequest) -> None:
    content = {
        "websocket": True,
        "cookie_needed": False,
        "origins": ["*:*"],
        # no secret: for browsers without a good random source
        "entropy": random.getrandbits(32),
    }
    body = msgspec.json.encode(content)
    await request.respond(200, body, JSON)


async def _iframe(request: SockJSRequest) -> None:
    page = iframe.page(request.node.config)
    # not cached without asking: the origins in the policy may change
    headers = [
        (b"etag", page.tag),
        (b"cache-control", b"public, no-cache"),
        (b"content-security-policy", page.policy),
        (b"x-content-type-options", b"nosniff"),
    ]
    if (header(request.exchange.scope, b"if-none-match") or "").encode("latin-1") == page.tag:
        await request.exchange.respond(304, headers=headers)
    else:
        await request.exchange.respond(200, page.content, formats.HTML, headers)


def _options(*methods: str) -> Endpoint:
    async def options(request: SockJSRequest) -> None:
        allowed = (b"access-control-allow-methods", ", ".join(("OPTIONS", *methods)).encode())
        age = (b"access-control-max-age", b"%d" % YEAR)
        await request.exchange.respond(204, headers=[allowed, age, *_cached(), *request.cors()])

    return options


def _cached() -> Headers:
    return (
        (b"cache-control", b"public, max-age=%d" % YEAR),
        (b"expires", formatdate(time() + YEAR, usegmt=True).encode()),
    )


# requests that read


def _reading(response_format: ResponseFormat) -> Endpoint:
    async def read(request: SockJSRequest) -> None:
        await _attach(request, response_format)

    return read


def _reading_by_callback(make: Callable[[str], ResponseFormat], missing_status: int) -> Endpoint:
    async def read(request: SockJSRequest) -> None:
        name = formats.callback_in(request.query)
        if name is None:
            await request.exchange.respond(400, b'invalid "callback" parameter\n', TEXT)
        elif not name:
            body = b'"callback" parameter required\n'
            await request.exchange.respond(missing_status, body, TEXT)
        else:
            await _attach(request, make(name))

    return read


async def _attach(request: SockJSRequest, response_format: ResponseFormat) -> None:
    headers = [*NEVER_CACHED, *request.cors()]
    if response_format.streams:
        headers.append(UNBUFFERED)
    node = request.node
    response = SessionResponse(request.exchange, response_format, headers, lambda: node.is_draining)
    bearer = request.bearer()
    try:
        session = await request.sessions.attach(request.session, response, bearer)
    except NotOwnerError:
        await request.respond(*FORBIDDEN)
        return
    except EngineUnavailable:
        await request.respond(*UNAVAILABLE)
        return
    except NotAdmitted as refused:
        await respond_later(request.exchange, refused, headers)
        return
    if bearer.set_cookie is not None:
        headers.append(bearer.set_cookie)  # the response has not begun
    interrupted = True
    try:
        interrupted = not await response.run()
    finally:
        session.detach(response, interrupted=interrupted)


# requests that send


def _sending(status: int, body: bytes = b"", *, form: bool = False) -> Endpoint:
    """
    Args:
        status, body: the response if the frames were taken.
        form: the frames may be in a form.
    """

    async def send(request: SockJSRequest) -> None:
        refusal = await _deliver(request, form=form)
        await request.respond(*(refusal or (status, body)))

    return send


async def _deliver(request: SockJSRequest, *, form: bool) -> tuple[int, bytes] | None:
    """Deliver the frames of a request to its session.

    Returns:
        None if they were taken, otherwise status and body of the response.
    """
    body = await request.exchange.body(request.size_limit)
    if body is None:
        return request.exchange.refusal
    limit = request.node.config.message_size_limit_bytes
    content_type = (header(request.exchange.scope, b"content-type") or "") if form else ""
    try:
        if len(body) > LARGE_BYTES:
            frames = await asyncio.to_thread(_frames_in, body, content_type, limit)
        else:
            frames = _frames_in(body, content_type, limit)
    except framing.TooLarge:
        return CONTENT_TOO_LARGE
    except ValueError:
        return 400, b"Broken JSON encoding."
    if frames is None:
        return 400, b"Payload expected."
    try:
        session = await request.sessions.find(request.session, request.bearer())
        if session is None:
            return NOT_FOUND
        # frames that the session has not taken end with the connection that they came by
        is_taken = await request.exchange.unless_gone(session.deliver(frames))
    except NotOwnerError:
        return FORBIDDEN
    except EngineUnavailable:
        return UNAVAILABLE
    return None if is_taken else NOT_FOUND


def _frames_in(body: bytes, content_type: str, frame_limit: int | None) -> list[bytes] | None:
    """Return the frames of the protocol in a body; None if the body is empty.

    Raises:
        ValueError: the body holds no frames.
        TooLarge: a frame is larger than `frame_limit`, or there are too many.
    """
    text = formats.frames_in(content_type, body)
    return framing.decode(text, frame_limit) if text else None


async def _expect_upgrade(request: SockJSRequest) -> None:
    headers = [(b"sec-websocket-version", b"13")]
    await request.exchange.respond(400, b"Bad Request\n", TEXT, headers)


_POSTING = _options("POST")
_GETTING = _options("GET")

_SERVER_ROUTES: dict[str, dict[str, Endpoint]] = {
    "": {"GET": _redirect},
    "/": {"GET": _greet},
    "/info": {"GET": _info, "OPTIONS": _GETTING},
}
_SESSION_ROUTES: dict[str, dict[str, Endpoint]] = {
    "xhr": {"POST": _reading(formats.XHR), "OPTIONS": _POSTING},
    "xhr_streaming": {"POST": _reading(formats.XHR_STREAMING), "OPTIONS": _POSTING},
    "xhr_send": {"POST": _sending(204), "OPTIONS": _POSTING},
    "eventsource": {"GET": _reading(formats.EVENTSOURCE), "OPTIONS": _GETTING},
    "htmlfile": {"GET": _reading_by_callback(formats.htmlfile, 400), "OPTIONS": _GETTING},
    "jsonp": {"GET": _reading_by_callback(formats.jsonp, 500), "OPTIONS": _POSTING},
    "jsonp_send": {"POST": _sending(200, b"ok", form=True), "OPTIONS": _POSTING},
    "websocket": {"GET": _expect_upgrade},
}
