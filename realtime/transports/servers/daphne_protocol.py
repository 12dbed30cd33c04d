"""daphne's WebSocket protocol with close reasons, cheap frames and a visible backlog.

Imported by `transports.daphne` only when daphne is there.

Most of what a frame costs in daphne and Twisted goes into log texts nobody reads and into
asking the selector twice. An idle socket takes a ready-made frame at once,
and anything else goes into the transport's own buffer.
"""

from __future__ import annotations

from typing import Any, ClassVar

from autobahn.util import encode_truncate
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.tcp import Server

from realtime.errors import CLOSE_REASON_MAX_BYTES
from realtime.protocol.frames import Frame, websocket_bytes

NORMAL_CLOSURE = 1000
PING_FRAME = 0x89

_TRANSPORT_ATTRIBUTES = (
    "_tempDataBuffer",
    "_tempDataLen",
    "connected",
    "dataBuffer",
    "disconnecting",
    "offset",
    "socket",
)
_PROTOCOL_ATTRIBUTES = ("SEND_STATE_GROUND", "maskServerFrames", "send_queue", "send_state")


class AdvisingProtocol(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """Serves every WebSocket of the site; what applications see is daphne's behaviour."""

    # autobahn copies the factory's options onto every connection and formats a log text of
    # them that nobody reads, a fifth of a handshake. Here the class has them.
    CONFIG_ATTRS = ()
    _configured_by: ClassVar[object] = None

    maxMessagePayloadSize: int  # noqa: N815 - autobahn's names
    maxFramePayloadSize: int  # noqa: N815 - autobahn's names
    _writes_frames = False
    _writes_to_socket = False

    def _connectionMade(self) -> None:  # noqa: N802 - autobahn's name
        if AdvisingProtocol._configured_by is None:
            AdvisingProtocol._configured_by = self.factory
            for name in WebSocketProtocol.CONFIG_ATTRS:
                value = getattr(self.factory, name)
                # a function must not become a method
                setattr(AdvisingProtocol, name, staticmethod(value) if callable(value) else value)
        elif AdvisingProtocol._configured_by is not self.factory:
            for name in WebSocketProtocol.CONFIG_ATTRS:
                setattr(self, name, getattr(self.factory, name))
        super()._connectionMade()
        transport = self.transport
        self._writes_frames = (
            all(hasattr(self, name) for name in _PROTOCOL_ATTRIBUTES) and not self.maskServerFrames
        )
        self._writes_to_socket = (
            type(transport) is Server
            and not getattr(transport, "TLS", False)
            and all(hasattr(transport, name) for name in _TRANSPORT_ATTRIBUTES)
        )

    # what the application sends

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Do what the application sent, as daphne does; but frames are of any size, and a close
        has its reason."""
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
        """Write one ready-made frame; returns the bytes that have not left for the peer.

        None: this is no moment for it (the closing handshake is under way, a message is
        being streamed), nothing was written.

        With nothing buffered the socket itself is tried first; what it does not take, and
        whatever comes while something is buffered, goes into the transport's own buffer,
        behind what is there. So the order of frames, control frames included, is that of
        the calls.
        """
        if (
            self.state != self.STATE_OPEN
            or not self._writes_frames
            or self.send_queue
            or self.send_state != self.SEND_STATE_GROUND
        ):
            return None
        transport = self.transport
        if (
            self._writes_to_socket
            and not transport.dataBuffer
            and not transport._tempDataBuffer
            and transport.connected
            and not transport.disconnecting
        ):
            try:
                sent = transport.socket.send(frame)
            except OSError:
                sent = 0  # full, or broken: the reactor will find out which
            if sent == len(frame):
                return 0
            frame = frame[sent:]
        transport.write(frame)
        return self.backlog_bytes()

    def backlog_bytes(self) -> int:
        """Bytes written to this connection that have not left for the peer; 0 if unknown."""
        transport = self.transport
        try:
            # under TLS these are the wrapped connection's
            pending = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        except AttributeError:
            return 0
        return int(pending + sum(map(len, getattr(transport, "_appSendBuffer", ()))))

    def takes_frames(self) -> bool:
        """Whether frames may still be sent."""
        return bool(self.state == self.STATE_OPEN)

    def sendPing(self, payload: bytes | None = None) -> None:  # noqa: N802 - autobahn's name
        """As autobahn, as cheaply as any other frame: idle clients cost little but this."""
        data = payload or b""
        if self.write_frame(bytes((PING_FRAME, len(data))) + data) is None:
            super().sendPing(payload)

    # what the peer sends

    def accept_messages(self, size_limit: int | None) -> None:
        """Accept messages of this size at least, whatever daphne's own limit; None: of any."""
        own: int = self.maxMessagePayloadSize
        if own and (size_limit is None or own <= size_limit):
            # one more, so that the application sees what is too large and says so
            limit = 0 if size_limit is None else size_limit + 1
            self.maxMessagePayloadSize = self.maxFramePayloadSize = limit

    def sendCloseFrame(  # noqa: N802 - autobahn's name
        self,
        code: int | None = None,
        reasonUtf8: bytes | None = None,  # noqa: N803 - autobahn's name
        isReply: bool = False,  # noqa: N803 - autobahn's name
    ) -> None:
        """As autobahn, but a peer's close is answered with its own code (RFC 6455, 5.5.1)."""
        if isReply and self.remoteCloseCode is not None:
            super().sendCloseFrame(self.remoteCloseCode, None, isReply)
        else:
            super().sendCloseFrame(code, reasonUtf8, isReply)
