"""The channels of one node, as a set in Redis that lives as long as the node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.engine")

NAMES_PER_COMMAND = 1000


class Listing:
    """Keeps the set equal to what is subscribed, in as few commands as possible.

    Changes are written together, one batch after another; a name that was added and
    discarded in between costs nothing. When Redis lost the set it is written anew.
    """

    def __init__(self, key: str, command: Callable[..., Awaitable[Any]]) -> None:
        """`command`: runs a Redis command, where the set is."""
        self._key = key
        self._command = command
        self._names: set[ChannelName] = set()
        self._changed: set[ChannelName] = set()
        self._unwritten: set[ChannelName] = set()
        """Changes that failed; `renew` writes them again."""
        self._next: asyncio.Future[None] | None = None
        """Done when all changes so far are written."""
        self._writer: asyncio.Task[None] | None = None
        self._made = 0
        """Changes so far."""
        self._seen = 0
        """How many of them are known to be written, or not to be."""
        self._lifetime = 0.0
        """Seconds the set lives when it is not renewed; 0: not known yet."""
        self._closed = False

    def add(self, name: ChannelName) -> asyncio.Future[None]:
        """Add a name; the future is done when it can be seen, or could not be written."""
        self._names.add(name)
        return self._change(name)

    def discard(self, name: ChannelName) -> None:
        """Remove a name; soon."""
        if name in self._names:
            self._names.remove(name)
            self._change(name)

    async def renew(self, lifetime: float) -> None:
        """Let the set live for `lifetime` seconds more; write it anew if Redis lost some of it.

        Raises:
            EngineUnavailable
        """
        self._lifetime = lifetime
        if self._unwritten:
            self._changed |= self._unwritten
            self._unwritten.clear()
            await asyncio.shield(self._written())
        if not self._names:
            return
        await self._expire()
        seen = self._seen
        written = await self._command(b"SCARD", self._key)
        # changes under way may or may not be counted
        if abs(written - len(self._names)) > self._made - seen:
            self._changed |= self._names
            await asyncio.shield(self._written())

    async def close(self) -> None:
        """Write nothing more, and keep nobody waiting."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        self._settle()

    def _change(self, name: ChannelName) -> asyncio.Future[None]:
        self._changed.add(name)
        self._made += 1
        return self._written()

    def _written(self) -> asyncio.Future[None]:
        """Done when all changes so far are written, or could not be."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        written = self._next
        if self._closed:
            self._settle()
        elif self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return written

    def _settle(self) -> None:
        written, self._next = self._next, None
        if written is not None and not written.done():
            written.set_result(None)

    async def _write(self) -> None:
        try:
            while self._next is not None:
                changed, self._changed = self._changed, set()
                written, self._next = self._next, None
                made = self._made
                try:
                    await self._send(b"SADD", changed & self._names)
                    await self._send(b"SREM", changed - self._names)
                    if self._lifetime and self._names:
                        await self._expire()
                except Exception as error:
                    self._unwritten |= changed
                    logger.warning("The list of channels could not be written: %s", error)
                finally:
                    self._seen = made
                    if not written.done():
                        written.set_result(None)
        finally:
            self._writer = None

    async def _expire(self) -> None:
        await self._command(b"PEXPIRE", self._key, int(self._lifetime * 1000))

    async def _send(self, command: bytes, names: set[ChannelName]) -> None:
        ordered = sorted(names)
        for start in range(0, len(ordered), NAMES_PER_COMMAND):
            await self._command(command, self._key, *ordered[start : start + NAMES_PER_COMMAND])
