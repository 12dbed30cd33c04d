"""What daphne needs beyond ASGI: close reasons, the backlog of slow clients, an orderly stop, and
requests that decide less.

- daphne drops the `reason` of `websocket.close`, which carries the disconnect advice.
- daphne's `send` never waits and buffers without limit. Only its protocol knows how much a slow
  client has not read.
- daphne has no lifespan events. Its reactor has an event for its end.
- daphne takes in the whole body of any request, and lets clients name the path at which the site is
  mounted.
- daphne offers HTTP/2 where TLS ends at it and the package h2 is there. Twisted has other requests
  for it, to which none of this applies, and WebSockets do not work over it. So it is not offered.

`install` puts subclasses of daphne's WebSocket protocol and HTTP request into daphne, if daphne is
loaded and has everything that they need. Otherwise plain ASGI is used, and `problem` returns the
reason for the system check.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any

from realtime.node.drain import CLOSE_INTERVAL
from realtime.node.node import ENGINE_STOP_TIMEOUT, SHUTDOWN_TIMEOUT
from realtime.protocol.frames import Frame, websocket_bytes
from realtime.serving import serving
from realtime.transports.asgi import Headers, Send
from realtime.transports.servers import signals
from realtime.transports.servers.listening import LISTEN_BACKLOG
from realtime.transports.websocket_transport import WebSocketTransport

if TYPE_CHECKING:
    from realtime.transports.servers.daphne_request import BodyRule, GuardedRequest

logger = logging.getLogger("realtime.daphne")

_SERVER = "daphne.server"

_NEEDED = (
    *("CONFIG_ATTRS", "STATE_OPEN", "_connectionMade", "_max_message_size_exceeded"),
    *("handle_reply", "sendCloseFrame", "sendMessage"),
)
"""What our protocol uses of daphne's."""

logs_failed_start = True
"""Whether to log why the service could not start with the reactor. In a worker, its
supervisor logs the reason."""

ANSWER_MOST = SHUTDOWN_TIMEOUT - ENGINE_STOP_TIMEOUT
"""Seconds for the last requests, when every client was closed."""

TOO_LARGE = "realtime.too_large"
"""Type of the event in place of a message that is larger than the limit."""


def is_loaded() -> bool:
    """Return whether daphne may be the server of this process."""
    return _SERVER in sys.modules


def problem() -> str | None:
    """Return why our protocols do not fit the installed daphne; None if they fit."""
    try:
        protocol = importlib.import_module("daphne.ws_protocol")
        http = importlib.import_module("daphne.http_protocol")
    except ImportError as error:
        return f"daphne's protocols cannot be imported: {error}"
    base = getattr(protocol, "WebSocketProtocol", None)
    factory = getattr(protocol, "WebSocketFactory", None)
    if base is None or factory is None or not hasattr(factory, "protocol"):
        return "daphne.ws_protocol has no WebSocketFactory.protocol"
    for name in _NEEDED:
        if not hasattr(base, name):
            return f"daphne's WebSocketProtocol has no {name}"
    request = getattr(http, "WebRequest", None)
    for name in ("connectionLost", "gotLength", "handleContentChunk", "process"):
        if not hasattr(request, name):
            return f"daphne's WebRequest has no {name}"
    if not hasattr(importlib.import_module(_SERVER).Server, "kill_all_applications"):
        return "daphne's Server has no kill_all_applications"
    return None


def install(
    rule: BodyRule | None = None,
    takes: Callable[[str], bool] | None = None,
    takes_api: Callable[[str], bool] | None = None,
) -> bool:
    """Use our protocols for daphne's connections. Return whether that was possible.

    Args:
        rule: decides about requests with a body before the body comes; None: keep the rule.
        takes: return whether a path is one of our WebSockets; None: keep the function.
        takes_api: return whether a path is one of the server API; None: keep the function.
    """
    if not is_loaded() or problem() is not None:
        return False
    factory = importlib.import_module("daphne.ws_protocol").WebSocketFactory
    ours = importlib.import_module("realtime.transports.servers.daphne_protocol")
    requests = importlib.import_module("realtime.transports.servers.daphne_request")
    if rule is not None:
        requests.GuardedRequest.rule = staticmethod(rule)
    if takes is not None:
        channels = importlib.import_module("realtime.transports.servers.daphne_channel")
        plain = importlib.import_module("realtime.transports.servers.daphne_plain")
        channels.TimedChannel.opens = staticmethod(plain.opener(takes))
    if takes_api is not None:
        channels = importlib.import_module("realtime.transports.servers.daphne_channel")
        api = importlib.import_module("realtime.transports.servers.daphne_api")
        channels.TimedChannel.answers = staticmethod(api.answerer(takes_api))
    if not issubclass(factory.protocol, ours.AdvisingProtocol):
        factory.protocol = ours.ProtocolOfFactory()
        http: Any = importlib.import_module("daphne.http_protocol")
        http.WebRequest = requests.GuardedRequest
        # over HTTP/2 no limit of ours would hold
        http.HTTPFactory.acceptableProtocols = _offer_http_1
        channels = importlib.import_module("realtime.transports.servers.daphne_channel")
        if channels.fits():
            http.HTTPFactory.protocol = channels.make_channel
        _leave_out_colours()
        _live_with_reactor()
    return True


def _leave_out_colours() -> None:
    """Have autobahn format its log texts when they are logged, and in one colour.

    It colours names and values for each of its debug texts, which are dropped: a fifth of what a
    connection costs in autobahn.
    """
    plain = {"hltype": _name_of, "hlval": _as_it_is, "pformat": repr}
    for name in ("autobahn.websocket.protocol", "autobahn.twisted.websocket"):
        module = importlib.import_module(name)
        for function in plain.keys() & vars(module).keys():
            setattr(module, function, plain[function])


def _name_of(function: object) -> object:
    return getattr(function, "__qualname__", function)


def _as_it_is(value: object, **style: object) -> object:
    return value


def _offer_http_1(factory: Any) -> list[bytes]:
    """Return the protocols that daphne's HTTPFactory offers to clients that come by TLS."""
    return [b"http/1.1"]


def _live_with_reactor() -> None:
    """Start and stop the service with daphne's reactor."""
    reactor: Any = importlib.import_module("twisted.internet.reactor")

    def start() -> None:
        # if it fails, the first request tries again and logs
        asyncio.ensure_future(serving.start()).add_done_callback(_started)

    reactor.callWhenRunning(start)
    server: Any = importlib.import_module(_SERVER).Server
    server.kill_all_applications = stop_before(server.kill_all_applications)


def take_second_signal(reactor: Any) -> None:
    """Close all clients at once if a signal comes while they are closed one after another.

    Twisted's own handlers fail, because the reactor is ending already.
    """
    loop = asyncio.get_event_loop()

    def handle(signum: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(serving.on_signal)

    if threading.current_thread() is threading.main_thread():
        for number in signals.SIGNALS:
            if signal.getsignal(number) in (reactor.sigInt, reactor.sigTerm):
                signal.signal(number, handle)


def stop_before(kill: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a method that stops the service before daphne's, which cancels all applications.

    When every client was closed, the server refuses connections, and answers those that it has
    accepted. A system closes those that wait to be accepted when the last process with their port
    ends.
    """
    reactor: Any = importlib.import_module("twisted.internet.reactor")
    defer = importlib.import_module("twisted.internet.defer")

    async def stop(server: Any) -> None:
        await serving.drained()
        _close_ports(reactor, server)
        deadline = time.monotonic() + ANSWER_MOST
        # an application that is cancelled before its first step can close no connection with advice
        await asyncio.sleep(0)
        while _is_asked(server) and time.monotonic() < deadline:
            await asyncio.sleep(CLOSE_INTERVAL)
        stopping = asyncio.ensure_future(serving.stop(process_ends=True))
        try:
            await kill(server).asFuture(asyncio.get_running_loop())
        finally:
            await stopping

    @functools.wraps(kill)
    def stop_and_kill(server: Any) -> Any:
        serving.on_signal()
        take_second_signal(reactor)
        return defer.Deferred.fromFuture(asyncio.ensure_future(stop(server)))

    return stop_and_kill


def _close_ports(reactor: Any, server: Any) -> None:
    """Accept the connections that wait, and have the system refuse others."""
    if (acceptor := getattr(server, "acceptor", None)) is not None:
        acceptor.finish()
    port_class = importlib.import_module("twisted.internet.tcp").Port
    for port in reactor.getReaders():
        if isinstance(port, port_class):
            port.numberAccepts = LISTEN_BACKLOG
            port.doRead()
            port.stopReading()
            port.connectionLost(None)  # stopListening does that a turn later


def _is_asked(server: Any) -> bool:
    """Return whether a request or a handshake has no answer, or has to come."""
    channels = importlib.import_module("realtime.transports.servers.daphne_channel")
    return bool(channels.TimedChannel.without_head) or any(
        not hasattr(protocol, "state") or protocol.state == protocol.STATE_CONNECTING
        for protocol, connection in server.connections.items()
        if (application := connection.get("application_instance")) and not application.done()
    )


def _started(starting: asyncio.Future[Any]) -> None:
    if starting.cancelled() or (error := starting.exception()) is None:
        return
    if logs_failed_start:
        logger.warning("Could not start with daphne, retrying at the first request: %s", error)


def transport(
    send: Send, receiving: asyncio.Task[Any], size_limit: int | None
) -> DaphneTransport | None:
    """Return the transport for daphne's own `send`; None for any other, or a wrapped one.

    Args:
        size_limit: largest incoming message in bytes; None for no limit.
    """
    if not isinstance(send, functools.partial) or not send.args:
        return None
    protocol = send.args[0]
    if not hasattr(protocol, "write_frame"):
        return None
    protocol.limit_messages(size_limit, {"type": TOO_LARGE})
    return DaphneTransport(send, receiving, protocol)


def refuse_with(send: Send, status: int, headers: Headers) -> None:
    """Set what the peer gets if its handshake is rejected; without effect on other servers.

    Args:
        send: daphne's own.
        status: of an error; with another one daphne's own stays.
    """
    if status < 400 or not isinstance(send, functools.partial) or not send.args:
        return
    if hasattr(send.args[0], "refuse_with"):
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        send.args[0].refuse_with(status, HTTPStatus(status).phrase, fields)


def connection_of(send: Send) -> GuardedRequest | None:
    """Return the request behind daphne's own `send`; None for any other, or a wrapped one."""
    if not isinstance(send, functools.partial) or not send.args:
        return None
    request = send.args[0]
    return request if hasattr(request, "backlog_bytes") and hasattr(request, "abort") else None


class DaphneTransport(WebSocketTransport):
    """Writes encoded frames, and knows how much the peer has not read."""

    def __init__(self, send: Send, receiving: asyncio.Task[Any], protocol: Any) -> None:
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
