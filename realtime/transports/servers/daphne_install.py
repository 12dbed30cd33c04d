"""How our protocols get into daphne, and how the service starts and stops with its reactor.

Imported by `servers.daphne` only if daphne is loaded.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from daphne import http_protocol
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import defer
from twisted.internet import reactor as _reactor
from twisted.internet.tcp import Port

from realtime.node.drain import CLOSE_INTERVAL
from realtime.node.node import ENGINE_STOP_TIMEOUT, SHUTDOWN_TIMEOUT
from realtime.serving import serving
from realtime.transports.servers import daphne_api, daphne_channel, signals
from realtime.transports.servers.daphne_channel import TimedChannel
from realtime.transports.servers.daphne_protocol import (
    AdvisingProtocol,
    ProtocolOfFactory,
    opener,
)
from realtime.transports.servers.daphne_request import BodyRule, GuardedRequest
from realtime.transports.servers.listening import LISTEN_BACKLOG

reactor: Any = _reactor
daphne_server: Any = Server
daphne_http: Any = http_protocol  # none of them has types

ANSWER_MOST = SHUTDOWN_TIMEOUT - ENGINE_STOP_TIMEOUT
"""Seconds for the last requests, when every client was closed."""


def install(
    rule: BodyRule | None,
    takes: Callable[[str], bool] | None,
    takes_api: Callable[[str], bool] | None,
    started: Callable[[asyncio.Future[Any]], object],
) -> None:
    """Use our protocols. See `daphne.install`.

    Args:
        started: is called with what started the service.
    """
    if rule is not None:
        GuardedRequest.rule = staticmethod(rule)
    if takes is not None:
        TimedChannel.opens = staticmethod(opener(takes))
    if takes_api is not None:
        TimedChannel.answers = staticmethod(daphne_api.answerer(takes_api))
    if not issubclass(WebSocketFactory.protocol, AdvisingProtocol):
        WebSocketFactory.protocol = ProtocolOfFactory()
        daphne_http.WebRequest = GuardedRequest
        # over HTTP/2 no limit of ours would hold
        daphne_http.HTTPFactory.acceptableProtocols = _offer_http_1
        if daphne_channel.fits():
            daphne_http.HTTPFactory.protocol = daphne_channel.make_channel
        _leave_out_colours()
        _live_with_reactor(started)


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


def _live_with_reactor(started: Callable[[asyncio.Future[Any]], object]) -> None:
    """Start and stop the service with daphne's reactor."""

    def start() -> None:
        # if it fails, the first request tries again and logs
        asyncio.ensure_future(serving.start()).add_done_callback(started)

    reactor.callWhenRunning(start)
    daphne_server.kill_all_applications = stop_before(daphne_server.kill_all_applications)


def _take_second_signal() -> None:
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

    async def stop(server: Any) -> None:
        await serving.drained()
        _close_ports(server)
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
        _take_second_signal()
        return defer.Deferred.fromFuture(asyncio.ensure_future(stop(server)))

    return stop_and_kill


def _close_ports(server: Any) -> None:
    """Accept the connections that wait, and have the system refuse others."""
    if (acceptor := getattr(server, "acceptor", None)) is not None:
        acceptor.finish()
    ports: list[Any] = [reader for reader in reactor.getReaders() if isinstance(reader, Port)]
    for port in ports:
        port.numberAccepts = LISTEN_BACKLOG
        port.doRead()
        port.stopReading()
        port.connectionLost(None)  # stopListening does that a turn later


def _is_asked(server: Any) -> bool:
    """Return whether a request or a handshake has no answer, or has to come."""
    return bool(TimedChannel.without_head) or any(
        not hasattr(protocol, "state") or protocol.state == protocol.STATE_CONNECTING
        for protocol, connection in server.connections.items()
        if (application := connection.get("application_instance")) and not application.done()
    )
