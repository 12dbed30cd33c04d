"""Wires: how a client reaches the service, each by the rules of its published library.

    SocketWire   one WebSocket                              centrifuge-js, both generations
    StreamWire   a response down, requests up               centrifuge-js, the second generation
    SockJSWire   responses one after another, requests up   sockjs-client, both generations

A load balancer chooses a node for each link, so requests of one session come to any node.

What a client does when a request fails:

    StreamWire   down: it connects again. Up: a client that keeps its order connects again unless
                 the frame was taken; centrifuge-js, which sends requests side by side, waits for
                 replies that may not come, and connects again then
    SockJSWire   down: after status 200 it asks for more, otherwise it opens another session.
                 Up: it opens another session
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from tests.simulation.http_server import DONE, HTTP, Head, Request
from tests.simulation.network import End

if TYPE_CHECKING:
    from tests.simulation.clients import SimulatedClient
    from tests.simulation.scenario import Service

SOCKJS = "/connection/sockjs"
TAKEN, UNKNOWN, UNAVAILABLE = 204, 404, 503
"""What the service may answer to a request up."""


class Wire(Protocol):
    """What a client needs of its connection."""

    keeps_order: bool
    """Whether commands arrive in the order in which they were sent."""

    @property
    def end(self) -> End | None:
        """The client's end of the link on which messages come; None between two."""

    def open(self) -> None:
        """Begin to open it; then `client.opened` is called, or `client.lost`."""

    def send(self, data: bytes) -> None:
        """Send a frame."""

    def connected(self, result: dict[str, Any]) -> None:
        """Take the result of connect."""

    def close(self) -> None:
        """End it, with a close frame if there is one."""

    def abort(self) -> None:
        """End it at once."""


class SocketWire:
    """One WebSocket. It is its own receiver."""

    keeps_order = True

    def __init__(self, service: Service, client: SimulatedClient, run: int) -> None:
        self._service = service
        self._client = client
        self._run = run
        self._is_over = False
        self.end: End | None = None

    def open(self) -> None:
        self._service.outside.spawn(self._open())

    async def _open(self) -> None:
        service = self._service
        try:
            end, _ = await service.network.open(service.outside, lambda: self, service.any_node())
        except OSError:
            self._client.lost(self._run, None)
            return
        if self._is_over:
            end.abort()
            return
        self.end = end
        self._client.opened(self._run)

    def send(self, data: bytes) -> None:
        if self.end is not None:
            self.end.write(data)

    def connected(self, result: dict[str, Any]) -> None:
        """There is nothing to learn."""

    def close(self) -> None:
        self._is_over = True
        if self.end is not None:
            self.end.close()

    def abort(self) -> None:
        self._is_over = True
        if self.end is not None:
            self.end.abort()

    # from the network

    def connection_made(self, transport: End) -> None:
        pass

    def data_received(self, data: list[Any]) -> None:
        self._client.receive(self._run, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.lost(self._run, None)


class Exchange:
    """One request, and its response as it comes."""

    def __init__(
        self,
        service: Service,
        request: Request,
        taken: Callable[[bytes], object],
        ended: Callable[[int], object],
    ) -> None:
        """
        Args:
            taken: gets each piece of the body.
            ended: is called once, with the status; 0 if the response is not whole.
        """
        self._service = service
        self._request = request
        self._taken = taken
        self._ended = ended
        self._status = 0
        self._is_over = False
        self.end: End | None = None
        service.outside.spawn(self._open())

    async def _open(self) -> None:
        service = self._service
        place = (*service.any_node(), HTTP)
        try:
            end, _ = await service.network.open(service.outside, lambda: self, place)
        except OSError:
            self._finish(0)
            return
        if self._is_over:
            end.abort()
            return
        self.end = end
        end.write(self._request)

    def abort(self) -> None:
        """Take no more of the response; `ended` is not called."""
        self._is_over = True
        if self.end is not None:
            self.end.abort()

    def _finish(self, status: int) -> None:
        if not self._is_over:
            self._is_over = True
            if self.end is not None:
                self.end.abort()
            self._ended(status)

    # from the network

    def connection_made(self, transport: End) -> None:
        pass

    def data_received(self, data: Sequence[Any]) -> None:
        for item in data:
            if self._is_over:
                return
            if isinstance(item, Head):
                self._status = item.status
            elif item is DONE:
                self._finish(self._status)
            elif self._status == 200:
                self._taken(item)

    def connection_lost(self, error: Exception | None) -> None:
        self._finish(0)


class StreamWire:
    """An HTTP stream, or server-sent events, and requests to /emulation."""

    def __init__(self, service: Service, client: SimulatedClient, run: int, format_: str) -> None:
        """`format_`: "http_stream" or "sse"."""
        self._service = service
        self._client = client
        self._run = run
        self._is_sse = format_ == "sse"
        self.keeps_order = service.world.random.random() < 0.5
        self._down: Exchange | None = None
        self._up: dict[Exchange, None] = {}
        self._waiting: list[bytes] = []
        self._rest = b""
        self._session = self._node = ""

    @property
    def end(self) -> End | None:
        return None if self._down is None else self._down.end

    def open(self) -> None:
        self._client.opened(self._run)  # the first frame is in the request

    def send(self, data: bytes) -> None:
        if self._down is None:
            self._down = Exchange(self._service, self._first(data), self._read, self._ended)
        elif not self.keeps_order:
            self._post(data)
        else:
            self._waiting.append(data)
            self._post_next()

    def _first(self, frame: bytes) -> Request:
        if not self._is_sse:
            return Request("POST", "/connection/http_stream", frame)
        if self.keeps_order:
            return Request("POST", "/connection/sse", frame)
        query = urlencode({"cf_connect": frame.decode()}).encode()
        return Request("GET", "/connection/sse", query=query)

    def connected(self, result: dict[str, Any]) -> None:
        self._session, self._node = result["session"], result["node"]

    # up

    def _post_next(self) -> None:
        if self._waiting and not self._up:
            frames, self._waiting = self._waiting, []
            self._post(b"\n".join(frames))

    def _post(self, frame: bytes) -> None:
        body = {"session": self._session, "node": self._node, "data": frame.decode()}
        request = Request("POST", "/emulation", json.dumps(body).encode())

        def ended(status: int) -> None:
            self._up.pop(exchange, None)
            self._posted(status)

        exchange = Exchange(self._service, request, lambda piece: None, ended)
        self._up[exchange] = None

    def _posted(self, status: int) -> None:
        self._client.check_status(status, (TAKEN, UNKNOWN, UNAVAILABLE))
        if not self.keeps_order:
            return
        if status == TAKEN:
            self._post_next()
        else:
            self._client.lost(self._run, None)

    # down

    def _read(self, piece: bytes) -> None:
        data = self._rest + piece if self._rest else piece
        whole, _, self._rest = data.rpartition(b"\n")
        if self._is_sse:
            whole = whole.replace(b"data: ", b"").replace(b"\n\n", b"\n").strip()
        if whole:
            self._client.receive(self._run, [whole])

    def _ended(self, status: int) -> None:
        self._client.check_status(status, (200, UNAVAILABLE))
        self._client.lost(self._run, None)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        for exchange in self._up:
            exchange.abort()
        self._up.clear()
        if self._down is not None:
            self._down.abort()


@lru_cache(2000)
def _messages(frame: bytes) -> bytes:
    """Return the messages of a SockJS frame, one in a line."""
    texts: list[str] = json.loads(frame[1:])
    return "\n".join(text.rstrip("\n") for text in texts).encode()


class SockJSWire:
    """A session of SockJS over HTTP."""

    keeps_order = True

    def __init__(self, service: Service, client: SimulatedClient, run: int, path: str) -> None:
        """`path`: "xhr" or "xhr_streaming"."""
        self._service = service
        self._client = client
        self._run = run
        self._session = f"{service.world.random.getrandbits(40):x}"
        self._path = path
        self._down: Exchange | None = None
        self._up: Exchange | None = None
        self._waiting: list[str] = []
        self._rest = b""
        self._is_open = False
        self._is_over = False

    @property
    def end(self) -> End | None:
        return None if self._down is None else self._down.end

    def open(self) -> None:
        self._ask()

    def connected(self, result: dict[str, Any]) -> None:
        """There is nothing to learn."""

    # up

    def send(self, data: bytes) -> None:
        self._waiting.append(data.decode())
        self._post_next()

    def _post_next(self) -> None:
        if self._waiting and self._up is None and not self._is_over:
            body = json.dumps(self._waiting).encode()
            self._waiting = []
            path = f"{SOCKJS}/000/{self._session}/xhr_send"
            request = Request("POST", path, body)
            self._up = Exchange(self._service, request, lambda piece: None, self._posted)

    def _posted(self, status: int) -> None:
        self._up = None
        self._client.check_status(status, (TAKEN, UNKNOWN, UNAVAILABLE))
        if status == TAKEN:
            self._post_next()
        else:
            self._lose()

    # down

    def _ask(self) -> None:
        self._rest = b""
        request = Request("POST", f"{SOCKJS}/000/{self._session}/{self._path}")
        self._down = Exchange(self._service, request, self._read, self._answered)

    def _answered(self, status: int) -> None:
        self._client.check_status(status, (200, UNAVAILABLE))
        if status == 200 and not self._is_over:
            self._ask()
        else:
            self._lose()

    def _read(self, piece: bytes) -> None:
        *frames, self._rest = (self._rest + piece).split(b"\n")
        for frame in frames:
            if self._is_over:
                return
            kind = frame[:1]
            if kind == b"a":
                self._client.receive(self._run, [_messages(frame)])
            elif kind == b"o" and not self._is_open:
                self._is_open = True
                self._client.opened(self._run)
            elif kind == b"o":  # "Server lost session", as sockjs-client says
                self._service.judge.lose_session(self._client.name)
                self._lose()
            elif kind == b"c":
                self._client.closed(self._run, *json.loads(frame[1:]))

    def _lose(self) -> None:
        self._client.lost(self._run, None)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._is_over = True
        for exchange in (self._up, self._down):
            if exchange is not None:
                exchange.abort()
