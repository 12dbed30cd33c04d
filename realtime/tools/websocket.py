"""A WebSocket connection to a running service, for the doctor.

The protocol is that of the package websockets. Its connections are not used: they follow
redirects, with a token in the first message, and the proxies of the environment. Each wait has
a deadline and each message a limit, so a server that sends too slowly or too much is given up.

docs/protocol.md, 2.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import httpx

from realtime.tools.remote import Remote, RemoteResponse, Unreachable

try:
    from websockets.client import ClientProtocol
    from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidURI, PayloadTooBig
    from websockets.frames import Close, Frame, Opcode
    from websockets.http11 import Response as HandshakeResponse
    from websockets.protocol import Event, State
    from websockets.uri import parse_uri
except ImportError:  # the extra `doctor` is not installed
    INSTALLED = False
else:
    INSTALLED = True

NO_CLOSE_FRAME = 1006
MAX_MESSAGE = 1 << 20
"""Bytes; the service answers the doctor with far less."""


class Closed(NamedTuple):
    """The server closed the connection, with or without a close frame."""

    code: int
    reason: str


class WebSocket:
    """A connection. Its methods raise OSError when it breaks or the server is too slow."""

    def __init__(self, connection: socket.socket, protocol: ClientProtocol, timeout: float) -> None:
        """
        Args:
            connection: to the server, with TLS if it needs any.
            protocol: for the URL of the endpoint.
            timeout: seconds to wait for each answer.
        """
        self._connection = connection
        self._protocol = protocol
        self._timeout = timeout
        self._events: deque[Event] = deque()

    def shake_hands(self, origin: str, cookie: str) -> HandshakeResponse:
        """Ask for a WebSocket and return the answer; the connection is open if it is a 101.

        Args:
            origin: of the page; "" for no browser.
            cookie: the header Cookie; "" for none.

        Raises:
            ConnectionError: there is no answer, or it is not one to a handshake.
        """
        request = self._protocol.connect()
        if origin:
            request.headers["Origin"] = origin
        if cookie:
            request.headers["Cookie"] = cookie
        self._protocol.send_request(request)
        self._flush()
        answer = self._next_event(time.monotonic() + self._timeout)
        match self._protocol.handshake_exc:
            case None | InvalidStatus():
                assert isinstance(answer, HandshakeResponse)
                return answer
            case InvalidMessage(__cause__=EOFError()):
                raise ConnectionResetError
            case InvalidMessage():
                raise ConnectionError("what answers does not speak HTTP")
            case _:
                raise ConnectionError("the answer to the WebSocket handshake is a wrong one")

    def send(self, text: str) -> None:
        """Send a text message."""
        self._protocol.send_text(text.encode())
        self._flush()

    def receive(self) -> str | Closed:
        """Return the next message, or how the server closed the connection."""
        deadline = time.monotonic() + self._timeout
        message = bytearray()
        while (event := self._next_event(deadline)) is not None:
            assert isinstance(event, Frame)
            if event.opcode is Opcode.CLOSE:
                close = Close.parse(event.data)
                return Closed(close.code, close.reason)
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                message += event.data
                if event.fin:
                    return message.decode("utf-8", "replace")
        return Closed(NO_CLOSE_FRAME, "")

    def _next_event(self, deadline: float) -> Event | None:
        """Return the next frame, or answer to the handshake; None at the end.

        Raises:
            TimeoutError: the deadline has passed.
            ConnectionError: the server broke the rules of the protocol.
        """
        while not self._events:
            if self._has_ended():
                return None
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._connection.settimeout(remaining)
            if data := self._connection.recv(65536):
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._events += self._protocol.events_received()
            with suppress(OSError):  # the server need not wait for pongs and our close frame
                self._flush()
        return self._events.popleft()

    def _has_ended(self) -> bool:
        match self._protocol.parser_exc:
            case None:
                is_closed = self._protocol.state is State.CLOSED
                return is_closed or self._protocol.handshake_exc is not None
            case EOFError():
                return True
            case PayloadTooBig():
                raise ConnectionError(f"it sends a message of more than {MAX_MESSAGE} bytes")
            case error:
                raise ConnectionError(f"what answers does not speak WebSocket ({error})")

    def _flush(self) -> None:
        self._connection.settimeout(self._timeout)
        for data in self._protocol.data_to_send():
            if data:  # b"" stands for the end, which is when the socket is closed
                self._connection.sendall(data)


@contextmanager
def open_websocket(
    remote: Remote, path: str, origin: str = "", cookie: str = ""
) -> Iterator[tuple[RemoteResponse, WebSocket | None]]:
    """Ask for a WebSocket; the connection is there if the answer is a 101.

    Args:
        remote: the service.
        path: of its endpoint.
        origin: of the page that a browser would connect from; "" for no browser.
        cookie: the header Cookie; "" for none.

    Raises:
        Unreachable: there is no answer, or something breaks inside of the `with` block.
    """
    with remote.reached():
        began = time.monotonic()
        try:
            uri = parse_uri(remote.url(path).replace("http", "ws", 1))
        except InvalidURI:
            raise Unreachable(f"{remote}: {path} is not the path of a WebSocket") from None
        with remote.connect() as connection:
            protocol = ClientProtocol(uri, max_size=MAX_MESSAGE)
            websocket = WebSocket(connection, protocol, remote.timeout)
            answer = websocket.shake_hands(origin, cookie)
            headers = httpx.Headers(list(answer.headers.raw_items()))
            seconds = time.monotonic() - began
            response = RemoteResponse(answer.status_code, headers, b"", seconds)
            yield response, websocket if response.status == 101 else None
