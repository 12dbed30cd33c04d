"""daphne's WebSockets, opened and read without the detours of Twisted and autobahn.

Imported by `servers.daphne` only if daphne is loaded.

Twisted reads a handshake line by line into a request. daphne writes it out again for autobahn,
which reads it once more. Where a handshake for one of our own paths has its usual form (`plain`),
it is read once, and daphne's own `onConnect` gets it. A message in one frame goes to the
application at once. Any other handshake or frame is read by Twisted and autobahn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from autobahn.websocket.types import ConnectionDeny
from daphne.ws_protocol import WebSocketProtocol

from realtime.transports.servers.daphne_channel import has_plain_socket
from realtime.transports.servers.daphne_request import ROOT_PATH
from realtime.transports.servers.plain import HEAD_MAX_BYTES, PlainHandshake, plain_messages

WEBSOCKET_VERSION = 13
"""That of all plain handshakes."""
MESSAGE_MAX_BYTES = 64 * 1024
"""Larger messages are not plain where there is no other limit."""

_NEEDED_TO_OPEN = ("failHandshake", "onConnect", "succeedHandshake")
_NEEDED_TO_READ = (
    *("application_queue", "autoPingTimeoutCall", "current_frame", "data", "failedByMe"),
    *("inside_message", "last_ping", "muted"),
)
_NEEDED_OF_RESPONSE = {"_wskey", "websocket_extensions", "websocket_protocols"}
"""What autobahn has to read of us for its response."""
_NEEDED_OF_FACTORY = ("allowedOrigins", "buildProtocol", "externalPort", "maxConnections")


class PlainRequest(NamedTuple):
    """What daphne's `onConnect` reads of autobahn's request."""

    path: str
    headers: dict[str, str]


class PlainSocket(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """A WebSocket of daphne's, with a plain handshake or not, and with plain messages."""

    data: bytes
    maxMessagePayloadSize: int  # noqa: N815 - autobahn's name
    _waits_for_accept = False
    """Whether the handshake was plain, and has no response."""
    _reads_messages = False
    """Whether autobahn has everything that is needed to read plain messages."""

    def open(self, handshake: PlainHandshake, transport: Any) -> None:
        """Run the application for a plain handshake, as daphne does for any."""
        self.connected = 1
        self.transport = transport
        peer = transport.getPeer()
        self.peer = f"tcp:{peer.host}:{peer.port}"  # for logs
        self._waits_for_accept = True
        self._connectionMade()
        self._raw_query_string = handshake.query
        self._wskey = handshake.headers[b"sec-websocket-key"].decode()
        self.websocket_version = WEBSOCKET_VERSION
        self.websocket_protocols = handshake.subprotocols
        self.websocket_extensions: list[Any] = []  # daphne has none
        headers = {name.decode(): value.decode() for name, value in handshake.headers.items()}
        opening = self.onConnect(PlainRequest(handshake.path, headers))
        opening.addCallbacks(self.succeedHandshake, self._refuse)

    def _refuse(self, failure: Any) -> None:
        denied = failure.check(ConnectionDeny) is not None
        reason = failure.value.reason if denied else "Internal server error"
        self.failHandshake(reason, failure.value.code if denied else 500)

    def onOpen(self) -> None:  # noqa: N802 - autobahn's name
        """Begin to read messages."""
        super().onOpen()
        self._waits_for_accept = False
        self._reads_messages = all(hasattr(self, name) for name in _NEEDED_TO_READ)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take bytes as autobahn does, but read plain messages at once."""
        if self._waits_for_accept:
            # autobahn would look for another handshake
            self.data += data
            if len(self.data) > HEAD_MAX_BYTES:
                self.transport.abortConnection()
        elif not self._reads_messages or (messages := self._messages(data)) is None:
            super().dataReceived(data)
        else:
            self.last_ping = time.time()
            for message in messages:
                kind = "text" if isinstance(message, str) else "bytes"
                self.application_queue.put_nowait({"type": "websocket.receive", kind: message})

    def _messages(self, data: bytes) -> list[str | bytes] | None:
        """Return the messages that these bytes are; None if autobahn has to read them."""
        if (
            self.state != self.STATE_OPEN
            or self.data
            or self.current_frame is not None
            or self.inside_message
            or self.failedByMe
            or self.muted
            or self.autoPingTimeoutCall is not None  # any message cancels it
        ):
            return None
        return plain_messages(data, self.maxMessagePayloadSize or MESSAGE_MAX_BYTES)


def opener(takes: Callable[[str], bool]) -> Callable[[Any, PlainHandshake], bool]:
    """Return a function that opens a WebSocket for a plain handshake.

    Args:
        takes: return whether a path is one of our WebSockets.

    Returns:
        From Twisted's HTTP channel and the handshake: whether it was opened. If not, nothing
        happened, and Twisted has to read the handshake.
    """

    def open_socket(channel: Any, handshake: PlainHandshake) -> bool:
        transport: Any = channel.transport
        server = channel.factory.server
        factory: Any = getattr(server, "ws_factory", None)
        if (
            not takes(handshake.path)
            or ROOT_PATH in handshake.headers
            or getattr(server, "root_path", None) != ""
            or not has_plain_socket(transport)
            or not all(hasattr(factory, name) for name in _NEEDED_OF_FACTORY)
            or factory.allowedOrigins != ["*"]
            or factory.externalPort
            or factory.maxConnections
        ):
            return False
        socket = factory.buildProtocol(transport.getPeer())
        if not isinstance(socket, PlainSocket) or not all(
            hasattr(socket, name) for name in _NEEDED_TO_OPEN
        ):
            return False
        code = getattr(socket.succeedHandshake, "__code__", None)
        if code is None or not _NEEDED_OF_RESPONSE.issubset(code.co_names):
            return False
        channel.setTimeout(None)
        transport.unregisterProducer()  # the channel, which ends here
        transport.protocol = socket
        socket.open(handshake, transport)
        return True

    return open_socket
