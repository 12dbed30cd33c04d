"""The unidirectional WebSocket: a frame for each message, however slow the peer is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.protocol.frames import Frame
from realtime.transports.sending import WebSocketTransport
from realtime.transports.streaming.uni_websocket import UniWebSocketTransport


class Peer:
    """An ASGI server whose `send` waits for the peer, until `reads` is set."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.reads = asyncio.Event()

    @property
    def texts(self) -> list[Any]:
        return [event.get("text") for event in self.events]

    async def send(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)
        await self.reads.wait()


@pytest.fixture
async def peer() -> Peer:
    return Peer()


@pytest.fixture
async def transport(peer: Peer) -> UniWebSocketTransport:
    task = asyncio.current_task()
    assert task is not None
    return UniWebSocketTransport(WebSocketTransport(peer.send, task))


async def test_peer_that_reads_gets_a_frame_for_each_message(
    transport: UniWebSocketTransport, peer: Peer
) -> None:
    peer.reads.set()
    assert transport.send(Frame(b"{}\n{}\n[1]", binary=False)) == 0
    assert transport.ready
    assert peer.texts == ["{}", "{}", "[1]"]


async def test_rest_waits_for_a_slow_peer_and_counts(
    transport: UniWebSocketTransport, peer: Peer
) -> None:
    left = asyncio.Event()
    transport.when_ready(left.set)
    assert transport.send(Frame(b"{}\n[2]\n[22]", binary=False)) == len("{}[2][22]")
    assert (transport.ready, peer.texts) == (False, ["{}"])
    peer.reads.set()
    await left.wait()
    assert (transport.ready, transport.backlog) == (True, 0)
    assert peer.texts == ["{}", "[2]", "[22]"]


async def test_end_comes_behind_what_waits(transport: UniWebSocketTransport, peer: Peer) -> None:
    transport.send(Frame(b"[1]\n[2]\n[3]", binary=False))
    closing = asyncio.create_task(transport.close(3501, "bad request"))
    await asyncio.sleep(0)
    peer.reads.set()
    while len(peer.events) < 4:
        await asyncio.sleep(0)
    transport.closed()
    await closing

    assert peer.texts == ["[1]", "[2]", "[3]", None]
    assert peer.events[-1] == {"type": "websocket.close", "code": 3501, "reason": "bad request"}


async def test_nothing_is_sent_after_the_connection_is_lost(
    transport: UniWebSocketTransport, peer: Peer
) -> None:
    transport.send(Frame(b"[1]\n[2]", binary=False))
    transport.closed()
    peer.reads.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert peer.texts == ["[1]"]
