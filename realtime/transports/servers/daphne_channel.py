"""daphne's HTTP connections: heads have to come in time, and plain ones are read at once.

Imported by `servers.daphne` only if daphne is loaded. Twisted's time-out is one of silence: a peer
that sends a byte of a head now and then keeps its connection for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from twisted.internet.tcp import Server
from twisted.protocols.basic import LineReceiver
from twisted.web import http

from realtime.transports.handshake import HEAD_TIMEOUT
from realtime.transports.servers.plain import (
    PlainHandshake,
    PlainPost,
    plain_handshake,
    plain_post,
)

_receive_lines: Any = LineReceiver.dataReceived
_Channel: Any = http.HTTPChannel  # it has no types


class TimedChannel(_Channel):  # type: ignore[misc]
    """One HTTP connection. Twisted's time-out holds between requests and during bodies."""

    timeOut: float | None  # noqa: N815 - Twisted's name
    opens: Callable[[Any, PlainHandshake], bool] = staticmethod(lambda channel, handshake: False)
    """Opens a WebSocket for a plain handshake; see `daphne_protocol.opener`."""
    answers: Callable[[Any, PlainPost], bool] = staticmethod(lambda channel, post: False)
    """Runs the application for a plain request; see `daphne_api.answerer`."""
    requests: list[Any]
    without_head: ClassVar[set[TimedChannel]] = set()
    """Those whose next head has to come."""
    _is_new = True
    """Whether nothing has come."""
    _receives_head = False
    idle_timeout: float | None = None
    """Twisted's time-out between requests, seconds."""

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """Begin to wait for the first head."""
        self.idle_timeout = self.timeOut
        self.timeOut = None
        super().connectionMade()
        self.timeOut = self.idle_timeout
        self._begin_head()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take bytes as Twisted does, but let the time-out of a head run on."""
        if self._is_new:
            self._is_new = False
            handshake = plain_handshake(data)
            self._end_head()
            if handshake is not None and self.opens(self, handshake):
                return
        if (
            not self._receives_head
            and self.line_mode
            and (post := plain_post(data)) is not None
            and self.answers(self, post)
        ):
            return
        if not self.line_mode:
            self.resetTimeout()
        elif not self._receives_head:
            self._begin_head()
        _receive_lines(self, data)

    def allHeadersReceived(self) -> None:  # noqa: N802 - Twisted's name
        """End the head: Twisted's own time-out holds again."""
        self._end_head()
        self.setTimeout(self.idle_timeout)
        super().allHeadersReceived()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - Twisted's name
        """End the connection as Twisted does, and leave nothing to the garbage collector."""
        super().connectionLost(reason)
        self._end_head()
        self._transferDecoder = None  # of a body that did not end: it holds the channel

    def _end_head(self) -> None:
        self._receives_head = False
        self.without_head.discard(self)

    def _begin_head(self) -> None:
        self._receives_head = True
        self.without_head.add(self)
        # Twisted searches all timers for one that is to end sooner, and none for a new one
        self.setTimeout(None)
        self.setTimeout(HEAD_TIMEOUT)


def backlog_of(transport: Any) -> int:
    """Return bytes written to a transport of Twisted that have not left; 0 if unknown."""
    try:
        # under TLS these attributes are those of the wrapped connection
        pending = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
    except AttributeError:
        return 0
    return int(pending + sum(map(len, getattr(transport, "_appSendBuffer", ()))))


_ATTRIBUTES = (
    *("_tempDataBuffer", "_tempDataLen", "connected", "dataBuffer", "disconnecting", "offset"),
    "socket",
)


def has_plain_socket(transport: Any) -> bool:
    """Return whether `write_to_socket` may be used for a transport of Twisted."""
    return (
        type(transport) is Server
        and not getattr(transport, "TLS", False)
        and all(hasattr(transport, name) for name in _ATTRIBUTES)
    )


def write_to_socket(transport: Any, data: bytes) -> bytes:
    """Try to write to an idle socket. Return what is left for the transport's buffer."""
    if (
        not transport.dataBuffer
        and not transport._tempDataBuffer
        and transport.connected
        and not transport.disconnecting
    ):
        try:
            return data[transport.socket.send(data) :]
        except OSError:
            pass  # full or broken: the reactor finds out which
    return data


def make_channel(factory: Any) -> Any:
    """Return a connection for a factory of Twisted; in place of `HTTPFactory.protocol`."""
    return http._GenericHTTPChannelProtocol(TimedChannel())


def fits() -> bool:
    """Return whether the installed Twisted has everything that this needs."""
    names = ("allHeadersReceived", "connectionMade", "resetTimeout", "setTimeout", "timeOut")
    return all(hasattr(http.HTTPChannel, name) for name in names) and hasattr(
        http, "_GenericHTTPChannelProtocol"
    )
