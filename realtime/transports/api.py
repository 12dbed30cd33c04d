"""The server API as plain ASGI: requests in, responses out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from realtime.config.options import Config
from realtime.node.node import Node
from realtime.server_api import http, http_v2
from realtime.server_api.methods_v2 import NAMES
from realtime.transports.asgi import Exchange, Headers, Scope

_NO_SPAN = nullcontext()


def refuse_command(config: Config, scope: Scope) -> http.Response | None:
    """Return the response that refuses a request of the server API by its head, or None."""
    return _refuse_command(config, scope, dict(scope["headers"]))


def _refuse_command(
    config: Config, scope: Scope, headers: Mapping[bytes, bytes]
) -> http.Response | None:
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    return http.refuse(config, scope["method"], authorization, query)


async def serve_command(node: Node, exchange: Exchange, limit: int | None) -> None:
    """Answer a request to the path of the server API. Its body has `limit` bytes at most."""
    headers = dict(exchange.scope["headers"])
    refused = _refuse_command(node.config, exchange.scope, headers)
    if refused is not None:
        await respond(exchange, refused)
        return
    body = await exchange.body(limit, is_trusted=True)
    if body is None:
        await respond(exchange, http.Response(exchange.refusal[0]))
        return
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    with _span(node, "commands", exchange.scope):
        response = await http.handle(node, content_type, body)
    await respond(exchange, response)


def method_name(path: str, api: str) -> str | None:
    """Return the method that a path below that of the server API names, None if it names none."""
    if not path.startswith(api):
        return None
    name = path[len(api) :].removeprefix("/")
    return name if path == f"{api}/{name}" and name in NAMES else None


def _head(scope: Scope) -> http_v2.Head:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    return http_v2.Head(
        scope["method"],
        scope.get("query_string", b"").decode("latin-1"),
        headers.get(b"x-api-key"),
        headers.get(b"authorization"),
        headers.get(b"x-centrifugo-error-mode"),
    )


def refuse_method(config: Config, scope: Scope) -> http.Response | None:
    """Return the response that refuses a request to a method by its head, or None."""
    return http_v2.refuse(config, _head(scope))


async def serve_method(node: Node, name: str, exchange: Exchange, limit: int | None) -> None:
    """Answer a request to the path of a method. Its body has `limit` bytes at most."""
    head = _head(exchange.scope)
    refused = http_v2.refuse(node.config, head)
    if refused is not None:
        await respond(exchange, refused)
        return
    body = await exchange.body(limit, is_trusted=True)
    if body is None:
        await respond(exchange, http.Response(exchange.refusal[0]))
        return
    with _span(node, name, exchange.scope):
        response = await http_v2.handle(node, name, head, body)
    await respond(exchange, response)


def _span(node: Node, name: str, scope: Scope) -> AbstractContextManager[None]:
    """Return the span of a request; it does nothing without traces."""
    if node.spans is None:
        return _NO_SPAN
    headers = dict(scope["headers"])
    return node.spans.api(name, headers.get(b"traceparent", b"").decode("latin-1"))


async def respond(exchange: Exchange, response: http.Response, headers: Headers = ()) -> None:
    """Send a response of the server API."""
    await exchange.respond(response.status, response.body, response.content_type, headers)
