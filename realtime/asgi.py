"""Put the service in front of a site's ASGI application.

    application = realtime.asgi.application(get_asgi_application())

The service answers its own paths: the WebSocket endpoint, SockJS, and the server API where the
site's URLconf has `realtime.api.urls` (through Django and REST framework a command would cost many
times as much). Everything else goes to the site unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIHandler
from django.urls import NoReverseMatch, get_script_prefix, reverse

from realtime.config.options import Config
from realtime.config.reader import InvalidOptions
from realtime.errors import DisconnectShutdown
from realtime.monitoring import application as monitoring
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
from realtime.server_api import http
from realtime.serving import serving
from realtime.transports import api as server_api
from realtime.transports.api import respond
from realtime.transports.asgi import (
    BEGUN,
    ASGIApplication,
    Event,
    Exchange,
    Receive,
    Scope,
    Send,
    path_of,
)
from realtime.transports.bodies import ExpectedBody, Incoming
from realtime.transports.every_path import every_path
from realtime.transports.handover import HANDOVER, Handover
from realtime.transports.handshake import handshake
from realtime.transports.private_pages import with_privacy
from realtime.transports.servers import daphne, signals, uvicorn_connections
from realtime.transports.servers.garbage_collector import freeze_gc
from realtime.transports.sockjs.application import SockJS, serves_sockjs
from realtime.transports.sockjs.websocket import SockJSConsumer
from realtime.transports.streaming import application as streaming
from realtime.transports.streaming.request import BODY_MAX_BYTES
from realtime.transports.streaming.uni_websocket import UniWebSocketConsumer, serves_socket
from realtime.transports.websocket import WebSocketConsumer, deny, serves_websocket

logger = logging.getLogger("realtime.asgi")

START_TIMEOUT = 2.0
"""Seconds a request waits for the node to start. After a failure only WebSocket requests wait: an
unavailable engine must not make the whole site slow."""
START_RETRY_DELAY = 1.0
"""Seconds after a failed start until the next attempt."""

API_URL_NAME = "realtime_api:commands"

_SOCKJS_SOCKET = re.compile(r"/[^/.]+/[^/.]+/websocket")
"""Below the prefix of SockJS."""

_SERVES_NO_SUCH = (
    "Django can only handle ASGI/HTTP",
    "No application configured for scope type",
    "No route found for path",
)
"""How the failures of Django, a `ProtocolTypeRouter` and a `URLRouter` begin that do not serve a
WebSocket. With a traceback for each, a stranger who opens them could fill the log."""

_UPGRADE_EXPECTED = http.Response(400, b"Bad Request\n", "text/plain; charset=utf-8")
_OTHER_ORIGIN = http.Response(403, b"Other origin\n", "text/plain; charset=utf-8")

_UNAVAILABLE = http.Response(503, b"Service Unavailable\n", "text/plain; charset=utf-8")


def application(
    django_application: ASGIApplication,
    *,
    websocket: ASGIApplication | None = None,
    api: bool = True,
    settle_heap: bool = False,
) -> ASGIApplication:
    """Return the site's ASGI application with the service in front of it.

    Args:
        django_application: the result of `get_asgi_application()`, the site's router of Channels
            (`ProtocolTypeRouter`), or middleware around either. It gets lifespan events, too.
        websocket: the site's own WebSocket routes, for every path that is not ours. Default:
            `django_application`.
        api: answer the server API here instead of in the REST framework view, for its path at
            every host. Turn it off if middleware of the site must see those requests, or if another
            host of the site has a view of its own at this path.
        settle_heap: call `garbage_collector.freeze_gc` when serving begins; for processes that only
            serve. `python -m realtime` does it by itself.

    Raises:
        ImproperlyConfigured: "realtime" is not in INSTALLED_APPS. Hooks would not be loaded, and
            channels would be open that they refuse.
    """
    if not apps.is_installed("realtime"):
        raise ImproperlyConfigured(
            'Add "realtime" to INSTALLED_APPS: it loads the hooks of the site.'
        )
    return _Application(django_application, websocket, api, settle_heap)


def _trusts_page(node: Node | None, scope: Scope) -> bool:
    """Return whether cookies count of the page that sent a request, as a handshake would find."""
    if node is None or not node.hooks.wants_handshake:
        return True
    return node.hooks.trusts_page(handshake(node.hooks, scope, node.config.handshake_headers))


def _last_response(node: Node | None, scope: Scope, send: Send) -> Send:
    """Return a `send` that ends the connection after this response, if the node is draining.

    Callers keep connections open. The next request of theirs finds another process.
    """
    if node is None or not node.is_draining or not scope["http_version"].startswith("1"):
        return send

    async def send_and_close(event: Event) -> None:
        if event["type"] == "http.response.start":
            headers = [*event.get("headers", ()), (b"connection", b"close")]
            event = {**event, "headers": headers}
        await send(event)

    return send_and_close


class _Application:
    def __init__(
        self,
        django: ASGIApplication,
        websocket: ASGIApplication | None,
        api: bool,
        settle_heap: bool,
    ) -> None:
        self._django = django
        # Django raises for what is not HTTP, and tools that report errors patch it: a stranger who
        # opens WebSockets would fill their quota
        self._serves_only_http = isinstance(django, ASGIHandler)
        self._websocket = websocket or (None if self._serves_only_http else django)
        self._body_limit: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        # Django takes it off the path of a request, if it is there, and writes it into addresses
        self._script_name: str = (settings.FORCE_SCRIPT_NAME or "").rstrip("/")
        self._sockjs = SockJS(self._body_limit)
        self._streaming = streaming.Streaming()
        self._api = api
        self._freeze_gc = settle_heap
        # then the root path may be one that a client sent
        self._ignores_root_path = daphne.is_loaded() and not daphne.install(
            self._rule_of_body, self._takes_socket, self._takes_api
        )
        self._api_path: str | None = None
        self._paths: Config | None = None
        """Names the paths of the service, once its options were found to have mistakes."""
        self._has_started = False
        self._failed = False
        self._retry_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ignores_root_path and scope.get("root_path"):
            scope = {**scope, "root_path": ""}
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._socket(scope, receive, send)
            case "lifespan":
                await self._lifespan(scope, receive, send)
            case _:
                await self._django(scope, receive, send)

    async def _http(self, site_scope: Scope, receive: Receive, send: Send) -> None:
        scope = self._below_script_name(site_scope)
        if not self._has_started and monitoring.asks_live(path_of(scope), _config()):
            # at once: no answer to that waits for the engine
            await monitoring.serve(None, serving.config(), scope, receive, send)
            return
        node = serving.node()
        if node is None or self._failed or self._freeze_gc:
            node = await self._start(wait=not self._failed)
        self._has_started = node is not None
        config = _config() if node is None else node.config
        if config is None and self._is_ours(path_of(scope)):
            await respond(Exchange(scope, receive, send), _UNAVAILABLE)
            return
        if config is not None:
            path = path_of(scope)
            if node is not None and (method := self._api_method(path)) is not None:
                exchange = Exchange(scope, receive, _last_response(node, scope, send))
                await server_api.serve(node, method, exchange, self._body_limit)
                return
            if monitoring.serves(path, config):
                await monitoring.serve(node, config, scope, receive, send)
                return
            if serves_websocket(path, config) or serves_socket(path, config):
                headers = [(b"sec-websocket-version", b"13")]
                refused = _UPGRADE_EXPECTED if _trusts_page(node, scope) else _OTHER_ORIGIN
                await respond(Exchange(scope, receive, send), refused, headers)
                return
            is_sockjs = serves_sockjs(path, config)
            if is_sockjs or streaming.serves(path, config):
                if node is None:
                    streaming.hide_query(scope, send)
                    exchange = Exchange(scope, receive, send)
                    if is_sockjs:
                        await respond(exchange, _UNAVAILABLE)
                    else:
                        await respond(exchange, *streaming.response_when_away(scope, config))
                else:
                    serve = self._sockjs if is_sockjs else self._streaming
                    await serve(node, scope, receive, send)
                return
        server_send = send
        scope, send = with_privacy(site_scope, _last_response(node, scope, send))
        handover = Handover(send, server_send)
        scope = {**scope, BEGUN: time.time(), HANDOVER: handover}
        await self._django(scope, receive, handover.send)
        await handover.finish(scope, receive)

    def _below_script_name(self, scope: Scope) -> Scope:
        return {**scope, "root_path": self._script_name} if self._script_name else scope

    def _rule_of_body(self, scope: Scope) -> ExpectedBody:
        """Decide about a request with a body from its head.

        With `api` off the middleware of the site must see the request, so only its size counts.
        """
        config = _config()
        path = path_of(self._below_script_name(scope))
        if config is None:
            return ExpectedBody(_UNAVAILABLE if self._is_ours(path) else None)
        if (method := self._api_method(path)) is not None:
            refused = server_api.refuse(config, method, scope)
            return ExpectedBody(refused, self._body_limit, Incoming(counts=False))
        if serves_sockjs(path, config):
            return ExpectedBody(None, self._body_limit, Incoming())
        if streaming.serves(path, config):
            return self._rule_of_stream(path, config)
        return ExpectedBody(None, config.site_body_max_size or None)

    def _rule_of_stream(self, path: str, config: Config) -> ExpectedBody:
        node = serving.node()
        admission = node.admission if node is not None and streaming.begins(path, config) else None
        try:
            if admission is not None:
                admission.check_limit()
        except NotAdmitted as refused:
            return ExpectedBody(_UNAVAILABLE, retry_after=refused.retry_after)
        return ExpectedBody(None, BODY_MAX_BYTES, Incoming(), admission)

    async def _socket(self, site_scope: Scope, receive: Receive, send: Send) -> None:
        scope = self._below_script_name(site_scope)
        node, disconnect = None, None
        try:
            node = await self._start()
        except asyncio.CancelledError:  # daphne ends its applications when it stops
            disconnect = DisconnectShutdown()
        config = _config() if node is None else node.config
        consumer = self._find_consumer(path_of(scope), config or self._readable_paths())
        if consumer is not None and node is not None:
            await consumer(scope, receive, send)
        elif consumer is not None and config is not None:
            await consumer.turn_away(config, scope, receive, send, disconnect)
        elif disconnect is not None:
            raise asyncio.CancelledError
        elif consumer is not None or not await self._serves_socket(site_scope, receive, send):
            await receive()
            if node is None:
                await deny(scope, send, 503, b"Service Unavailable\n")
            else:
                await deny(scope, send, 404, b"Not Found\n")

    async def _serves_socket(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Give a WebSocket to the site. Return False if the site serves none."""
        if self._websocket is None:
            return False
        try:
            await self._websocket(scope, receive, send)
        except ValueError as error:
            if not str(error).startswith(_SERVES_NO_SUCH):
                raise
            return False
        return True

    def _is_ours(self, path: str) -> bool:
        """Return whether a path is one of the service, whose options have mistakes."""
        paths = self._readable_paths()
        return (
            self._takes_api(path)
            or monitoring.serves(path, paths)
            or self._find_consumer(path, paths) is not None
            or serves_sockjs(path, paths)
            or streaming.serves(path, paths)
        )

    def _readable_paths(self) -> Config:
        if self._paths is None:
            self._paths = every_path(serving.readable_config())
        return self._paths

    def _takes_socket(self, path: str) -> bool:
        """Return whether a WebSocket with this path is ours."""
        config = _config()
        path = path.removeprefix(self._script_name)
        return config is not None and self._find_consumer(path, config) is not None

    def _takes_api(self, path: str) -> bool:
        """Return whether a path is one of the server API."""
        return self._api_method(path.removeprefix(self._script_name)) is not None

    def _find_consumer(self, path: str, config: Config) -> WebSocketConsumer | None:
        """Return our consumer for a WebSocket with this path; None if the path is not ours."""
        if serves_websocket(path, config):
            return WebSocketConsumer()
        if serves_socket(path, config):
            return UniWebSocketConsumer()
        if serves_sockjs(path, config) and _SOCKJS_SOCKET.fullmatch(
            path.removeprefix(config.sockjs_handler_prefix)
        ):
            return SockJSConsumer()
        return None

    async def _start(self, *, wait: bool = True) -> Node | None:
        """Return the node, and start it if needed.

        A broken configuration must not take the rest of the site down.

        Args:
            wait: wait for the start; otherwise only begin it, for later requests.

        Returns:
            None if there is no node yet.
        """
        if self._freeze_gc:
            self._freeze_gc = False
            freeze_gc()
        node = serving.node()
        if node is not None:
            self._failed = False
            return node
        if time.monotonic() < self._retry_at:
            return None
        if not wait:
            self._retry_at = time.monotonic() + START_RETRY_DELAY
            serving.begin_start()
            return None
        try:
            async with asyncio.timeout(START_TIMEOUT):
                node = await serving.start()
        except Exception as error:
            self._retry_at = time.monotonic() + START_RETRY_DELAY
            if not self._failed:
                self._failed = True
                _log_failed_start(error)
            return None
        self._failed = False
        return node

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start and stop the service, and let the site answer the events if it serves them."""
        site_serves = site_answered = ended = False

        async def serve_and_receive() -> Event:
            nonlocal ended
            event = await receive()
            if event["type"] == "lifespan.startup":
                signals.close_clients_on_signal()
                uvicorn_connections.install(send, self._takes_socket)
                await self._start()
            elif event["type"] == "lifespan.shutdown":
                ended = True
                await serving.stop()
            return event

        async def receive_for_site() -> Event:
            nonlocal site_serves
            site_serves = True
            return await serve_and_receive()

        async def send_for_site(event: Event) -> None:
            nonlocal site_answered
            site_answered = True
            await send(event)

        try:
            if not self._serves_only_http:
                await self._django(scope, receive_for_site, send_for_site)
        except Exception:
            if site_answered:
                raise
            # most applications that serve no lifespan have a failure for that
            if site_serves:
                logger.exception("The site failed at the start of the server, which goes on")
                await send({"type": "lifespan.startup.complete"})
        while not ended:
            event = await serve_and_receive()
            await send({"type": f"{event['type']}.complete"})

    def _api_method(self, path: str) -> str | None:
        """Return what a path of the server API names, see `api.method_of`; None for other paths."""
        if not self._api:
            return None
        if self._api_path is None:
            try:
                self._api_path = "/" + reverse(API_URL_NAME).removeprefix(get_script_prefix())
            except NoReverseMatch:  # it is not in the site's URLconf
                self._api = False
                return None
        return server_api.method_of(path, self._api_path)


def _log_failed_start(error: Exception) -> None:
    """Log why the service could not start: a sentence where that says all, or the traceback."""
    reason = serving.reason_of(error, START_TIMEOUT)
    if reason is None:
        logger.error("Could not start the real-time service", exc_info=error)
        return
    logger.error("Could not start the real-time service: %s", reason)


def _config() -> Config | None:
    """Return the configuration in force; None if it has mistakes."""
    try:
        return serving.config()
    except InvalidOptions:
        return None
