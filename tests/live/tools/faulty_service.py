"""A service that makes mistakes: the far side of `manage.py realtime bench`."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Delivery = Callable[[int], Sequence[int | None]]
"""Number of a publication → numbers of those that are sent when it comes; None closes."""


class FaultyService:
    """Delivers the publications to each connection in a way of its own."""

    def __init__(self, ways: Sequence[Delivery]) -> None:
        """`ways`: those of the connections, the first of which gets the first."""
        self._ways = ways
        self._handlers: list[_Handler] = []
        self._published: list[Any] = []
        self._lock = threading.Lock()
        self.api_connections = 0
        service = self

        class Handler(_Handler):
            def setup(self) -> None:
                self.service = service
                super().setup()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, handler: _Handler) -> None:
        """A subscriber is there."""
        with self._lock:
            self._handlers.append(handler)

    def publish(self, data: Any) -> None:
        """Deliver a publication, each connection in its way."""
        self._published.append(data)
        for handler, way in zip(self._handlers, self._ways, strict=True):
            for number in way(len(self._published) - 1):
                if number is None:
                    handler.send_close()
                else:
                    handler.send(
                        {"push": {"channel": "c", "pub": {"data": self._published[number]}}}
                    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: FaultyService
    is_first_request = True

    def do_POST(self) -> None:
        self.service.api_connections += self.is_first_request
        self.is_first_request = False
        params = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/publish"):
            self.service.publish(params["data"])
        body = b'{"result":{}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        key = self.headers["Sec-WebSocket-Key"].encode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accept = base64.b64encode(hashlib.sha1(key + _ACCEPT).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        self.close_connection = True
        while (command := self._receive()) is not None:
            is_bench = command.get("subscribe") is not None
            if is_bench:
                self.service.add(self)
            self.send({"id": command["id"]})

    def _receive(self) -> Any:
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 0x7F
        if length == 126:
            length = int.from_bytes(self.rfile.read(2), "big")
        mask, data = self.rfile.read(4), self.rfile.read(length)
        return json.loads(bytes(byte ^ mask[index % 4] for index, byte in enumerate(data)))

    def send(self, message: Any) -> None:
        data = json.dumps(message).encode()
        self.wfile.write(b"\x81\x7e" + len(data).to_bytes(2, "big") + data)

    def send_close(self) -> None:
        self.wfile.write(b"\x88\x02" + (3001).to_bytes(2, "big"))

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def faulty_service(ways: Sequence[Delivery]) -> Iterator[FaultyService]:
    """A service for the length of a `with` block."""
    service = FaultyService(ways)
    thread = threading.Thread(target=service.server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        thread.join()
        service.server.server_close()
