"""uvicorn's connections over real sockets, with an application of a test."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from uvicorn.config import Config
from uvicorn.lifespan.on import LifespanOn
from uvicorn.server import ServerState

from realtime.transports.servers import uvicorn_connections


class UvicornServer(NamedTuple):
    """Where connections are made, and what uvicorn knows of them."""

    address: tuple[str, int]
    state: ServerState
    made: list[weakref.ref[asyncio.Protocol]]
    """The protocol of each connection as it began."""

    def open_sockets(self) -> list[Any]:
        """The protocols of the WebSockets that are open."""
        return [each for each in self.state.connections if hasattr(each, "fits")]


@asynccontextmanager
async def open_server(
    site: Any, is_ours: Callable[[str], bool] = lambda path: False, **options: Any
) -> AsyncIterator[UvicornServer]:
    """Accept connections. `is_ours`: paths whose WebSockets the service opens itself."""
    config: Any = Config(site, log_config=None, **options)
    start_up: Any = LifespanOn(config).send
    uvicorn_connections.install(start_up, is_ours)
    loop, state = asyncio.get_running_loop(), ServerState()
    state.default_headers = [(b"server", b"uvicorn")]
    made: list[weakref.ref[asyncio.Protocol]] = []

    def make() -> asyncio.Protocol:
        protocol: asyncio.Protocol = config.http_protocol_class(config, state, {}, loop)
        made.append(weakref.ref(protocol))
        return protocol

    server = await loop.create_server(make, "127.0.0.1")
    yield UvicornServer(server.sockets[0].getsockname(), state, made)
    for protocol in list(state.connections):
        protocol.transport.abort()
    server.close()
