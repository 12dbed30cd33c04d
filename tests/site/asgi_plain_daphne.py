"""The test site on a daphne that cannot take our protocol, as a future version might be."""

from __future__ import annotations

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from tests.site.asgi import application

WebSocketFactory.protocol = WebSocketProtocol

__all__ = ["application"]
