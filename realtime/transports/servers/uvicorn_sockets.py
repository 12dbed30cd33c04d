"""uvicorn's WebSockets, which leave nothing to the garbage collector.

The parser of the package websockets is a generator of the connection that holds it, and waits for
bytes for ever. Where a peer goes without a close frame, the two keep each other, and the collector
of a process that serves runs rarely. uvicorn makes WebSockets of a class that its configuration
names; while the lifespan starts, it can still be replaced by a subclass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from realtime.transports.asgi import Send
from realtime.transports.servers.uvicorn import PROTOCOL
from realtime.transports.servers.uvicorn_heads import config_of


def free_sockets(send: Send) -> None:
    """Have WebSockets freed as soon as they are lost. No effect under other servers.

    Args:
        send: the one of the lifespan, before its startup is complete.
    """
    config = config_of(send)
    base = getattr(config, "ws_protocol_class", None)
    if isinstance(base, type) and (base.__module__, base.__qualname__) == PROTOCOL:
        # `servers.uvicorn` knows uvicorn's protocol by these names
        names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
        config.ws_protocol_class = type(base.__name__, (FreedSocket, base), names)


class FreedSocket(asyncio.Protocol):
    """What a subclass of uvicorn's WebSocket protocol adds to it."""

    conn: Any

    def connection_lost(self, error: Exception | None) -> None:
        """End the parser, too: nothing comes any more."""
        super().connection_lost(error)
        parser = getattr(self.conn, "parser", None)
        if isinstance(parser, Generator):
            parser.close()
