"""A server that speaks the protocol of Redis and gives the answers of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import hiredis

from tests.redis_server import RedisServer

TIMEOUT = 60.0
OK = b"+OK\r\n"


def array(*items: bytes | int) -> bytes:
    """The bytes of an array of a reply."""
    encoded = (
        b":%d\r\n" % item if isinstance(item, int) else b"$%d\r\n%b\r\n" % (len(item), item)
        for item in items
    )
    return b"*%d\r\n" % len(items) + b"".join(encoded)


def naming(masters: list[RedisServer]) -> Callable[[list[bytes]], bytes]:
    """The answers of a Sentinel that names the first of these as the master."""

    def answer(command: list[bytes]) -> bytes:
        port = str(masters[0].port).encode()
        return array(b"127.0.0.1", port) if command[0] == b"SENTINEL" else OK

    return answer


class ScriptedServer:
    """For replies that a real Redis rarely gives, and to see what arrives."""

    def __init__(self, answer: Callable[[list[bytes]], bytes | None], *, drip: bytes = b"") -> None:
        """
        Args:
            answer: command → the reply's bytes; None closes the connection.
            drip: where the answer is empty, these bytes, one by one.
        """
        self._answer = answer
        self._drip = drip
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.commands: list[list[bytes]] = []
        """Every command that arrived, over all connections."""
        self.askers: list[int] = []
        """On which connection each command arrived, counted from 1."""
        self.chunks: list[bytes] = []
        """What each read gave."""
        self.connections = 0
        self._asked = asyncio.Condition()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def place(self) -> tuple[str, int]:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return host, port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.place[1]}/0"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._server.wait_closed()

    async def asked(self, commands: int) -> None:
        """Wait until this many commands have arrived."""
        async with asyncio.timeout(TIMEOUT), self._asked:
            await self._asked.wait_for(lambda: len(self.commands) >= commands)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._talk(number, reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _talk(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        commands = hiredis.Reader()  # a command is an array, as a reply may be
        while data := await reader.read(1 << 20):
            self.chunks.append(data)
            commands.feed(data)
            while (command := commands.gets()) is not False:
                self.commands.append(command)
                self.askers.append(number)
                async with self._asked:
                    self._asked.notify_all()
                reply = self._answer(command)
                if reply is None:
                    return
                writer.write(reply)
                for byte in b"" if reply else self._drip:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.001)  # so it is read by itself
