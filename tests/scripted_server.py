"""A WebSocket server that does what a test says: things that a good server never does.

async with ScriptedServer(script) as server: ...

async def script(line: Line) -> None:
    await line.accept()                     # answers connect
    command = await line.command("subscribe")
    await line.send({"id": command["id"], "result": {}}, {"result": {...}})
    await line.close(3001, '{"reason":"shutdown","reconnect":true}')
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

METHODS = {
    "connect": 0,
    "subscribe": 1,
    "unsubscribe": 2,
    "publish": 3,
    "presence": 4,
    "history": 6,
    "rpc": 9,
}


class Line:
    """One connection, seen from the server."""

    def __init__(self, connection: ServerConnection, number: int) -> None:
        self._connection = connection
        self._commands: deque[dict[str, Any]] = deque()
        self.number = number
        """1 for the first connection to this server."""

    async def command(self, method: str) -> dict[str, Any]:
        """The next command, which must be of this method; `connect` may be left out."""
        while not self._commands:
            frame = await self._connection.recv()
            self._commands.extend(map(json.loads, str(frame).split("\n")))
        command = self._commands.popleft()
        assert command.get("method", 0) == METHODS[method], command
        return command

    async def accept(self, **result: Any) -> None:
        """Answer connect."""
        command = await self.command("connect")
        await self.send({"id": command["id"], "result": {"client": "C", "version": "1", **result}})

    async def reply(self, method: str, **reply: Any) -> None:
        """Answer the next command: `result=` or `error=`."""
        await self.send({"id": (await self.command(method))["id"], **reply})

    async def send(self, *messages: Mapping[str, Any]) -> None:
        """Send all of them in one frame."""
        await self._connection.send("".join(f"{json.dumps(each)}\n" for each in messages))

    async def send_frame(self, frame: str | bytes) -> None:
        """Send a frame as it is; bytes are a binary one."""
        await self._connection.send(frame)

    async def close(self, code: int, reason: str) -> None:
        await self._connection.close(code, reason)

    async def stay(self) -> None:
        """Answer nothing any more, until the client leaves; so a script ends, too."""
        await self._connection.wait_closed()


Script = Callable[[Line], Awaitable[None]]


class ScriptedServer:
    """Runs the script once per connection, and then stays until the client leaves.

    A script that fails makes the test fail.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._server: Server | None = None
        self._failures: list[BaseException] = []
        self.connections = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        port = next(iter(self._server.sockets)).getsockname()[1]
        return f"ws://127.0.0.1:{port}/connection/websocket"

    async def __aenter__(self) -> ScriptedServer:
        self._server = await serve(self._run, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.server.close()
        # asyncio forgets the socket of a client that it accepts while the loop ends
        accepting = [task for task in asyncio.all_tasks() if _is_accepting(task)]
        await asyncio.gather(*accepting, return_exceptions=True)
        self._server.close()
        await self._server.wait_closed()
        assert self._failures == []

    async def _run(self, connection: ServerConnection) -> None:
        self.connections += 1
        try:
            line = Line(connection, self.connections)
            await self._script(line)
            await line.stay()
        except (ConnectionClosed, asyncio.CancelledError):
            raise
        except BaseException as error:
            self._failures.append(error)
            raise


def _is_accepting(task: asyncio.Task[Any]) -> bool:
    return getattr(task.get_coro(), "__name__", "") == "_accept_connection2"
