"""Responses that a view hands over to the service: the site's head, and a stream of ours.

    view ──► sets `serve`, returns an empty response ──► Django ends the request ──► serve(...)

Django holds a thread, and often a database connection, for as long as a response of its own lasts.
A stream that is handed over begins when Django has ended the request, so it holds neither; its
head has what the site's middleware added, such as cookies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from realtime.transports.asgi import Event, Exchange, Receive, Scope, Send

HANDOVER = "realtime.handover"
"""Key of a scope: the `Handover` of its request."""

Serve: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Sends the body of a response whose head has been sent."""

_OF_THE_BODY = (b"content-length", b"etag")


class Handover:
    """Passes on the response of one request, unless a view has set `serve`."""

    __slots__ = ("_head", "_send", "_server_send", "serve")

    def __init__(self, send: Send, server_send: Send) -> None:
        self._send = send
        self._server_send = server_send
        self.serve: Serve | None = None
        self._head: Event | None = None

    async def send(self, event: Event) -> None:
        """Take an event of the site."""
        if self.serve is None:
            await self._send(event)
        elif event["type"] == "http.response.start":
            if event["status"] == 200:
                self._head = event
            else:  # middleware has answered in its place
                self.serve = None
                await self._send(event)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        """Send what was handed over, if anything was."""
        if self.serve is not None and self._head is not None:
            headers = [
                (name, value)
                for name, value in self._head.get("headers", ())
                if name.lower() not in _OF_THE_BODY
            ]
            await self._send({**self._head, "headers": headers})
            await self.serve(Exchange(scope, receive, self._server_send))
