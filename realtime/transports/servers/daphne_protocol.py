"""daphne's WebSockets with close reasons, cheap frames and a visible backlog.

Imported by `servers.daphne` only if daphne is loaded.

Most of the cost of a frame in daphne and Twisted is formatting log texts that are dropped and
asking the selector twice. Here an idle socket is written to at once; any other frame goes into the
transport's own buffer.

Twisted reads a handshake line by line into a request. daphne writes it out again for autobahn,
which reads it once more. Where a handshake for one of our own paths has its usual form (`plain`),
it is read once, and daphne's own `onConnect` gets it. A message in one frame goes to the
application at once. Any other handshake or frame is read by Twisted and autobahn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from autobahn.util import encode_truncate
from autobahn.websocket.types import ConnectionDeny
from daphne.ws_protocol import WebSocketProtocol

from realtime.errors import CLOSE_REASON_MAX_BYTES
from realtime.protocol.frames import Frame, websocket_bytes
from realtime.transports.asgi import Event, Send
from realtime.transports.sending import CLOSE_TIMEOUT, WebSocketTransport
from realtime.transports.servers.daphne_channel import (
    backlog_of,
    has_plain_socket,
    write_to_socket,
)
from realtime.transports.servers.daphne_request import ROOT_PATH
from realtime.transports.servers.plain import HEAD_MAX_BYTES, PlainHandshake, plain_events

NORMAL_CLOSURE = 1000
PING_FRAME = 0x89

_PROTOCOL_ATTRIBUTES = ("SEND_STATE_GROUND", "maskServerFrames", "send_queue", "send_state")
WEBSOCKET_VERSION = 13
"""That of all plain handshakes."""

_NEEDED_TO_OPEN = ("failHandshake", "onConnect", "succeedHandshake")
_NEEDED_TO_READ = (
    *("application_queue", "autoPingTimeoutCall", "current_frame", "data", "failedByMe"),
    *("inside_message", "last_ping", "muted"),
)
_NEEDED_OF_RESPONSE = {"_wskey", "websocket_extensions", "websocket_protocols"}
"""What autobahn has to read of us for its response."""
_NEEDED_OF_FACTORY = ("allowedOrigins", "buildProtocol", "externalPort", "maxConnections")


class HandshakeRequest(NamedTuple):
    """What daphne's `onConnect` reads of autobahn's request."""

    path: str
    headers: dict[str, str]


class AdvisingProtocol(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """Serves every WebSocket of the site. For applications it behaves like daphne's own.

    Connections are made of a subclass, see `ProtocolOfFactory`.
    """

    maxMessagePayloadSize: int  # noqa: N815 - autobahn's names
    maxFramePayloadSize: int  # noqa: N815 - autobahn's names
    message_data: list[bytes]
    _too_large: dict[str, Any] | None = None
    _refusal: tuple[int, str, list[tuple[str, str]]] | None = None
    _writes_frames = False
    _writes_to_socket = False
    data: bytes
    _waits_for_accept = False
    """Whether the handshake was plain, and has no response."""
    _reads_messages = False
    """Whether autobahn has everything that is needed to read plain messages."""

    def _connectionMade(self) -> None:  # noqa: N802 - autobahn's name
        super()._connectionMade()
        self._writes_frames = (
            all(hasattr(self, name) for name in _PROTOCOL_ATTRIBUTES) and not self.maskServerFrames
        )
        self._writes_to_socket = has_plain_socket(self.transport)

    def connectionLost(self, *reason: Any) -> None:  # noqa: N802 - autobahn's name
        """End the connection as autobahn does, and leave nothing to the garbage collector."""
        try:
            super().connectionLost(*reason)
        finally:  # daphne fails if there was no handshake
            self.is_closed.addCallback(_forget)  # it holds the protocol, which holds it

    # a plain handshake

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
        opening = self.onConnect(HandshakeRequest(handshake.path, headers))
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

    # from the application

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Run an event of the application as daphne does, but send the reason of a close."""
        if self.state != self.STATE_OPEN:
            super().handle_reply(message)
        elif message["type"] == "websocket.close":
            # not sendClose: that refuses codes such as 1009
            reason = encode_truncate(message.get("reason") or "", CLOSE_REASON_MAX_BYTES)
            self.sendCloseFrame(
                code=message.get("code") or NORMAL_CLOSURE, reasonUtf8=reason or None
            )
        elif message["type"] != "websocket.send" or self._write(message) is None:
            super().handle_reply(message)

    def _write(self, message: dict[str, Any]) -> int | None:
        match message:
            case {"text": str(text)} if message.get("bytes") is None:
                return self.write_frame(websocket_bytes(Frame(text.encode(), binary=False)))
            case {"bytes": bytes(data)} if message.get("text") is None:
                return self.write_frame(websocket_bytes(Frame(data, binary=True)))
        return None

    def write_frame(self, frame: bytes) -> int | None:
        """Write one encoded frame.

        If nothing is buffered, the socket is tried first. Bytes that it does not take go into the
        transport's own buffer, and so does every frame while something is buffered. So frames,
        control frames included, leave in the order of the calls.

        Returns:
            Bytes that have not left for the peer. None if nothing was written because of the
            connection's state: it is closing, or a message is being streamed.
        """
        if (
            self.state != self.STATE_OPEN
            or not self._writes_frames
            or self.send_queue
            or self.send_state != self.SEND_STATE_GROUND
        ):
            return None
        rest = self._write_to_socket(frame)
        if not rest:
            return 0
        self.transport.write(rest)
        return self.backlog_bytes()

    def _write_to_socket(self, data: bytes) -> bytes:
        """Try to write to an idle socket. Return what is left for the transport's buffer."""
        return write_to_socket(self.transport, data) if self._writes_to_socket else data

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:  # noqa: N802 - autobahn's name
        """Send bytes as autobahn does, but try an idle socket first."""
        if not (sync or chopsize or self.send_queue):
            data = self._write_to_socket(data)
            if not data:
                return
        super().sendData(data, sync, chopsize)

    def transport_for(self, send: Send, receiving: asyncio.Task[Any]) -> DaphneTransport:
        """Return the transport of the client. `send`: daphne's own."""
        return DaphneTransport(send, receiving, self)

    def refuse_with(self, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        """Set what the peer gets if the application rejects the handshake; daphne sends 403."""
        self._refusal = status, reason, headers

    def failHandshake(  # noqa: N802 - autobahn's name
        self,
        reason: str,
        code: int = 400,
        responseHeaders: Any = None,  # noqa: N803 - autobahn's name
    ) -> None:
        """Refuse a handshake as autobahn does, or as the application wants it."""
        if self._refusal is not None:
            code, reason, responseHeaders = self._refusal  # noqa: N806 - autobahn's name
        super().failHandshake(reason, code, responseHeaders)

    def backlog_bytes(self) -> int:
        """Return bytes written to this connection that have not left for it; 0 if unknown."""
        return backlog_of(self.transport)

    def takes_frames(self) -> bool:
        """Return whether frames may still be sent."""
        return bool(self.state == self.STATE_OPEN)

    def sendPing(self, payload: bytes | None = None) -> None:  # noqa: N802 - autobahn's name
        """Send a PING as cheaply as any other frame: it is most of what an idle client costs."""
        data = payload or b""
        if self.write_frame(bytes((PING_FRAME, len(data))) + data) is None:
            super().sendPing(payload)

    # from the peer

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take bytes as autobahn does, but read plain messages at once."""
        if self._waits_for_accept:
            # autobahn would look for another handshake
            self.data += data
            if len(self.data) > HEAD_MAX_BYTES:
                self.transport.abortConnection()
        elif not self._reads_messages or (events := self._plain_events(data)) is None:
            super().dataReceived(data)
        else:
            self.last_ping = time.time()
            for event in events:
                self.application_queue.put_nowait(event)

    def _plain_events(self, data: bytes) -> list[Event] | None:
        """Return the events of these bytes; None if autobahn has to read them."""
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
        return plain_events(data, self.maxMessagePayloadSize)

    def limit_messages(self, size_limit: int | None, too_large: dict[str, Any]) -> None:
        """Limit the incoming messages, in place of daphne's own limit.

        A larger one is refused as soon as its length is announced, and nothing of it is kept.

        Args:
            size_limit: bytes; None for no limit.
            too_large: the event that the application gets instead of a larger message.
        """
        self.maxMessagePayloadSize = self.maxFramePayloadSize = size_limit or 0
        self._too_large = too_large

    def _max_message_size_exceeded(self, size: int, limit: int, reason: str) -> None:
        """Refuse a message whose length was announced. autobahn would close without our advice."""
        if self._too_large is None:
            super()._max_message_size_exceeded(size, limit, reason)
            return
        self.failedByMe = True  # autobahn drops what follows
        self.message_data.clear()
        self.application_queue.put_nowait(self._too_large)

    def sendMessage(self, *args: Any, **options: Any) -> None:  # noqa: N802 - autobahn's name
        """Send a message of any size: autobahn applies the limit for incoming ones to it."""
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().sendMessage(*args, **options)
        finally:
            self.maxMessagePayloadSize = limit

    def sendCloseFrame(  # noqa: N802 - autobahn's name
        self,
        code: int | None = None,
        reasonUtf8: bytes | None = None,  # noqa: N803 - autobahn's name
        isReply: bool = False,  # noqa: N803 - autobahn's name
    ) -> None:
        """Send a close frame, but answer the peer's with its own code (RFC 6455, 5.5.1)."""
        if isReply and self.remoteCloseCode is not None:
            super().sendCloseFrame(self.remoteCloseCode, None, isReply)
        else:
            super().sendCloseFrame(code, reasonUtf8, isReply)


class DaphneTransport(WebSocketTransport):
    """Writes encoded frames, and knows how much the peer has not read."""

    def __init__(
        self, send: Send, receiving: asyncio.Task[Any], protocol: AdvisingProtocol
    ) -> None:
        super().__init__(send, receiving)
        self._protocol = protocol
        self._write_frame = protocol.write_frame

    @property
    def backlog(self) -> int:
        return super().backlog + int(self._protocol.backlog_bytes())

    def send(self, frame: Frame) -> int:
        backlog: int | None = self._write_frame(frame.form(websocket_bytes))
        if backlog is not None:
            return backlog
        if self._protocol.takes_frames():
            return super().send(frame)
        return 0  # closing or lost: daphne tells the receive loop


def _forget(result: object) -> None:
    """Replace the result of a Deferred by None."""


class ProtocolOfFactory:
    """The attribute `protocol` of daphne's factories: a class with the options of the factory.

    autobahn copies the options of a factory onto each of its connections and formats a log text of
    them that is dropped, together a fifth of a handshake. Options that the class has are not
    copied.
    """

    def __get__(self, factory: Any, owner: type[object]) -> type[AdvisingProtocol]:
        if factory is None:
            return AdvisingProtocol
        options: dict[str, Any] = {"CONFIG_ATTRS": ()}
        for name in AdvisingProtocol.CONFIG_ATTRS:
            value = getattr(factory, name)
            # a function must not become a method
            options[name] = staticmethod(value) if callable(value) else value
        # autobahn gives a peer one second, which a slow network or one lost packet exceeds
        options["closeHandshakeTimeout"] = CLOSE_TIMEOUT
        protocol = type("AdvisingProtocol", (AdvisingProtocol,), options)
        vars(factory)["protocol"] = protocol  # found before this descriptor from now on
        return protocol


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
        if not isinstance(socket, AdvisingProtocol) or not all(
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
