"""How the events of an answer leave: while it is silent, to slow readers, and to those who go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.answers import http
from realtime.transports.asgi import Exchange
from tests.server import TIMEOUT


class Reader:
    """A peer that takes what it is sent, or goes."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.has_gone = asyncio.Event()
        self.backlog = 0
        self.is_closed = False
        """Whether the stream was closed."""
        self.chunks: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> Any:
        await self.has_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Any) -> None:
        self.sent.append(event["body"] if event.get("more_body") else b"END")

    def backlog_bytes(self) -> int:
        return self.backlog

    async def stream(self, *_: Any) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self.chunks.get()) is not None:
                yield chunk
        finally:
            self.is_closed = True

    async def until(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT):
            while len(self.sent) < count:
                await asyncio.sleep(0.001)


@pytest.fixture
async def reader(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reader]:
    """A reader of a stream."""
    peer: Any = Reader()
    monkeypatch.setattr(http, "PING", 0.01)
    monkeypatch.setattr(http, "_stream", peer.stream)
    monkeypatch.setattr(http, "connection_of", lambda send: peer)
    exchange = Exchange({"method": "GET"}, peer.receive, peer.send)
    peer.serving = asyncio.ensure_future(http._serve(peer, None, exchange))
    yield peer
    assert peer.serving.done()


async def ended(reader: Any) -> None:
    async with asyncio.timeout(TIMEOUT):
        await reader.serving
        while not reader.is_closed:
            await asyncio.sleep(0.001)


async def test_comments_leave_while_it_is_silent_and_none_after_its_end(reader: Reader) -> None:
    await reader.until(4)
    assert set(reader.sent) == {b":\n\n"}
    reader.chunks.put_nowait(b"data: 1\n\n")
    reader.chunks.put_nowait(None)
    await ended(reader)
    await asyncio.sleep(5 * http.PING)
    assert [each for each in reader.sent if each != b":\n\n"] == [b"data: 1\n\n", b"END"]
    assert reader.sent[-1] == b"END"


async def test_reader_who_goes_ends_the_stream(reader: Reader) -> None:
    await reader.until(2)
    reader.has_gone.set()
    await ended(reader)
    count = len(reader.sent)
    await asyncio.sleep(5 * http.PING)
    assert reader.sent == [b":\n\n"] * count


async def test_slow_reader_holds_the_stream(reader: Reader) -> None:
    reader.backlog = http.MAX_BACKLOG + 1
    for _ in range(3):
        reader.chunks.put_nowait(b"data: 1\n\n")
    reader.chunks.put_nowait(None)
    await asyncio.sleep(5 * http.DRAIN)
    assert reader.sent.count(b"data: 1\n\n") == 1
    reader.backlog = 0
    await ended(reader)
    assert reader.sent.count(b"data: 1\n\n") == 3
