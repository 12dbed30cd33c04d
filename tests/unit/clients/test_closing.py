"""Closing with a server whose `send` waits: queued messages leave first, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from realtime.errors import DisconnectForced
from realtime.node.node import Node
from realtime.node.outbox import ClientOutbox, Flusher
from realtime.serving import serving
from realtime.transports.sending import WebSocketTransport
from realtime.transports.websocket import WebSocketConsumer
from tests.unit.node.node_parts import PLAIN, publish
from tests.unit.parts import eventually, turns

SCOPE = {"type": "websocket", "path": "/", "query_string": b"", "headers": [], "subprotocols": []}
FORCED = {
    "type": "websocket.close",
    "code": 3012,
    "reason": '{"reason":"force disconnect","reconnect":false}',
}


@pytest.fixture
async def node(settings: Any) -> AsyncIterator[Node]:
    settings.REALTIME = {"client_insecure": True}
    yield await serving.start()
    await serving.stop()


class Socket:
    """The server's side of one WebSocket, whose `send` waits until the test lets events out."""

    def __init__(self, *, turns_of_a_send: int = 0) -> None:
        """`turns_of_a_send`: turns of the loop that each event takes after it was let out."""
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[Mapping[str, Any]] = []
        self.waiting = 0
        self._turns = turns_of_a_send
        self._let_out = asyncio.Semaphore(0)
        self.task = asyncio.ensure_future(
            WebSocketConsumer.as_asgi()(dict(SCOPE), self.received.get, self._send)
        )
        self.received.put_nowait({"type": "websocket.connect"})

    async def _send(self, event: Mapping[str, Any]) -> None:
        self.waiting += 1
        await self._let_out.acquire()
        await turns(self._turns)
        self.waiting -= 1
        self.sent.append(event)
        if event["type"] == "websocket.close":
            self.received.put_nowait({"type": "websocket.disconnect", "code": event["code"]})

    def let_out(self, events: int = 1) -> None:
        """Let a number of events go to the peer."""
        for _ in range(events):
            self._let_out.release()

    async def subscribe(self, channel: str) -> None:
        """Connect and subscribe, and wait until the replies have left."""
        self.let_out(3)
        for number, command in enumerate(
            ({"id": 1}, {"id": 2, "method": 1, "params": {"channel": channel}}), 2
        ):
            text = json.dumps(command)
            self.received.put_nowait({"type": "websocket.receive", "text": text})
            await eventually(lambda number=number: len(self.sent) == number)  # type: ignore[misc]

    @property
    def published(self) -> list[Any]:
        """Return the data of the publications that left, in order."""
        lines = [line for event in self.sent for line in event.get("text", "").splitlines()]
        replies = [json.loads(line) for line in lines]
        return [reply["result"]["data"]["data"] for reply in replies if "id" not in reply]


@pytest.mark.parametrize("turns_of_a_send", [0, 1, 5])
async def test_everything_queued_leaves_in_order_before_the_close(
    node: Node, turns_of_a_send: int
) -> None:
    socket = Socket(turns_of_a_send=turns_of_a_send)
    await socket.subscribe("a")
    await publish(node, PLAIN, 1)
    await eventually(lambda: socket.waiting == 1)
    for value in (2, 3, 4):  # they wait behind the first one
        await publish(node, PLAIN, value)
        await turns()

    await node.disconnect_user("")
    await turns(20)
    assert socket.published == []
    socket.let_out(100)
    await socket.task

    assert socket.published == [1, 2, 3, 4]
    assert socket.sent[-1] == FORCED
    assert [event["type"] for event in socket.sent].count("websocket.close") == 1


async def test_close_waits_for_each_frame_while_the_peer_reads_slowly(node: Node) -> None:
    socket = Socket()
    await socket.subscribe("a")
    await publish(node, PLAIN, 1)
    await eventually(lambda: socket.waiting == 1)
    await publish(node, PLAIN, 2)
    await node.disconnect_user("")
    await turns(20)

    socket.let_out()
    await eventually(lambda: socket.published == [1])
    await turns(20)
    assert socket.published == [1]
    socket.let_out()
    await eventually(lambda: socket.published == [1, 2])
    socket.let_out()
    await socket.task

    assert socket.sent[-1] == FORCED


async def test_close_leaves_at_once_when_nothing_is_queued(node: Node) -> None:
    socket = Socket()
    await socket.subscribe("a")
    await node.disconnect_user("")
    socket.let_out()
    await socket.task
    assert (socket.published, socket.sent[-1]) == ([], FORCED)


async def test_nothing_published_after_the_close_began_is_sent(node: Node) -> None:
    socket = Socket()
    await socket.subscribe("a")
    await publish(node, PLAIN, 1)
    await eventually(lambda: socket.waiting == 1)
    await node.disconnect_user("")
    await eventually(lambda: "a" not in node.hub.feeds)
    await publish(node, PLAIN, 2)
    socket.let_out(100)
    await socket.task
    assert socket.published == [1]


async def test_nothing_published_after_a_disconnect_was_acknowledged_is_sent(node: Node) -> None:
    socket = Socket()
    await socket.subscribe("a")
    await publish(node, PLAIN, 1)
    await node.disconnect_user("")
    await publish(node, PLAIN, 2)
    socket.let_out(100)
    await socket.task
    assert socket.published == [1]
    assert socket.sent[-1] == FORCED


async def test_nothing_follows_the_close_frame_while_the_peer_has_not_answered() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(event: Mapping[str, Any]) -> None:
        sent.append(event)

    loop = asyncio.get_running_loop()
    transport = WebSocketTransport(send, loop.create_task(asyncio.Event().wait()))
    outbox = ClientOutbox(
        transport, Flusher(loop), binary=False, limit_bytes=0, overflow=lambda slow: None
    )
    closing = loop.create_task(transport.close(DisconnectForced.code, DisconnectForced.advice))
    await eventually(lambda: bool(sent))

    outbox.append(b"{}\n")
    await turns()

    assert sent == [FORCED]
    transport.closed()
    await closing
    transport.abandon()
