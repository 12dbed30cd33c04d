"""The server API as plain ASGI: requests in, responses out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from realtime.config.options import Config
from realtime.node.node import Node
from realtime.server_api import http, http_v2
from realtime.server_api.methods_v2 import NAMES
from realtime.transports.asgi import Exchange, Headers, Scope

COMMANDS = "commands"
"""In place of the name of a method: the path whose body has commands."""

_NO_SPAN = nullcontext()


def method_of(path: str, api: str) -> str | None:
    """Return the method that a path names, or `COMMANDS`; None if it is not of the server API.

    Args:
        api: path of the server API.
    """
    if path == api:
        return COMMANDS
    if not path.startswith(api):
        return None
    name = path[len(api) :].removeprefix("/")
    return name if path == f"{api}/{name}" and name in NAMES else None


def refuse(config: Config, method: str, scope: Scope) -> http.Response | None:
    """Return the response that refuses a request by its head, or None.

    Args:
        method: see `method_of`.
    """
    return http.refuse(config, _head(method, scope, dict(scope["headers"])))


def _head(method: str, scope: Scope, headers: Mapping[bytes, bytes]) -> http.Head:
    return http.Head(
        scope["method"],
        scope.get("query_string", b"").decode("latin-1"),
        None if method == COMMANDS else _text(headers, b"x-api-key"),
        _text(headers, b"authorization"),
        _text(headers, b"x-centrifugo-error-mode"),
    )


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


async def serve(node: Node, method: str, exchange: Exchange, limit: int | None) -> None:
    """Answer a request to a method, or with commands.

    Args:
        method: see `method_of`.
        limit: largest body in bytes; None for no limit.
    """
    headers = dict(exchange.scope["headers"])
    head = _head(method, exchange.scope, headers)
    response = http.refuse(node.config, head)
    if response is None:
        body = await exchange.body(limit, is_trusted=True)
        if body is None:
            response = http.Response(exchange.refusal[0])
        else:
            with _span(node, method, headers):
                if method == COMMANDS:
                    content_type = _text(headers, b"content-type") or ""
                    response = await http.handle(node, content_type, body)
                else:
                    response = await http_v2.handle(node, method, head, body)
    await respond(exchange, response)


def _span(node: Node, name: str, headers: Mapping[bytes, bytes]) -> AbstractContextManager[None]:
    """Return the span of a request; it does nothing without traces."""
    if node.spans is None:
        return _NO_SPAN
    return node.spans.api(name, _text(headers, b"traceparent") or "")


async def respond(exchange: Exchange, response: http.Response, headers: Headers = ()) -> None:
    """Send a response of the server API."""
    await exchange.respond(response.status, response.body, response.content_type, headers)
