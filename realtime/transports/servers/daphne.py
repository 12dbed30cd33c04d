"""What daphne needs on top of ASGI: close reasons, the backlog of slow clients, a good end.

- daphne drops the `reason` of `websocket.close`; the disconnect advice travels there.
- daphne's `send` never waits and buffers without limit; only its protocol knows how much
  a slow client has not read.
- daphne has no lifespan events; its reactor tells when it stops.

`install` puts a subclass of daphne's WebSocket protocol into daphne's factory. It does so
only when daphne is the server (or loaded by it) and everything it builds on is there;
otherwise plain ASGI is used and `problem` says why, for the system check.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import sys
from typing import Any

from realtime.protocol.frames import Frame, websocket_bytes
from realtime.serving import serving
from realtime.transports.asgi import Send
from realtime.transports.websocket_transport import WebSocketTransport

logger = logging.getLogger("realtime.daphne")

_SERVER = "daphne.server"


def is_loaded() -> bool:
    """Whether daphne runs this process, or may."""
    return _SERVER in sys.modules


def problem() -> str | None:
    """Why the protocol cannot be installed into this version of daphne, None if it can."""
    try:
        protocol = importlib.import_module("daphne.ws_protocol")
    except ImportError as error:
        return f"daphne.ws_protocol cannot be imported: {error}"
    base = getattr(protocol, "WebSocketProtocol", None)
    factory = getattr(protocol, "WebSocketFactory", None)
    if base is None or factory is None or not hasattr(factory, "protocol"):
        return "daphne.ws_protocol has no WebSocketFactory.protocol"
    for name in ("CONFIG_ATTRS", "STATE_OPEN", "_connectionMade", "handle_reply", "sendCloseFrame"):
        if not hasattr(base, name):
            return f"daphne's WebSocketProtocol has no {name}"
    return None


def install() -> bool:
    """Use our protocol for daphne's WebSockets; returns whether that was possible."""
    if not is_loaded() or problem() is not None:
        return False
    factory = importlib.import_module("daphne.ws_protocol").WebSocketFactory
    protocol = importlib.import_module(
        "realtime.transports.servers.daphne_protocol"
    ).AdvisingProtocol
    if not issubclass(factory.protocol, protocol):
        factory.protocol = protocol
        _live_with_reactor()
    return True


def _live_with_reactor() -> None:
    """Start with daphne's reactor, and tell clients to come back later when it begins to stop."""
    reactor: Any = importlib.import_module("twisted.internet.reactor")
    defer = importlib.import_module("twisted.internet.defer")

    def start() -> None:
        # the first request waits for it, tries again and logs if it has to
        asyncio.ensure_future(serving.start()).add_done_callback(_started)

    def stop() -> Any:
        serving.begin_stop()
        return defer.Deferred.fromFuture(asyncio.ensure_future(serving.stop()))

    reactor.callWhenRunning(start)
    reactor.addSystemEventTrigger("before", "shutdown", stop)


def _started(starting: asyncio.Future[Any]) -> None:
    if not starting.cancelled() and (error := starting.exception()) is not None:
        logger.warning("The real-time service did not start with the server: %s", error)


def transport(
    send: Send, receiving: asyncio.Task[Any], size_limit: int | None
) -> DaphneTransport | None:
    """The transport for daphne's own `send`; None for any other, wrapped ones included.

    `size_limit`: of incoming messages, bytes.
    """
    if not isinstance(send, functools.partial) or not send.args:
        return None
    protocol = send.args[0]
    if not hasattr(protocol, "write_frame"):
        return None
    protocol.accept_messages(size_limit)
    return DaphneTransport(send, receiving, protocol)


class DaphneTransport(WebSocketTransport):
    """Writes ready-made frames, and sees what the peer has not read."""

    def __init__(self, send: Send, receiving: asyncio.Task[Any], protocol: Any) -> None:
        super().__init__(send, receiving)
        self._protocol = protocol
        self._write_frame = protocol.write_frame

    def send(self, frame: Frame) -> int:
        backlog: int | None = self._write_frame(frame.form(websocket_bytes))
        if backlog is not None:
            return backlog
        if self._protocol.takes_frames():
            return super().send(frame)
        return 0  # closing, or gone: the receive loop learns that from daphne
