"""daphne's WebSocket protocol with close reasons and a visible backlog.

Imported by `transports.daphne` only when daphne is there.
"""

from __future__ import annotations

from typing import Any, ClassVar

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.tcp import Server

from realtime.errors import CLOSE_REASON_MAX_BYTES

NORMAL_CLOSURE = 1000

_TRANSPORT_ATTRIBUTES = (
    "_tempDataBuffer",
    "_tempDataLen",
    "connected",
    "dataBuffer",
    "disconnecting",
    "offset",
    "socket",
    "write",
)
_PROTOCOL_ATTRIBUTES = (
    "SEND_STATE_GROUND",
    "_perMessageCompress",
    "maskServerFrames",
    "send_queue",
    "send_state",
)


class AdvisingProtocol(WebSocketProtocol):  # type: ignore[misc]
    """Serves every WebSocket of the site; differs from daphne's own in closing only."""

    # autobahn copies the factory's options onto every connection and formats a log text of
    # them that nobody reads, a fifth of a handshake. Here the class has them.
    CONFIG_ATTRS = ()
    _configured_by: ClassVar[object] = None

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

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Do what the application sent, as daphne does, but close with the reason given."""
        if message.get("type") == "websocket.close" and self.state == self.STATE_OPEN:
            # not sendClose: that refuses codes such as 1009
            reason = (message.get("reason") or "").encode()[:CLOSE_REASON_MAX_BYTES]
            self.sendCloseFrame(
                code=message.get("code") or NORMAL_CLOSURE, reasonUtf8=reason or None
            )
        else:
            super().handle_reply(message)

    def can_write_frames(self) -> bool:
        """Whether `write_frame` may be tried: plain TCP, plain frames, nothing unknown."""
        transport = self.transport
        return (
            type(transport) is Server
            and not getattr(transport, "TLS", False)
            and all(hasattr(transport, name) for name in _TRANSPORT_ATTRIBUTES)
            and all(hasattr(self, name) for name in _PROTOCOL_ATTRIBUTES)
            and self._perMessageCompress is None
            and not self.maskServerFrames
        )

    def write_frame(self, frame: bytes) -> int | None:
        """Write one ready-made frame; returns the bytes that have not left for the peer.

        None: this is no moment for it (the closing handshake is under way, a message is
        being streamed), nothing was written, use `send`.

        With nothing buffered the socket itself is tried first; what it does not take, and
        whatever comes while something is buffered, goes into the transport's own buffer,
        behind what is there. So the order of frames, control frames included, is that of
        the calls.
        """
        if (
            self.state != self.STATE_OPEN
            or self.send_queue
            or self.send_state != self.SEND_STATE_GROUND
        ):
            return None
        transport = self.transport
        if not transport.dataBuffer and not transport._tempDataBuffer:
            if transport.disconnecting or not transport.connected:
                return None
            try:
                sent = transport.socket.send(frame)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return None  # the reactor will notice, and tell the application
            if sent == len(frame):
                return 0
            frame = frame[sent:]
        transport.write(frame)
        return len(transport.dataBuffer) - transport.offset + transport._tempDataLen  # type: ignore[no-any-return]
