"""Nodes: processes that serve clients, each with a real node and a real engine.

    clients ══ frames ══► NodeSocket ─► Dispatcher ─► Node ─► RedisEngine ══ bytes ══► RedisServer

What daphne does around a node is modelled: a socket hands frames to the dispatcher, one after
another, and ends. Everything behind the dispatcher is the product.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from realtime.clients.client import Client
from realtime.clients.commands.listening import Listener, ListenRequest, listen
from realtime.clients.dispatch import Dispatcher
from realtime.engine.base import Engine
from realtime.engine.redis.engine import RedisEngine
from realtime.errors import Disconnect, DisconnectServerError, EngineUnavailable
from realtime.node.hooks import NO_HANDSHAKE
from realtime.node.node import Node
from realtime.payload import check
from realtime.protocol.frames import Frame
from realtime.protocol.v2.events import RETRY, EventCodecs, retry
from realtime.transports.streaming.event_request import read
from tests.simulation.clients import Close
from tests.simulation.network import End
from tests.simulation.plan import MEMORY
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

EVENTS = "events"
"""Where a node answers listeners."""
CLOSE_TIMEOUT = 3.0
"""Seconds that a peer has to answer a close."""
START_PAUSE = 1.0
"""Seconds until a node that could not start tries again, as a supervisor does."""


class NodeProcess:
    """One process that serves clients; a restart makes a new one at the same place."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self.place = ("node", name)
        self.node: Node | None = None
        self.event_codecs = EventCodecs()
        self.serving: set[asyncio.Task[None]] = set()
        """Of the sockets: a server of WebSockets ends them, and not the node."""
        self.process: Process
        self.start()

    def start(self) -> None:
        """Begin to serve."""
        self.process = Process(self.service.world, self.name)
        self.service.network.add(self.process)
        self.node = None
        self.serving = set()
        self.process.spawn(self._start())

    def _engine(self) -> Engine | None:
        if self.service.plan.engine == MEMORY:
            return None  # the node makes one
        return RedisEngine(self.service.new_bus(), "sim", self.service.meta)

    async def _start(self) -> None:
        while True:
            node = Node(self.service.config, self._engine(), version="simulated")
            try:
                await node.start()
            except EngineUnavailable:
                await asyncio.sleep(START_PAUSE)
            else:
                break
        self.node = node
        listen_at = self.service.network.listen
        listen_at(self.process, self.place, lambda: NodeSocket(self), is_bytes=False)
        events = (*self.place, EVENTS)
        listen_at(self.process, events, lambda: ListenerResponse(self), is_bytes=False)

    async def stop(self) -> None:
        """Stop as at SIGTERM, and end the process."""
        node, self.node = self.node, None
        if node is not None:
            await node.stop()

    def publish(self, channel: str) -> None:
        """Publish through the server API of this process."""
        self.do(lambda node: self._publish(node, channel))

    def do(self, work: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
        """Do something at the node, unless it does not serve."""
        if self.node is not None and self.process.alive:
            self.process.spawn(self._try(work, self.node))

    async def _try(self, work: Callable[[Node], Coroutine[Any, Any, None]], node: Node) -> None:
        with contextlib.suppress(EngineUnavailable):
            await work(node)

    async def _publish(self, node: Node, channel: str) -> None:
        judge = self.service.judge
        publishing = judge.begin(channel)
        options = self.service.options_of(channel)
        position = await node.publish(channel, check(b"%d" % publishing.number), options)
        if position is None:
            judge.acknowledge(publishing)
        else:
            judge.acknowledge(publishing, position.offset, position.epoch)


class Carrier:
    """The node's side of a connection: a transport of a client; see `outbox.Transport`."""

    name = ""
    session = ""
    ends_with_push = False
    ready = True
    backlog = 0

    def __init__(self) -> None:
        self._end: End | None = None
        self._is_lost = False
        self._until_lost: asyncio.Future[None] | None = None

    # from the network

    def connection_made(self, transport: End) -> None:
        self._end = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self.lost()
        if self._until_lost is not None and not self._until_lost.done():
            self._until_lost.set_result(None)

    def lost(self) -> None:
        """Learn that the peer is gone."""

    # from the node

    def write(self, item: object) -> None:
        """Send something to the peer."""
        if self._end is not None:
            self._end.write(item)

    def send(self, frame: Frame) -> int:
        self.write(frame.data)
        return 0

    async def close(self, code: int, reason: str) -> None:
        if self._end is None or self._is_lost:
            return
        if not self.ends_with_push:
            self.write(Close(code, reason))
        self._end.close()
        self._until_lost = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._until_lost], timeout=CLOSE_TIMEOUT)

    def closed(self) -> None:
        self._is_lost = True


class NodeSocket(Carrier):
    """One WebSocket: what its consumer does."""

    name = "websocket"

    def __init__(self, member: NodeProcess) -> None:
        super().__init__()
        self._member = member
        self._frames: deque[bytes] = deque()
        self._arrived: asyncio.Future[None] | None = None

    def connection_made(self, transport: End) -> None:
        super().connection_made(transport)
        node = self._member.node
        if node is None:
            transport.abort()
            return
        serving = self._member.process.spawn(self._serve(node))
        self._member.serving.add(serving)
        serving.add_done_callback(self._member.serving.discard)

    def data_received(self, data: list[bytes]) -> None:
        self._frames.extend(data)
        self.lost()

    def lost(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def _serve(self, node: Node) -> None:
        codec, _, is_final = node.codecs.negotiate(b"", ())
        client = Client(node, self, codec)
        dispatcher = Dispatcher(client, recognises=not is_final)
        try:
            while not self._is_lost:
                if self._frames:
                    frame = self._frames.popleft()
                    if not client.is_closing():
                        await dispatcher.receive(frame)
                else:
                    self._arrived = node.loop.create_future()
                    await self._arrived
        finally:
            client.close(None)


class ListenerResponse(Carrier):
    """One response of a listener: what the server of HTTP does around `listen`."""

    name = "sse"
    ends_with_push = True

    def __init__(self, member: NodeProcess) -> None:
        super().__init__()
        self._member = member
        self._listener: Listener | None = None

    def connection_made(self, transport: End) -> None:
        super().connection_made(transport)
        if self._member.node is None:
            transport.abort()

    def data_received(self, data: list[Any]) -> None:
        node, codecs = self._member.node, self._member.event_codecs
        for query, last_id in data:
            if node is None or self._listener is not None:
                return
            headers = [(b"last-event-id", last_id)] if last_id else []
            request = read({"headers": headers}, query)
            self._listener = Listener(node, self, codecs.shared(False), NO_HANDSHAKE)
            node.spawn(self._listen(self._listener, request))

    async def _listen(self, listener: Listener, request: ListenRequest) -> None:
        try:
            await listen(listener, request, self._member.event_codecs, self._begin)
        except (EngineUnavailable, Disconnect):
            listener.close(DisconnectServerError())

    async def _begin(self) -> None:
        self.write(retry(*RETRY))

    def lost(self) -> None:
        if self._listener is not None:
            self._listener.close(None)
