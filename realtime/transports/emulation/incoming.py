"""Frames that a client sent in separate requests: handled one after another, and bounded.

A request that brings frames is answered when they are taken. It waits while more than
`MAX_WAITING_BYTES` are unhandled, so that a client cannot send faster than its commands run.
Requests are taken in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from realtime.clients.dispatch import Dispatcher

MAX_WAITING_BYTES = 64 * 1024
"""Unhandled bytes after which no more frames are taken."""


class IncomingFrames:
    """The unhandled frames of one client."""

    def __init__(
        self, dispatcher: Dispatcher, spawn: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        """Args: `spawn` runs a coroutine in a task of the node."""
        self._dispatcher: Dispatcher | None = dispatcher
        dispatcher.client.session.lost_pongs = 0
        self._spawn = spawn
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._is_running = False
        self._has_room = asyncio.Event()
        self._taking = asyncio.Lock()
        """Held by the request whose frames come next."""

    async def take(self, frames: Sequence[bytes]) -> bool:
        """Take the frames of one request, and wait until the client may send more.

        Returns:
            Whether the frames were taken; False after `close`.
        """
        async with self._taking:
            await self._room()  # the request before this one may have been cancelled
            if self._dispatcher is None:
                return False
            if not frames:
                await self._dispatcher.receive_nothing()
            self._frames.extend(frames)
            self._bytes += sum(map(len, frames))
            if not self._is_running and self._frames:
                self._is_running = True
                self._spawn(self._handle())
            await self._room()
            return True

    def close(self) -> None:
        """Drop unhandled frames and take no more. Safe to call twice."""
        self._dispatcher = None
        self._has_room.set()

    async def _room(self) -> None:
        while self._bytes > MAX_WAITING_BYTES and self._dispatcher is not None:
            self._has_room.clear()
            await self._has_room.wait()

    async def _handle(self) -> None:
        try:
            while self._frames:
                dispatcher = self._dispatcher
                if dispatcher is None or dispatcher.client.is_closing():
                    return
                frame = self._frames.popleft()
                await dispatcher.receive(frame)
                self._bytes -= len(frame)
                if self._bytes <= MAX_WAITING_BYTES:
                    self._has_room.set()
        finally:
            self._frames.clear()
            self._bytes = 0
            self._is_running = False
            self._has_room.set()
