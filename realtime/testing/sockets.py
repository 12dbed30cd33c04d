"""A WebSocket in memory: the service's own consumer, and a client of the JSON protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from realtime.errors import DISCONNECTS, ERRORS, Disconnect, Error
from realtime.protocol.messages import Method
from realtime.protocol.v1.numbers import METHOD_NUMBERS
from realtime.transports.asgi import Scope
from realtime.transports.websocket import WebSocketConsumer

T = TypeVar("T")

REPLY_TIMEOUT = 10.0
"""Seconds to wait for a reply: more than a hook may take by default."""

_NORMAL, _LOST = 1000, 1006
_DISCONNECTS = {disconnect.code: disconnect for disconnect in DISCONNECTS}
_ERRORS = {error.code: error for error in ERRORS}


class HandshakeRefused(Exception):
    """The WebSocket was not accepted. `status`: of HTTP, 403 if the origin is not allowed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Socket:
    """One connection. Belongs to the event loop of the service."""

    def __init__(
        self, headers: Sequence[tuple[bytes, bytes]], on_push: Callable[[dict[str, Any]], None]
    ) -> None:
        self._scope: Scope = {
            "type": "websocket",
            "path": "/connection/websocket",
            "query_string": b"",
            "headers": headers,
            "subprotocols": [],
            "client": ("127.0.0.1", 0),
            "extensions": {"websocket.http.response": {}},
        }
        self._on_push = on_push
        self._to_service: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._news = asyncio.Event()
        self._ids = count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self._accepted = False
        self._refused: int | None = None
        self._serving: asyncio.Task[None] | None = None
        self.closed: Disconnect | None = None
        """The disconnect with which the service closed the connection."""
        self.over = False
        """Whether the connection has ended."""

    async def open(self) -> None:
        """Make the handshake.

        Raises:
            HandshakeRefused: the service did not accept the WebSocket.
        """
        consumer = WebSocketConsumer()
        self._serving = asyncio.get_running_loop().create_task(
            consumer(self._scope, self._to_service.get, self._from_service)
        )
        self._serving.add_done_callback(self._ended)
        self._to_service.put_nowait({"type": "websocket.connect"})
        await self.wait(lambda: self._accepted or self.over or None, REPLY_TIMEOUT)
        if not self._accepted:
            self._fail()
            raise HandshakeRefused(self._refused or 403)

    # commands

    async def call(self, method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and return its result, {} if it has none.

        Raises:
            Error: the reply is an error; an instance of the class that belongs to the code.
            Disconnect: the service closed the connection instead.
        """
        number = next(self._ids)
        self._send({"id": number, "method": METHOD_NUMBERS[method], "params": params})
        await self.wait(lambda: number in self._replies or self.over or None, REPLY_TIMEOUT)
        reply = self._replies.pop(number, None)
        if reply is None:
            self._fail()
            raise self.closed or ConnectionError("the connection is closed")
        if (error := reply.get("error")) is not None:
            raise _error(error["code"], error["message"])
        result: dict[str, Any] = reply.get("result", {})
        return result

    def send(self, data: object) -> None:
        """Send a message, to which there is no reply."""
        self._send({"method": METHOD_NUMBERS[Method.SEND], "params": {"data": data}})

    def _send(self, command: Mapping[str, Any]) -> None:
        if self.closed is not None:
            raise self.closed.with_traceback(None)
        if self.over:
            raise ConnectionError("the connection is closed")
        self._to_service.put_nowait({"type": "websocket.receive", "text": json.dumps(command)})

    async def wait(self, found: Callable[[], T | None], timeout: float) -> T | None:
        """Wait until `found` returns something; None after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while (value := found()) is None:
                    self._news.clear()
                    await self._news.wait()
                return value
        except TimeoutError:
            return None

    # ending

    async def close(self, *, lost: bool = False) -> None:
        """Close the connection, or lose it, and wait until the service has ended it."""
        self._to_service.put_nowait(
            {"type": "websocket.disconnect", "code": _LOST if lost else _NORMAL}
        )
        await self.ended()

    async def ended(self) -> None:
        """Wait until the service has ended the connection."""
        if self._serving is not None and not self._serving.done():
            await asyncio.wait([self._serving])
        self._fail()

    def _ended(self, _: object) -> None:
        self.over = True
        self._news.set()

    def _fail(self) -> None:
        """Raise the exception of the service, if it failed."""
        if self._serving is not None and self._serving.done() and not self._serving.cancelled():
            self._serving.result()

    # the service's side

    async def _from_service(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "websocket.accept":
                self._accepted = True
            case "websocket.http.response.start":
                self._refused = event["status"]
            case "websocket.send":
                for line in event["text"].splitlines():
                    self._arrived(json.loads(line))
            case "websocket.close":
                self.closed = _disconnect(event["code"], event.get("reason") or "")
                self.over = True
                # the close frame is answered
                self._to_service.put_nowait({"type": "websocket.disconnect", "code": event["code"]})
        self._news.set()

    def _arrived(self, reply: dict[str, Any]) -> None:
        if reply.get("id"):
            self._replies[reply["id"]] = reply
        else:
            self._on_push(reply["result"])


def _error(code: int, message: str) -> Error:
    return _ERRORS[code](message=message) if code in _ERRORS else Error.received(code, message)


def _disconnect(code: int, advice: str) -> Disconnect:
    if code in _DISCONNECTS:
        return _DISCONNECTS[code]()
    said = json.loads(advice) if advice else {}
    return Disconnect.received(code, said.get("reason", ""), said.get("reconnect", False))
