"""Requests of the server API under daphne, without the requests of Twisted.

Imported by `servers.daphne` only if daphne is loaded.

Twisted and daphne spend three times as much on a request as the service on its publication. A
request for a path of the server API that comes in one piece, and has its usual form (`plain`), goes
to daphne's application at once, and its response to the socket. Twisted's channel takes it for a
request of its own: it keeps back what comes behind it, and goes on when it is done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from http.client import responses
from typing import Any

from twisted.web.http import NO_BODY_CODES

from realtime.transports.asgi import Event, Headers, Scope
from realtime.transports.servers.daphne_channel import (
    backlog_of,
    has_plain_socket,
    write_to_socket,
)
from realtime.transports.servers.daphne_request import ROOT_PATH, ends_connection
from realtime.transports.servers.plain import PlainPost

logger = logging.getLogger("realtime.daphne")

_NEEDED_OF_CHANNEL = (
    *("_buffer", "_busyReceiving", "_handlingRequest", "_savedTimeOut", "persistent"),
    *("requestDone", "requests"),
)
_NEEDED_OF_SERVER = (
    *("action_logger", "application", "connections", "http_timeout"),
    *("proxy_forwarded_address_header", "server_name"),
)
_CR, _LF, _UNDERSCORE = b"\r\n_"
"""As numbers: `in` finds them at once, and raises an exception before it looks for bytes."""


class PlainRequest:
    """One request and its response. For Twisted's channel it is one of its requests."""

    def __init__(self, channel: Any, post: PlainPost) -> None:
        self._channel = channel
        self._server = channel.factory.server
        self._body: bytes | None = post.body
        self._scope = _scope(channel.transport, post)
        self._gone: asyncio.Future[None] | None = None
        """While the application waits for the end of the connection."""
        self._is_open = True
        self._status = 0
        self._headers: Headers = ()
        self._parts: list[bytes] = []

    def start(self) -> None:
        """Run the application, as the channel's request."""
        channel = self._channel
        channel.requests.append(self)
        channel._savedTimeOut = channel.idle_timeout
        channel.setTimeout(None)
        channel._handlingRequest = True
        channel.persistent = True
        channel.setRawMode()  # it keeps back what comes
        running = asyncio.ensure_future(self._run())
        # daphne cancels the applications of its connections when it stops
        self._server.connections[self] = {
            "connected": time.time(),
            "application_instance": running,
        }

    async def _run(self) -> None:
        try:
            await self._server.application(self._scope, self._receive, self._send)
        except Exception:
            logger.exception("Exception inside application")
        finally:
            self._server.connections.pop(self, None)
            if self._is_open:
                self._status, self._headers, self._parts = 500, (), [b"Internal Server Error"]
                self._respond()

    # for the application

    async def _receive(self) -> Event:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._is_open:
            self._gone = self._gone or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._gone)
        return {"type": "http.disconnect"}

    async def _send(self, event: Event) -> None:
        if not self._is_open:
            return
        if event["type"] == "http.response.start":
            self._status, self._headers = event["status"], list(event.get("headers", ()))
        elif event["type"] == "http.response.body":
            self._parts.append(event.get("body", b""))
            if not event.get("more_body", False):
                self._respond()

    def _respond(self) -> None:
        has_body = self._status not in NO_BODY_CODES
        body = b"".join(self._parts) if has_body else b""
        names = {name.lower() for name, _ in self._headers}
        lines = [b"HTTP/1.1 %d %b" % (self._status, responses[self._status].encode())]
        lines += [name + b": " + value for name, value in self._headers]
        if has_body and b"content-length" not in names:
            lines.append(b"content-length: %d" % len(body))
        if self._server.server_name and b"server" not in names:
            lines.append(b"Server: " + self._server.server_name.encode())
        if any(_CR in line or _LF in line for line in lines):
            raise ValueError("a header of the response has a line break")
        transport = self._channel.transport
        rest = write_to_socket(transport, b"\r\n".join((*lines, b"", body)))
        if rest:
            transport.write(rest)
        self._close()
        if ends_connection(self._headers):
            self._channel.persistent = False
        self._channel.requestDone(self)

    def _close(self) -> None:
        self._is_open = False
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    # for Twisted's channel and daphne's server

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - Twisted's name
        """Tell the application that the peer has gone, and daphne that it should end soon."""
        self._close()
        self._channel = None  # it holds this request
        if (running := self._server.connections.get(self)) is not None:
            running["disconnected"] = time.time()

    def check_timeouts(self) -> None:
        """Do nothing: daphne has no time-out for responses where this is used."""

    def handle_exception(self, error: Exception) -> None:
        """Do nothing: the response says it."""


def _scope(transport: Any, post: PlainPost) -> Scope:
    """Return the scope of a request, as daphne makes it."""
    peer, host = transport.getPeer(), transport.getHost()
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": post.path,
        "raw_path": post.path.encode("ascii"),
        "root_path": "",
        "scheme": "http",
        "query_string": post.query,
        # CVE-2015-0219
        "headers": [each for each in post.headers.items() if _UNDERSCORE not in each[0]],
        "client": [peer.host, peer.port],
        "server": [host.host, host.port],
        "asgi": {"version": "3.0"},
    }


def answerer(takes: Callable[[str], bool]) -> Callable[[Any, PlainPost], bool]:
    """Return a function that runs the application for a plain request.

    Args:
        takes: return whether a path is one of the server API.

    Returns:
        From Twisted's HTTP channel and the request: whether the application runs. If not, nothing
        happened, and Twisted has to read the request.
    """

    def answer(channel: Any, post: PlainPost) -> bool:
        server = channel.factory.server
        if (
            not takes(post.path)
            or ROOT_PATH in post.headers
            or getattr(server, "root_path", None) != ""
            or not all(hasattr(server, name) for name in _NEEDED_OF_SERVER)
            or not all(hasattr(channel, name) for name in _NEEDED_OF_CHANNEL)
            or channel.requests
            or channel._buffer
            or channel._busyReceiving
            or server.proxy_forwarded_address_header
            or server.action_logger is not None
            or server.http_timeout
            or not has_plain_socket(channel.transport)
            # the peer reads no responses: daphne's request ends the connection with a 401
            or backlog_of(channel.transport)
        ):
            return False
        PlainRequest(channel, post).start()
        return True

    return answer
