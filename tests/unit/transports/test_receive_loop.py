"""The receive loop of a WebSocket: nothing of a message stays while the client is quiet."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from realtime.node.node import Node
from realtime.transports.sockjs.websocket import SockJSConsumer
from realtime.transports.streaming.uni_websocket import UniWebSocketConsumer
from realtime.transports.websocket import WebSocketConsumer
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, turns
from tests.unit.transports.emulation.parts import open_node


@pytest.mark.parametrize(
    ("consumer", "message"),
    [
        (WebSocketConsumer, b'{"id":1}' + b" " * 60_000),
        (SockJSConsumer, b'["{\\"id\\":1}' + b" " * 60_000 + b'"]'),
    ],
)
@pytest.mark.parametrize("kind", ["text", "bytes"])
async def test_message_is_let_go_when_it_was_handled(
    node: Node, consumer: type[WebSocketConsumer], message: bytes, kind: str
) -> None:
    connection = Connection(node)
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: Any = message.decode() if kind == "text" else bytes(bytearray(message))
    references = sys.getrefcount(sent)
    limit = node.config.message_size_limit_bytes
    loop = asyncio.create_task(consumer().receive_frames(connection.dispatcher, events.get, limit))

    events.put_nowait({"type": "websocket.receive", kind: sent})
    await turns()

    assert connection.reply(1) is not None
    assert sys.getrefcount(sent) == references
    assert [name for name, value in _locals(loop).items() if _size(value) > 1000] == []
    loop.cancel()


@pytest.mark.parametrize(
    ("consumer", "first", "message"),
    [
        (SockJSConsumer, '["{\\"id\\":2,\\"method\\":7}"]', ""),
        (SockJSConsumer, '["{\\"id\\":2,\\"method\\":7}"]', "[]"),
        (UniWebSocketConsumer, '{"id":2,"method":7}', "dropped"),
    ],
    ids=["SockJS", "SockJS, no frames", "unidirectional"],
)
async def test_message_without_a_frame_counts_as_a_command(
    clock: Clock, consumer: type[WebSocketConsumer], first: str, message: str
) -> None:
    options: dict[str, Any] = {"client_insecure": True, "client_command_rates": "* 1/s burst 10"}
    async with open_node(clock, **options) as node:
        connection = Connection(node)
        await connection.say(1, 0)
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        receiving = consumer().receive_frames(connection.dispatcher, events.get, None)
        loop = asyncio.create_task(receiving)
        for text in [first, *[message] * 100]:
            events.put_nowait({"type": "websocket.receive", "text": text})
        await turns(10)

        assert connection.reply(2) is not None
        assert connection.closes == [3008]
        loop.cancel()


def _locals(task: asyncio.Task[None]) -> dict[str, Any]:
    """The local variables of the coroutine in which a task waits."""
    (frame,) = task.get_stack(limit=1)
    return frame.f_locals


def _size(value: object) -> int:
    """Bytes of a value, or of what a list of values holds."""
    values = value if isinstance(value, list | tuple) else [value]
    return sum(sys.getsizeof(item) for item in values if isinstance(item, str | bytes))
