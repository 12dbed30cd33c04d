"""daphne's connections over real sockets, with queues in place of applications."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.tcp import Server
from twisted.internet.testing import MemoryReactorClock

from realtime.transports.asgi import Event, Scope
from realtime.transports.servers import daphne_channel, daphne_protocol, daphne_request


class DaphneServer:
    """What connections need of daphne's server, with queues in place of applications."""

    root_path = ""
    proxy_forwarded_address_header = None
    action_logger = None
    http_timeout = None
    request_buffer_size = 8192
    server_name = "daphne"
    application: Any = None

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.connections: dict[Any, Any] = {}
        self.sockets: list[Any] = []
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.reactor = MemoryReactorClock()
        self.ws_factory = type(
            "Sockets", (WebSocketFactory,), {"protocol": daphne_protocol.ProtocolOfFactory()}
        )(self, server="daphne", reactor=self.reactor)
        self.ws_factory.setProtocolOptions(allowNullOrigin=True)

    def protocol_connected(self, protocol: Any) -> None:
        pass

    def protocol_disconnected(self, protocol: Any) -> None:
        pass

    def create_application(self, protocol: Any, scope: Scope) -> Any:
        self.scopes.append(scope)
        self.sockets.append(protocol)
        return self.events

    def log_action(self, *args: Any) -> None:
        pass


class DaphneConnection:
    """A connection of daphne's, over a real socket."""

    def __init__(self, server: DaphneServer) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.peer = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
        ours.setblocking(False)
        self.peer.settimeout(5)
        factory = type("Factory", (HTTPFactory,), {"protocol": daphne_channel.make_channel})(server)
        factory.reactor = server.reactor
        make: Any = Server  # neither port nor protocol yet
        self.transport = make(ours, None, ours.getpeername(), None, 1, server.reactor)
        protocol = factory.buildProtocol(None)
        protocol.requestFactory = daphne_request.GuardedRequest
        self.transport.protocol = protocol
        protocol.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        """Have the server read bytes of the client."""
        self.transport.protocol.dataReceived(data)

    def received(self) -> bytes:
        """What the client got."""
        if self.transport.dataBuffer or self.transport._tempDataBuffer:
            self.transport.doWrite()
        return self.peer.recv(100_000)
