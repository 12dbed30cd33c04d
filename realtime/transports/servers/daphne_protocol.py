"""daphne's WebSocket protocol with close reasons, cheap frames and a visible backlog.

Imported by `servers.daphne` only if daphne is loaded.

Most of the cost of a frame in daphne and Twisted is formatting log texts that are dropped and
asking the selector twice. Here an idle socket is written to at once; any other frame goes into the
transport's own buffer.
"""

from __future__ import annotations

from typing import Any

from autobahn.util import encode_truncate

from realtime.errors import CLOSE_REASON_MAX_BYTES
from realtime.protocol.frames import Frame, websocket_bytes
from realtime.transports.sending import CLOSE_TIMEOUT
from realtime.transports.servers.daphne_channel import (
    backlog_of,
    has_plain_socket,
    write_to_socket,
)
from realtime.transports.servers.daphne_plain import PlainSocket

NORMAL_CLOSURE = 1000
PING_FRAME = 0x89

_PROTOCOL_ATTRIBUTES = ("SEND_STATE_GROUND", "maskServerFrames", "send_queue", "send_state")


class AdvisingProtocol(PlainSocket):
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
