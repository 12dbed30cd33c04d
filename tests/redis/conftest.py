"""Fixtures: connections that are closed when the test ends, TLS in front of a Redis."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realtime.redis.blocking import BlockingRedis
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from tests.certificates import write_certificate
from tests.ports import refusing_port
from tests.redis.listening import Listener
from tests.redis.scripted_server import ScriptedServer
from tests.redis_server import RedisServer
from tests.tcp_proxy import TcpProxy

DEFAULT = Timeouts(connect=20.0, answer=20.0)
"""For tests about something else: a busy machine needs longer than is right for a site."""

SLACK = 10.0
"""Seconds that a busy machine may add to a short timeout; the one there is by default is longer."""


@pytest.fixture
async def open_connection() -> AsyncIterator[Callable[..., Connection]]:
    """A connection to a URL, or to an entry: `open_connection(redis_server.url)`."""
    connections: list[Connection] = []

    def make(where: str | dict[str, Any], timeouts: Timeouts = DEFAULT) -> Connection:
        host = Host({"address": where} if isinstance(where, str) else where)
        connections.append(Connection(host, timeouts))
        return connections[-1]

    yield make
    for connection in connections:
        await connection.close()


@pytest.fixture
async def connection(
    open_connection: Callable[..., Connection], redis_server: RedisServer
) -> Connection:
    """A connection to the shared Redis, already open."""
    connection = open_connection(redis_server.url)
    await connection.execute("PING")
    return connection


@pytest.fixture
def open_blocking() -> Iterator[Callable[..., BlockingRedis]]:
    """As `open_connection`, for threads without an event loop."""
    clients: list[BlockingRedis] = []

    def make(
        where: str | dict[str, Any], timeouts: Timeouts = DEFAULT, **arguments: Any
    ) -> BlockingRedis:
        host = Host({"address": where} if isinstance(where, str) else where)
        clients.append(BlockingRedis(host, timeouts, **arguments))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
async def script_server() -> AsyncIterator[Callable[..., Awaitable[ScriptedServer]]]:
    """Start a server with these answers: `await script_server(lambda command: b"+OK\\r\\n")`."""
    servers: list[ScriptedServer] = []

    async def start(
        answer: Callable[[list[bytes]], bytes | None], **arguments: Any
    ) -> ScriptedServer:
        servers.append(ScriptedServer(answer, **arguments))
        await servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        await server.stop()


class TlsProxy(TcpProxy):
    """Ends TLS in front of a Redis that has none."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url.replace("redis://", "rediss://"))
        write_certificate(directory, "192.0.2.1")  # of another host
        self.certificate = str(directory / "certificate.pem")
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(self.certificate, directory / "key.pem")

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)


@pytest.fixture
async def tls_proxy(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[TlsProxy]:
    """TLS in front of the shared Redis, with a certificate of another host."""
    proxy = TlsProxy(redis_server.url, tmp_path)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
def unused_url() -> str:
    """The URL of a Redis that is not there."""
    return f"redis://127.0.0.1:{refusing_port()}/0"


@pytest.fixture
async def listen() -> AsyncIterator[Callable[..., Listener]]:
    """Subscriptions to a URL, or to an entry; closed when the test ends."""
    listeners: list[Listener] = []

    def make(
        where: str | dict[str, Any],
        timeouts: Timeouts = DEFAULT,
        on_message: Callable[[bytes], None] = lambda data: None,
    ) -> Listener:
        host = Host({"address": where} if isinstance(where, str) else where)
        listeners.append(Listener(host, timeouts, on_message))
        return listeners[-1]

    yield make
    for listener in listeners:
        await listener.close()


class Way:
    """A client with the same methods on the loop and in a thread."""

    def __init__(self, client: Connection | BlockingRedis) -> None:
        self._client = client

    async def __call__(self, name: str, *args: Any) -> Any:
        """Call a method of the client."""
        method = getattr(self._client, name)
        if isinstance(self._client, Connection):
            return await method(*args)
        return await asyncio.to_thread(method, *args)


@pytest.fixture(params=["loop", "thread"])
def open_way(
    request: pytest.FixtureRequest,
    open_connection: Callable[..., Connection],
    open_blocking: Callable[..., BlockingRedis],
) -> Callable[..., Way]:
    """As `open_connection`, on the loop or for a thread."""
    return lambda *args: Way((open_connection if request.param == "loop" else open_blocking)(*args))


@pytest.fixture
def ask(open_way: Callable[..., Way]) -> Callable[..., Awaitable[Any]]:
    """One command over a connection of its own, on the loop or in a thread."""

    async def ask(entry: dict[str, Any] | str, *command: str, timeouts: Timeouts = DEFAULT) -> Any:
        return await open_way(entry, timeouts)("execute", *command)

    return ask
