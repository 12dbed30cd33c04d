"""Closed clients leave nothing behind, not even for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from realtime.clients.client import Client
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.serving import serving
from realtime.transports.websocket import WebSocketConsumer
from tests.conftest import connection_token
from tests.server import SECRET

SCOPE = {"type": "websocket", "path": "/", "query_string": b"", "headers": [], "subprotocols": []}


@pytest.fixture
async def node(settings: Any) -> AsyncIterator[Node]:
    settings.REALTIME = {
        "client_insecure": True,
        "token_hmac_secret_key": SECRET,
        "presence": True,
        "join_leave": True,
        "history_size": 10,
        "history_lifetime": 10,
        "history_recover": True,
    }
    yield await serving.start()
    await serving.stop()


class Connection:
    """The server's side of one WebSocket: what it received, and what it sent."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.task = asyncio.ensure_future(
            WebSocketConsumer.as_asgi()(dict(SCOPE), self.received.get, self._send)
        )
        self.received.put_nowait({"type": "websocket.connect"})

    async def _send(self, event: Mapping[str, Any]) -> None:
        self.sent.put_nowait(event)
        if event["type"] == "websocket.close":
            self.received.put_nowait({"type": "websocket.disconnect", "code": event["code"]})

    async def say(self, *commands: dict[str, Any]) -> None:
        """Send commands and wait for the last reply."""
        text = "\n".join(map(json.dumps, commands))
        self.received.put_nowait({"type": "websocket.receive", "text": text})
        while True:
            event = await self.sent.get()
            for line in event.get("text", "").splitlines():
                if json.loads(line).get("id") == commands[-1]["id"]:
                    return


def clients() -> int:
    return sum(type(thing) is Client for thing in gc.get_objects())


@pytest.mark.parametrize("ends", ["by the peer", "by the server", "by a bad frame"])
async def test_closed_clients_are_freed_at_once(node: Node, ends: str) -> None:
    gc.collect()
    gc.disable()
    try:
        for number in range(20):
            connection = Connection()
            await connection.say(
                {"id": 1},
                {"id": 2, "method": "subscribe", "params": {"channel": f"a{number}"}},
                {"id": 3, "method": "publish", "params": {"channel": f"a{number}", "data": 1}},
                {"id": 4, "method": "history", "params": {"channel": f"a{number}"}},
            )
            match ends:
                case "by the peer":
                    connection.received.put_nowait({"type": "websocket.disconnect", "code": 1000})
                case "by the server":
                    await node.disconnect_user("")
                case "by a bad frame":
                    connection.received.put_nowait(
                        {"type": "websocket.receive", "text": "nonsense"}
                    )
            await connection.task
            del connection
        async with asyncio.timeout(5):
            await node.idle()

        assert (node.hub.clients, node.hub.feeds, node._connections) == ({}, {}, {})
        assert clients() <= 1, "only the variables of the loop above may hold one"
    finally:
        gc.enable()


async def cannot_record_presence(*_: object) -> None:
    raise EngineUnavailable("the engine cannot be reached")


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Log nothing: pytest keeps logged exceptions, which hold clients."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("command", ["connect", "subscribe"])
async def test_clients_whose_command_failed_in_the_engine_are_freed_at_once(
    node: Node, unlogged: None, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(node.presence, "add", cannot_record_presence)
    codes = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            connection = Connection()
            if command == "connect":
                failing: dict[str, Any] = {
                    "id": 1,
                    "params": {"token": connection_token("17", channels=["a"])},
                }
            else:
                await connection.say({"id": 1})
                failing = {"id": 2, "method": "subscribe", "params": {"channel": "a"}}
            text = json.dumps(failing)
            connection.received.put_nowait({"type": "websocket.receive", "text": text})
            await connection.task
            while (event := connection.sent.get_nowait())["type"] != "websocket.close":
                pass
            codes.append(event["code"])
            del connection
        async with asyncio.timeout(5):
            await node.idle()

        assert codes == [3004] * 20
        assert (node.hub.clients, node.hub.feeds, node._connections) == ({}, {}, {})
        assert clients() <= 1, "only the variables of the loop above may hold one"
    finally:
        gc.enable()
