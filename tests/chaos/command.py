"""What the commands of this directory share: servers of their own, and a publisher."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.postgresql import ChaosPostgres
from tests.live.raw_http import Exchange, request
from tests.redis_server import RedisServer
from tests.server import API_KEY, Server

HEADERS = {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"}


@contextmanager
def serving(
    options: Mapping[str, Any],
    *kinds: str,
    engine: str = "",
    arguments: Sequence[str] = (),
) -> Iterator[list[Server]]:
    """Start a server of each kind for the length of a `with` block.

    Args:
        options: those of the service.
        kinds: of `Server`.
        engine: "redis" or "postgresql" for servers that share one of their own.
        arguments: of the command lines.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        options = dict(options)
        if engine == "redis":
            started = RedisServer(Path(name, "redis")).start()
            undo.callback(started.kill)
            options["redis_url"] = started.url
        elif engine:
            database = ChaosPostgres()
            undo.callback(database.discard)
            database.create()
            database.start()
            database.open_service()
            options |= {"engine": engine, "database_url": database.url}
        servers = []
        for kind in kinds:
            server = Server(Path(name, kind), options, server=kind, arguments=arguments)
            undo.callback(server.discard)
            servers.append(server)
        yield servers


class Poster:
    """Publishes over one connection to the server API."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._exchange = Exchange(reader, writer)
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Poster:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def publish(self, channel: str, data: Any) -> None:
        """Publish, which must succeed."""
        body = json.dumps({"method": "publish", "params": {"channel": channel, "data": data}})
        exchange = self._exchange = self._exchange.next()
        await exchange.write(request("POST", "/api", body.encode(), HEADERS))
        await exchange.begin()
        answer = await exchange.rest()
        assert answer == b'{"result":{}}\n', answer

    def close(self) -> None:
        self._writer.close()
