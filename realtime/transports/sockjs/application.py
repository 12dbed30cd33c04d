"""SockJS over plain ASGI: which request is what.

    GET  /                        a greeting
    GET  /info                    what this server can do
    GET  /iframe.html             the page for requests from another origin
    POST /<srv>/<sess>/xhr        one frame of a session, which begins here
    POST /<srv>/<sess>/xhr_send   frames of the client
    ...

The name of a session is its middle part alone; what stands before it is for balancers.

Spec: beyond it; SockJS protocol 0.3.4 and Centrifugo 2.8.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from time import time

import msgspec

from realtime.config import origins
from realtime.errors import EngineUnavailable
from realtime.node.hooks import NO_HANDSHAKE, Handshake
from realtime.node.node import Node
from realtime.transports.asgi import Exchange, Headers, Receive, Scope, Send, path_of
from realtime.transports.emulation.response import ReceivingTransport, Response
from realtime.transports.emulation.sessions import Sessions
from realtime.transports.handshake import handshake, has_too_many_headers, header
from realtime.transports.servers import uvicorn
from realtime.transports.sockjs import formats, framing, iframe
from realtime.transports.sockjs.formats import EVENTSOURCE, XHR, XHR_STREAMING, htmlfile

GREETING = b"Welcome to SockJS!\n"
TEXT = "text/plain; charset=UTF-8"
HTML = "text/html; charset=UTF-8"
JSON = "application/json; charset=UTF-8"

YEAR = 365 * 24 * 3600
NEVER_CACHED = (
    (b"cache-control", b"no-store, no-cache, no-transform, must-revalidate, max-age=0"),
    (b"x-content-type-options", b"nosniff"),
)

NOT_FOUND = 404, b"Not Found\n"
UNAVAILABLE = 503, b"Service Unavailable\n"

UNBUFFERED = (b"x-accel-buffering", b"no")
"""Has nginx, and proxies that follow it, pass on each frame as it comes."""

LARGE_BYTES = 64 * 1024
"""A larger body is read in a thread: escapes in forms and in broken JSON take a while."""

_IFRAME = re.compile(r"/iframe[-0-9a-z_.]*\.html")
_SESSION = re.compile(r"/[^/.]+/(?P<session>[^/.]{1,128})/(?P<transport>[a-z_]+)")
"""Below the prefix. A longer name is none that any client makes."""

Endpoint = Callable[["Visit"], Awaitable[None]]


class SockJS:
    """Answers every HTTP request below the prefix."""

    def __init__(self, size_limit: int | None) -> None:
        """`size_limit`: of what a client sends at once, bytes; None: no limit."""
        self._size_limit = size_limit
        self._sessions: dict[Node, Sessions] = {}

    async def __call__(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        if has_too_many_headers(scope):
            await exchange.respond(431, b"Request Header Fields Too Large\n", TEXT)
            return
        visit = Visit(node, self._sessions_of(node), exchange, self._size_limit)
        endpoints = _find(visit)
        endpoint = endpoints.get(exchange.method)
        if endpoint is not None:
            with uvicorn.stops_first(send):
                await endpoint(visit)
        elif endpoints:
            allowed = ", ".join(sorted(endpoints, reverse=True))
            await exchange.respond(405, headers=[(b"allow", allowed.encode())])
        else:
            await exchange.respond(*NOT_FOUND, TEXT)

    def _sessions_of(self, node: Node) -> Sessions:
        sessions = self._sessions.get(node)
        if sessions is None:
            for ended in [other for other in self._sessions if other.loop.is_closed()]:
                del self._sessions[ended]
            sessions = self._sessions[node] = Sessions(node)
        return sessions


class Visit:
    """One request, and what is needed to answer it."""

    def __init__(
        self, node: Node, sessions: Sessions, exchange: Exchange, size_limit: int | None
    ) -> None:
        self.size_limit = size_limit
        self.node = node
        self.sessions = sessions
        self.exchange = exchange
        self.path = path_of(exchange.scope).removeprefix(node.config.sockjs_handler_prefix)
        self.session = ""
        self.query = exchange.scope.get("query_string", b"").decode("latin-1")

    def cors(self) -> list[tuple[bytes, bytes]]:
        """What lets a page of another origin read the response; nothing where it may not."""
        scope = self.exchange.scope
        asking = header(scope, b"origin")
        headers = [(b"vary", b"Origin")]
        if origins.is_allowed(asking, self.node.config.allowed_origins):
            headers.append((b"access-control-allow-origin", (asking or "*").encode("latin-1")))
            headers.append((b"access-control-allow-credentials", b"true"))
            wanted = header(scope, b"access-control-request-headers")
            if wanted:
                headers.append((b"access-control-allow-headers", wanted.encode("latin-1")))
        return headers

    async def answer(self, status: int, body: bytes, content_type: str = TEXT) -> None:
        """Answer what concerns this client alone."""
        headers = [*NEVER_CACHED, *self.cors()]
        await self.exchange.respond(status, body, content_type, headers)

    def handshake(self, *, readable_anywhere: bool) -> Handshake:
        """What hooks may want to know of a client whose session begins with this request.

        `readable_anywhere`: a page of any origin can read the response, as a script or a frame,
        and such requests do not say whose they are. So nobody must take cookies for a proof.
        """
        node, scope = self.node, self.exchange.scope
        if not node.hooks.wants_handshake:
            return NO_HANDSHAKE
        made = handshake(scope, "json", node.config.proxy_extra_http_headers, transport="sockjs")
        if (
            readable_anywhere
            and "origin" not in made.headers
            and header(scope, b"sec-fetch-site") not in ("same-origin", "none")
        ):
            return msgspec.structs.replace(made, headers={**made.headers, "origin": "null"})
        return made


def _find(visit: Visit) -> dict[str, Endpoint]:
    """Method → endpoint, for the path of a request; empty for one that is not known."""
    path = visit.path
    if path in _PLACES:
        return _PLACES[path]
    if _IFRAME.fullmatch(path):
        return {"GET": _iframe}
    found = _SESSION.fullmatch(path)
    if found is None:
        return {}
    visit.session = found["session"]
    return _OF_SESSIONS.get(found["transport"], {})


# about the server


async def _redirect(visit: Visit) -> None:
    scope = visit.exchange.scope
    location = f"{scope.get('root_path', '')}{visit.node.config.sockjs_handler_prefix}/"
    await visit.exchange.respond(301, headers=[(b"location", location.encode())])


async def _greet(visit: Visit) -> None:
    await visit.exchange.respond(200, GREETING, TEXT)


async def _info(visit: Visit) -> None:
    content = {
        "websocket": True,
        "cookie_needed": False,
        "origins": ["*:*"],
        # not a secret: browsers without a good source of chance use it
        "entropy": random.getrandbits(32),
    }
    body = msgspec.json.encode(content)
    await visit.answer(200, body, JSON)


async def _iframe(visit: Visit) -> None:
    page, tag = iframe.page(visit.node.config.sockjs_url)
    headers = [(b"etag", tag), *_cached()]
    if (header(visit.exchange.scope, b"if-none-match") or "").encode("latin-1") == tag:
        await visit.exchange.respond(304, headers=headers)
    else:
        await visit.exchange.respond(200, page, HTML, headers)


def _options(*methods: str) -> Endpoint:
    async def options(visit: Visit) -> None:
        allowed = (b"access-control-allow-methods", ", ".join(("OPTIONS", *methods)).encode())
        age = (b"access-control-max-age", b"%d" % YEAR)
        await visit.exchange.respond(204, headers=[allowed, age, *_cached(), *visit.cors()])

    return options


def _cached() -> Headers:
    return (
        (b"cache-control", b"public, max-age=%d" % YEAR),
        (b"expires", formatdate(time() + YEAR, usegmt=True).encode()),
    )


# receiving


def _receiving(transport: ReceivingTransport) -> Endpoint:
    async def receive(visit: Visit) -> None:
        await _attach(visit, transport)

    return receive


def _calling(make: Callable[[str], ReceivingTransport], missing_status: int) -> Endpoint:
    async def receive(visit: Visit) -> None:
        name = formats.name_in(visit.query)
        if name is None:
            await visit.exchange.respond(400, b'invalid "callback" parameter\n', TEXT)
        elif not name:
            body = b'"callback" parameter required\n'
            await visit.exchange.respond(missing_status, body, TEXT)
        else:
            await _attach(visit, make(name), readable_anywhere=True)

    return receive


async def _attach(
    visit: Visit, transport: ReceivingTransport, *, readable_anywhere: bool = False
) -> None:
    headers = [*NEVER_CACHED, *visit.cors()]
    if transport.streams:
        headers.append(UNBUFFERED)
    node = visit.node
    response = Response(visit.exchange, transport, headers, lambda: node.stopping)
    try:
        session = await visit.sessions.attach(
            visit.session,
            response,
            lambda: visit.handshake(readable_anywhere=readable_anywhere),
        )
    except EngineUnavailable:
        await visit.answer(*UNAVAILABLE)
        return
    interrupted = True
    try:
        interrupted = not await response.run()
    finally:
        session.detach(response, interrupted=interrupted)


# sending


def _sending(status: int, body: bytes = b"", *, form: bool = False) -> Endpoint:
    """`status` and `body`: the answer to a request whose frames were taken."""

    async def send(visit: Visit) -> None:
        refusal = await _deliver(visit, form=form)
        await visit.answer(*(refusal or (status, body)))

    return send


async def _deliver(visit: Visit, *, form: bool) -> tuple[int, bytes] | None:
    """Hand what a request carries to its session; the status and body of a refusal, if any."""
    body = await visit.exchange.body(visit.size_limit)
    if body is None:
        return 413, b"Content Too Large\n"
    content_type = (header(visit.exchange.scope, b"content-type") or "") if form else ""
    try:
        if len(body) > LARGE_BYTES:
            frames = await asyncio.to_thread(_frames_in, body, content_type)
        else:
            frames = _frames_in(body, content_type)
    except ValueError:
        return 400, b"Broken JSON encoding."
    if frames is None:
        return 400, b"Payload expected."
    try:
        session = await visit.sessions.find(visit.session)
        if session is None:
            return NOT_FOUND
        # what a session has not taken yet is not to outlive the connection it came by
        is_taken = await visit.exchange.unless_gone(session.deliver(frames))
    except EngineUnavailable:
        return UNAVAILABLE
    return None if is_taken else NOT_FOUND


def _frames_in(body: bytes, content_type: str) -> list[bytes] | None:
    """The frames of the protocol in a body; None where it is empty.

    Raises:
        ValueError: there are none in it.
    """
    text = formats.frames_in(content_type, body)
    return framing.decode(text) if text else None


async def _expect_upgrade(visit: Visit) -> None:
    headers = [(b"sec-websocket-version", b"13")]
    await visit.exchange.respond(400, b"Bad Request\n", TEXT, headers)


_POSTING = _options("POST")
_GETTING = _options("GET")

_PLACES: dict[str, dict[str, Endpoint]] = {
    "": {"GET": _redirect},
    "/": {"GET": _greet},
    "/info": {"GET": _info, "OPTIONS": _GETTING},
}
_OF_SESSIONS: dict[str, dict[str, Endpoint]] = {
    "xhr": {"POST": _receiving(XHR), "OPTIONS": _POSTING},
    "xhr_streaming": {"POST": _receiving(XHR_STREAMING), "OPTIONS": _POSTING},
    "xhr_send": {"POST": _sending(204), "OPTIONS": _POSTING},
    "eventsource": {"GET": _receiving(EVENTSOURCE), "OPTIONS": _GETTING},
    "htmlfile": {"GET": _calling(htmlfile, 400), "OPTIONS": _GETTING},
    "jsonp": {"GET": _calling(formats.jsonp, 500), "OPTIONS": _POSTING},
    "jsonp_send": {"POST": _sending(200, b"ok", form=True), "OPTIONS": _POSTING},
    "websocket": {"GET": _expect_upgrade},
}
