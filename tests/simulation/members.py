"""Nodes: processes that serve clients, each with a real node and a real engine.

    clients ══ frames ══► NodeSocket ─► Dispatcher ─► Node ─► RedisEngine ══ bytes ══► RedisServer
    clients ══ requests ══► ServerExchange ─► SockJS, Streaming ─► Node

What daphne does around a node is modelled: a socket hands frames to the dispatcher, one after
another, and ends. Everything behind the dispatcher and the server of HTTP is the product.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.engine.base import Engine
from realtime.engine.postgresql.engine import PostgreSQLEngine
from realtime.engine.redis.engine import RedisEngine
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.payload import check
from realtime.pending.rows import Rows
from realtime.protocol.frames import Frame
from realtime.transports.emulation.sessions import Sessions
from realtime.transports.sockjs.application import SockJS
from realtime.transports.streaming.application import Streaming
from tests.simulation.clients import Close
from tests.simulation.http_server import HTTP, ServerExchange
from tests.simulation.network import End
from tests.simulation.plan import MEMORY
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

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
        self.is_daphne = service.world.random.random() < 0.5
        """Which server of HTTP it has; see `http_server`."""
        self.streaming = Streaming()
        self.sockjs = SockJS(None)
        self.rows: Rows | None = None
        """With a relay, where the site has a database."""
        self.serving: set[asyncio.Task[None]] = set()
        """Of the sockets: a server of WebSockets ends them, and not the node."""
        self.process: Process
        self.start()

    def start(self) -> None:
        """Begin to serve."""
        self.process = Process(self.service.world, self.name)
        self.service.network.add(self.process)
        self.node = None
        self.streaming, self.sockjs = Streaming(), SockJS(None)
        self.serving = set()
        self.process.spawn(self._start())

    def _engine(self) -> Engine | None:
        service = self.service
        if service.plan.engine == MEMORY:
            return None  # the node makes one
        if service.postgresql is not None:
            return PostgreSQLEngine(service.addresses, service.keeping)
        return RedisEngine(service.new_bus(), "sim", service.meta)

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
        if (site := self.service.site) is not None:
            self.rows = Rows(site.serving(site.config))
            await self.rows.start(node)
        listen_at = self.service.network.listen
        listen_at(self.process, self.place, lambda: NodeSocket(self), is_bytes=False)
        requests = (*self.place, HTTP)
        listen_at(self.process, requests, lambda: ServerExchange(self), is_bytes=False)

    async def stop(self) -> None:
        """Stop as at SIGTERM, and end the process."""
        node, self.node = self.node, None
        if node is not None:
            if self.rows is not None:
                self.rows.begin_stop(node)
            await node.stop()
            if self.rows is not None:
                await self.rows.stop()

    # sessions of SockJS

    @property
    def sessions(self) -> Sessions | None:
        """The sessions of the last node that served here; None before the first request."""
        objects = self.sockjs._sessions._objects
        return next(iter(objects.values()), None)

    @property
    def open_sessions(self) -> list[str]:
        """The sessions that have not ended."""
        sessions = {} if self.sessions is None else self.sessions._sessions
        return [name for name, session in sessions.items() if session._last is None]

    def gives(self, name: str) -> bool:
        """Return whether a session gives messages to its client now."""
        return self.sessions is not None and self.sessions._sessions[name].ready

    # the server API

    def publish(self, channel: str) -> None:
        """Publish through the server API of this process."""
        self.do(lambda node: self._publish(node, channel))

    def do(self, work: Callable[[Node], Coroutine[Any, Any, None]]) -> bool:
        """Do something at the node; return False if it does not serve."""
        if self.node is None or not self.process.alive:
            return False
        self.process.spawn(self._try(work, self.node))
        return True

    async def _try(self, work: Callable[[Node], Coroutine[Any, Any, None]], node: Node) -> None:
        try:
            await work(node)
        except EngineUnavailable as error:
            self.service.judge.miss_engine(self.name, error)

    async def _publish(self, node: Node, channel: str) -> None:
        judge = self.service.judge
        publishing = judge.begin(channel)
        options = self.service.options_of(channel)
        published = await node.publish(channel, check(b"%d" % publishing.number), options)
        position = published.position
        if position is None:
            judge.acknowledge(publishing)
        else:
            judge.acknowledge(publishing, position.offset, position.epoch)


class NodeSocket:
    """One WebSocket: what daphne and its consumer do. A transport; see `outbox.Transport`."""

    name = "websocket"
    session = ""
    ends_with_push = False
    ready = True

    def __init__(self, member: NodeProcess) -> None:
        self._member = member
        self._end: End | None = None
        self._is_lost = False
        self._until_lost: asyncio.Future[None] | None = None
        self._frames: deque[bytes] = deque()
        self._arrived: asyncio.Future[None] | None = None

    # from the network

    def connection_made(self, transport: End) -> None:
        self._end = transport
        node = self._member.node
        if node is None:
            transport.abort()
            return
        serving = self._member.process.spawn(self._serve(node))
        self._member.serving.add(serving)
        serving.add_done_callback(self._member.serving.discard)

    def data_received(self, data: list[bytes]) -> None:
        self._frames.extend(data)
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._wake()
        if self._until_lost is not None and not self._until_lost.done():
            self._until_lost.set_result(None)

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # from the node

    @property
    def backlog(self) -> int:
        """Bytes that have not left."""
        return 0 if self._end is None or self._is_lost else self._end.backlog

    def send(self, frame: Frame) -> int:
        end = self._end
        if end is None or self._is_lost:
            return 0
        end.write(frame.data)
        return end.backlog

    async def close(self, code: int, reason: str) -> None:
        if self._end is None or self._is_lost:
            return
        self._end.write(Close(code, reason))
        self._end.close()
        self._until_lost = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._until_lost], timeout=CLOSE_TIMEOUT)

    def closed(self) -> None:
        self._is_lost = True

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
