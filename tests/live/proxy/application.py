"""An application with HTTP endpoints, as `proxy_*_endpoint` names them: a real HTTP server.

It remembers every request and answers what a test tells it to.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.live.configurations import NAMESPACES, Connect
from tests.protocol_client import ProtocolClient
from tests.server import Server

INTERNAL_ERROR = {"code": 100, "message": "internal server error"}


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    """With the query."""
    headers: Message
    body: bytes
    port: int
    """The port it came from, which tells the TCP connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """One answer. `body`: bytes as they are, anything else as JSON."""

    body: Any = field(default_factory=lambda: {"result": {}})
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    when: threading.Event | None = None
    """Wait for this event before answering."""
    between: threading.Event | None = None
    """Wait for this event in the middle of the body."""
    length: int | None = None
    """Says another Content-Length than that of the body."""

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Application(ThreadingHTTPServer):
    """Answers by path. `answers`: path → answer, or a function of the request."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, certificate: Path | None = None, port: int = 0) -> None:
        """`certificate`: directory of certificate.pem and key.pem, for https."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.scheme = "http"
        if certificate is not None:
            self.scheme = "https"
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.answers: dict[str, Answer | Callable[[Request], Answer]] = {}
        self.requests: list[Request] = []
        self.waiting = 0
        """Requests whose answer waits for an event."""
        self.most_waiting = 0
        self.lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Forget what was, for the next test."""
        self.answers = {}
        self.requests = []
        self.most_waiting = 0

    def url(self, path: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"

    def answer(self, path: str, *answer: Any, **options: Any) -> None:
        """Answer requests for a path so from now on. See `Answer`; by default it is a success."""
        self.answers[path] = Answer(*answer, **options)

    def asked(self, path: str) -> list[Request]:
        """The requests for a path so far, oldest first."""
        return [request for request in self.requests if request.path.partition("?")[0] == path]

    def only_request(self) -> Request:
        """The one request there was."""
        (request,) = self.requests
        return request

    def stop(self) -> None:
        """Stop listening, and cut what is connected."""
        self.shutdown()
        self.server_close()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that went away, or no TLS handshake: what the service does is tested there."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Application

    def _serve(self) -> None:
        application = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self.command, self.path, self.headers, body, self.client_address[1])
        answer = application.answers.get(self.path.partition("?")[0], Answer())
        with application.lock:
            application.requests.append(request)
        if callable(answer):
            answer = answer(request)
        if answer.when is not None:
            with application.lock:
                application.waiting += 1
                application.most_waiting = max(application.most_waiting, application.waiting)
            answer.when.wait(30)
            with application.lock:
                application.waiting -= 1
        content = b"" if answer.status == 204 else answer.content
        try:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                length = len(content) if answer.length is None else answer.length
                self.send_header("Content-Length", str(length))
            self.end_headers()
            half = len(content) // 2
            self.wfile.write(content[:half])
            if answer.between is not None:
                answer.between.wait(30)
            self.wfile.write(content[half:])
        except OSError:
            self.close_connection = True  # the service did not wait
        if answer.length is not None:
            self.close_connection = True

    do_GET = do_POST = _serve  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        pass


def proxied(application: Application) -> dict[str, Any]:
    """Options of a server that asks the application everything but refresh."""
    return {
        "namespaces": NAMESPACES,
        "v3_use_offset": True,
        "proxy_connect_endpoint": application.url("/connect"),
        "proxy_subscribe_endpoint": application.url("/subscribe"),
        "proxy_publish_endpoint": application.url("/publish"),
        "proxy_rpc_endpoint": application.url("/rpc"),
        "proxy_extra_http_headers": ["X-Custom", "x-lower", "Host", "Content-Length"],
    }


PATIENT = {f"proxy_{kind}_timeout": 60 for kind in ("connect", "subscribe", "publish", "rpc")}
"""Options of a server that a busy host does not keep from an answer."""


def refreshing(application: Application) -> dict[str, Any]:
    """Options of a server that asks the application about refresh too.

    Its rpc endpoint has credentials and a query, and no limit of time. A connection that waited
    for the window of clients that refresh by themselves would outlast a test.
    """
    url = application.url("/rpc?key=in-the-query")
    return {
        "namespaces": NAMESPACES,
        "client_anonymous": True,
        "client_expired_close_delay": 300,
        "proxy_connect_endpoint": application.url("/connect"),
        "proxy_refresh_endpoint": application.url("/refresh"),
        "proxy_rpc_endpoint": url.replace("://", "://operator:in-the-url@"),
        "proxy_rpc_timeout": 0,
    }


ASKING = ("connect", "subscribe", "publish", "rpc")
"""Kinds of endpoints that a command asks."""


def asking(kind: str, word: str) -> tuple[str, dict[str, Any]]:
    """A command that asks an endpoint. `word`: names the channel."""
    match kind:
        case "subscribe":
            return "subscribe", {"channel": f"proxied:{word}"}
        case "publish":
            return "publish", {"channel": f"proxied_publish:{word}", "data": {"text": word}}
        case "rpc":
            return "rpc", {"method": "sum", "data": {"text": word}}
        case _:
            return "connect", {"data": {"text": word}}


async def ask(client: ProtocolClient, kind: str, word: str) -> dict[str, Any]:
    """Send a command that asks an endpoint; returns the reply."""
    return await client.call(*asking(kind, word))


async def client_for(connect: Connect, server: Server, kind: str, **options: Any) -> ProtocolClient:
    """A client that may ask an endpoint: connected by a token, except to be connected by one."""
    client: ProtocolClient = await connect(server, connected=kind != "connect", **options)
    return client
