"""The paths of monitoring, in front of the site's application."""

from __future__ import annotations

from urllib.parse import parse_qs

from realtime.config.options import Config
from realtime.errors import EngineUnavailable
from realtime.monitoring import access, figures, health, pending_rows
from realtime.node.node import Node
from realtime.transports.asgi import Exchange, Receive, Scope, Send, path_of
from realtime.transports.handshake import address_of

LIVE, READY = "/live", "/ready"
"""What follows `health_handler_prefix`."""

MAX_QUERY_FIELDS = 10

NO_STORE = [(b"cache-control", b"no-store")]
_PLAIN = "text/plain; charset=utf-8"
_UNAVAILABLE = 503, b"unavailable\n", _PLAIN


def serves(path: str, config: Config) -> bool:
    """Return whether a path is one of these."""
    if config.serves_metrics and path == config.metrics_handler_prefix:
        return True
    return config.health and path.removeprefix(config.health_handler_prefix) in (LIVE, READY)


def asks_live(path: str, config: Config | None) -> bool:
    """Return whether a path asks whether the process is alive. It needs no node."""
    return config is not None and config.health and path == config.health_handler_prefix + LIVE


async def serve(
    node: Node | None, config: Config, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request to one of the paths.

    Args:
        node: None if there is none yet.
    """
    exchange = Exchange(scope, receive, send)
    if config.serves_metrics and path_of(scope) == config.metrics_handler_prefix:
        status, body, content_type = await _metrics(node, config, scope)
    else:
        status, body, content_type = await _health(node, config, scope)
    if exchange.method == "HEAD":
        body = b""
    headers = [*NO_STORE, (b"allow", b"GET, HEAD")] if status == 405 else NO_STORE
    await exchange.respond(status, body, content_type, headers)


async def _health(node: Node | None, config: Config, scope: Scope) -> tuple[int, bytes, str]:
    """Return status, body and content type of live or ready."""
    if scope["method"] not in ("GET", "HEAD"):
        return 405, b"Method Not Allowed\n", _PLAIN
    if asks_live(path_of(scope), config) or await health.is_ready(node):
        return 200, b"ok\n", _PLAIN
    return _UNAVAILABLE


async def _metrics(node: Node | None, config: Config, scope: Scope) -> tuple[int, bytes, str]:
    """Return status, body and content type of the metrics."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if not access.may_read(config, headers, address_of(scope, config.trusted_proxies)):
        if config.metrics_key:
            return 401, b"Unauthorized\n", _PLAIN
        return 403, b"Forbidden\n", _PLAIN
    if scope["method"] not in ("GET", "HEAD"):
        return 405, b"Method Not Allowed\n", _PLAIN
    if node is None:
        return _UNAVAILABLE
    # its import takes a while, which only those who read metrics need to spend
    from realtime.monitoring import exposition

    read: figures.Figures
    try:
        if _scope(scope.get("query_string", b"")) == "service":
            read = await figures.of_service(node)
        else:
            read = {**await figures.of_process(node), **await pending_rows.read()}
    except EngineUnavailable:
        return _UNAVAILABLE
    text = exposition.text(read, headers.get("accept", ""))
    return 200, text.body, text.content_type


def _scope(query: bytes) -> str:
    """Return the parameter `scope` of a query string; "" if it is missing."""
    try:
        fields = parse_qs(query.decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:
        return ""
    return fields.get("scope", [""])[0]
