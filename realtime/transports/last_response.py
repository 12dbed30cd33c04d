"""The last response on an HTTP connection to a node that is draining."""

from __future__ import annotations

from realtime.node.node import Node
from realtime.transports.asgi import Event, Scope, Send


def last_response(node: Node | None, scope: Scope, send: Send) -> Send:
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
