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
from realtime.transports.asgi import REQUEST_TIMEOUT, Scope
from realtime.transports.bodies import BODY_TIMEOUT, ExpectedBody
from realtime.transports.servers.daphne_body import BodyReader, SpooledBody
from realtime.transports.servers.daphne_channel import backlog_of

TIMED_OUT = http.Response(*REQUEST_TIMEOUT, "text/plain; charset=utf-8")

ROOT_PATH = b"daphne-root-path"

LINGER_TIMEOUT = 5.0
"""Seconds for which the body of a refused request is dropped before the connection is closed. A
peer that still writes would otherwise get a reset in place of the response."""

BodyRule: TypeAlias = Callable[[Scope], ExpectedBody]


class GuardedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """Every HTTP request of the site. For applications it behaves like daphne's own."""

    rule: BodyRule = staticmethod(lambda scope: ExpectedBody())
    """What `servers.daphne.install` was given last."""
    content: Any
    uri: bytes
    _length: int | None = None
    """Size of the body in bytes, if the head says it."""
    _expected = ExpectedBody()
    _size = 0
    _timer: Any = None
    """That of a body that has to come in time."""
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
            self._length, self._expected = length, self._decide()
            refusal, limit = self._expected.refusal, self._expected.limit
            if length is not None and limit is not None and length > limit:
                refusal = refusal or http.TOO_LARGE
        super().gotLength(length if refusal is None else 0)
        if refusal is not None:
            self._refuse(refusal, self._expected.retry_after)
        elif self._expected.incoming is not None:
            self._timer = self.channel.callLater(BODY_TIMEOUT, self._check_time, BODY_TIMEOUT)
            if self._expected.admission is not None:
                self._expected.admission.arriving += 1

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take in a part of the body, if it may come."""
        self._size += len(data)
        if self._linger is not None:
            return
        limit, incoming = self._expected.limit, self._expected.incoming
        is_last = self._size == self._length
        if limit is not None and self._size > limit:
            self._refuse_rest(http.TOO_LARGE)
        elif incoming is not None and not incoming.take(len(data), self._give_way, is_last=is_last):
            self._give_way()
        else:
            super().handleContentChunk(data)

    def _check_time(self, seconds: float) -> None:
        """Refuse the rest of a body that has not come in so many seconds, if that is too slow."""
        assert self._expected.incoming is not None
        allowed = self._expected.incoming.seconds
        if allowed > seconds:
            self._timer = self.channel.callLater(allowed - seconds, self._check_time, allowed)
        else:
            self._refuse_rest(TIMED_OUT)

    def _end_body(self) -> None:
        """Count the body no more: it has come, or will not."""
        if (timer := self._timer) is None:
            return
        self._timer = None
        if timer.active():
            timer.cancel()
        if self._expected.incoming is not None:
            self._expected.incoming.end()
        if self._expected.admission is not None:
            self._expected.admission.arriving -= 1

    def _give_way(self) -> None:
        self._refuse_rest(http.UNAVAILABLE)

    def _refuse_rest(self, response: http.Response) -> None:
        self.content.close()
        self.content = BytesIO()
        self._refuse(response)

    def process(self) -> Any:
        """Run the application, or open a WebSocket, as daphne does."""
        self._end_body()
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
        """Forget the timers, and end the request as daphne does."""
        self._end_body()
        if self._linger is not None and self._linger.active():
            self._linger.cancel()
        self._linger = None  # it holds the request
        super().connectionLost(reason)

    # for the application, see `streaming.transport.PeerConnection`

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

    def _decide(self) -> ExpectedBody:
        if self._opens_websocket():
            return ExpectedBody(http.BAD_REQUEST)  # handshakes have no body
        scope = self._scope()
        return ExpectedBody() if scope is None else self.rule(scope)

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

    def _refuse(self, response: http.Response, retry_after: int = 0) -> None:
        """Send a response at once, and close the connection soon."""
        self._end_body()
        self.requestHeaders.removeHeader(b"expect")  # or Twisted would ask for the body
        head = (
            f"HTTP/1.1 {response.status} {responses[response.status]}\r\n"
            f"Content-Length: {len(response.body)}\r\nConnection: close\r\n"
        )
        if retry_after:
            head += f"Retry-After: {retry_after}\r\n"
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
