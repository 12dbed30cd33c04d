"""daphne's HTTP requests, WebSocket handshakes included, with limits before the application runs.

Imported by `servers.daphne` only if daphne is loaded. daphne runs the application when it has the
whole body, so it would take in any number of bytes for a request that the application refuses by
its headers. And it takes the path at which the site is mounted from the header Daphne-Root-Path of
any request. A client could so reach our paths past the rules that a reverse proxy has for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http.client import responses
from io import BytesIO
from typing import Any, TypeAlias
from urllib.parse import unquote

from daphne.http_protocol import WebRequest

from realtime.config.reader import InvalidOptions
from realtime.server_api import http
from realtime.serving import serving
from realtime.transports.asgi import Scope
from realtime.transports.servers.daphne_body import BodyReader, SpooledBody
from realtime.transports.servers.daphne_channel import backlog_of

ROOT_PATH = b"daphne-root-path"

LINGER_TIMEOUT = 5.0
"""Seconds for which the body of a refused request is dropped before the connection is closed. A
peer that still writes would otherwise get a reset in place of the response."""

BodyRule: TypeAlias = Callable[[Scope], tuple[http.Response | None, int | None]]
"""From the head of a request with a body: the response that refuses it, and the largest size of the
body in bytes, None for no limit."""


class GuardedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """Every HTTP request of the site. For applications it behaves like daphne's own."""

    rule: BodyRule = staticmethod(lambda scope: (None, None))
    """What `servers.daphne.install` was given last."""
    content: Any
    uri: bytes
    _limit: int | None = None
    _size = 0
    _linger: Any = None
    """The timer of a request that was refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Twisted would read a whole form into memory; Django reads forms itself
        self._parsePOSTFormSubmission = False

    # from Twisted, in this order

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Decide from the head whether the body may come.

        Args:
            length: size of the body in bytes; None if the head does not say it.
        """
        refusal = None
        # without decoder there is no body; HTTP/2 has other channels
        if length != 0 and getattr(self.channel, "_transferDecoder", None) is not None:
            refusal, self._limit = self._decide()
            if length is not None and self._limit is not None and length > self._limit:
                refusal = refusal or http.TOO_LARGE
        super().gotLength(length if refusal is None else 0)
        if refusal is not None:
            self._refuse(refusal)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take in a part of the body, if it may come."""
        self._size += len(data)
        if self._linger is not None:
            return
        if self._limit is not None and self._size > self._limit:
            self.content.close()
            self.content = BytesIO()
            self._refuse(http.TOO_LARGE)
            return
        super().handleContentChunk(data)

    def process(self) -> Any:
        """Run the application, or open a WebSocket, as daphne does."""
        if self._linger is not None:
            self._close()
            return None
        if self.requestHeaders.hasHeader(ROOT_PATH) and not _proxy_sets_root_path():
            self.requestHeaders.removeHeader(ROOT_PATH)
        if not isinstance(self.content, BytesIO) and not self._opens_websocket():
            self.content = SpooledBody(self.content)
            if not isinstance(self.server.application, BodyReader):
                self.server.application = BodyReader(self.server.application)
        result = super().process()
        if self.transport is None and self.channel is not None:
            # a WebSocket has the transport now, and no one ends this request: channel and request
            # would keep each other until the garbage collector comes
            self.channel.requests.clear()
        return result

    def finish(self) -> None:
        """End the response, and the connection if the application says so in a header."""
        if self.channel is not None and ends_connection(self.responseHeaders.getAllRawHeaders()):
            # Twisted looks at the header of the request only; HTTP/2 has no such header
            self.channel.persistent = False
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - Twisted's name
        """Forget the timer, and end the request as daphne does."""
        if self._linger is not None and self._linger.active():
            self._linger.cancel()
        self._linger = None  # it holds the request
        super().connectionLost(reason)

    # for the application, see `streaming.transport.Connection`

    def backlog_bytes(self) -> int:
        """Return bytes of the response that have not left; 0 if unknown."""
        return 0 if self.channel is None else backlog_of(self.channel.transport)

    def abort(self) -> None:
        """Drop the connection, with what has not left."""
        if self.channel is not None:
            self.channel.transport.abortConnection()

    def hide_query(self) -> None:
        """Keep the query string out of daphne's access log, which comes with the end."""
        self.uri = self.uri.partition(b"?")[0]

    # refusals

    def _decide(self) -> tuple[http.Response | None, int | None]:
        if self._opens_websocket():
            return http.BAD_REQUEST, None  # handshakes have no body
        scope = self._scope()
        return (None, None) if scope is None else self.rule(scope)

    def _opens_websocket(self) -> bool:
        upgrade = self.requestHeaders.getRawHeaders(b"upgrade", [b""])
        return bool(upgrade[0].lower() == b"websocket")

    def _scope(self) -> Scope | None:
        """Return the scope as far as the head tells it; None if daphne will not accept the head."""
        path, _, query = self.channel._path.partition(b"?")
        root_path = self.server.root_path
        headers = [
            (name.lower(), value)
            for name, values in self.requestHeaders.getAllRawHeaders()
            for value in values
        ]
        try:
            for name, value in headers:
                if name == ROOT_PATH and _proxy_sets_root_path():
                    root_path = unquote(value.decode("ascii"))
            return {
                "type": "http",
                "method": self.channel._command.decode("ascii"),
                "path": unquote(path.decode("ascii")),
                "query_string": query,
                "root_path": root_path,
                "headers": headers,
            }
        except UnicodeDecodeError:
            return None

    def _refuse(self, response: http.Response) -> None:
        """Send a response at once, and close the connection soon."""
        self.requestHeaders.removeHeader(b"expect")  # or Twisted would ask for the body
        head = (
            f"HTTP/1.1 {response.status} {responses[response.status]}\r\n"
            f"Content-Length: {len(response.body)}\r\nConnection: close\r\n"
        )
        if response.content_type is not None:
            head += f"Content-Type: {response.content_type}\r\n"
        self.channel.transport.write(head.encode() + b"\r\n" + response.body)
        self._linger = self.channel.callLater(LINGER_TIMEOUT, self._close)

    def _close(self) -> None:
        if self.channel is not None:
            self.channel.loseConnection()


def ends_connection(headers: Iterable[tuple[bytes, Any]]) -> bool:
    """Return whether a response tells its client that the connection ends, as RFC 9112 has it.

    Args:
        headers: of the response, each value as bytes, or as a list of bytes.
    """
    return any(
        name.lower() == b"connection" and value in (b"close", [b"close"]) for name, value in headers
    )


def _proxy_sets_root_path() -> bool:
    try:
        return serving.config().proxy_sets_root_path
    except InvalidOptions:
        return False
