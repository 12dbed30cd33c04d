"""The channels of one node, as a set in Redis that lives as long as the node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.engine")

NAMES_PER_STEP = 200
"""Names changed by one script, which Redis runs while everybody else waits."""

UNWRITTEN_ALLOWED = 10_000
"""Changes of names that are gone by now, to be written when Redis is there. More are not
remembered one by one, because clients choose the names: then the set is begun anew."""

Change = Callable[[Sequence[ChannelName], Sequence[ChannelName], bool], Awaitable[None]]
"""Called with names to add, names to remove, and whether anybody is to be told."""


class Listing:
    """Keeps the set equal to what is subscribed, in as few commands as possible.

    Changes are written together, one batch after another; what was undone in between is told
    to nobody. When Redis lost the set it is written anew, which is nothing new to anybody.
    """

    def __init__(self, key: str, command: Callable[..., Awaitable[Any]], change: Change) -> None:
        """
        Args:
            key: of the set.
            command: runs a Redis command, where the set is.
            change: adds and removes names, and tells whom it concerns.
        """
        self._key = key
        self._command = command
        self._change_set = change
        self._names: set[ChannelName] = set()
        self._changed: dict[ChannelName, bool] = {}
        """Names to write, and whether each was listed as far as others were told."""
        self._unwritten: dict[ChannelName, bool] = {}
        """The same for changes that failed; `renew` writes them again."""
        self._doubtful = False
        """Whether the set may hold names of which nothing is remembered."""
        self._next: asyncio.Future[None] | None = None
        """Done when all changes so far are written."""
        self._writer: asyncio.Task[None] | None = None
        self._made = 0
        """Changes so far."""
        self._seen = 0
        """How many of them are known to be written, or not to be."""
        self._lifetime = 0.0
        """Seconds the set lives when it is not renewed; 0: not known yet."""
        self._failing = False
        """Whether the last batch could not be written."""
        self._closed = False

    def add(self, name: ChannelName) -> asyncio.Future[None]:
        """Add a name; the future is done when it can be seen, or could not be written."""
        self._change(name)
        self._names.add(name)
        return self._written()

    def discard(self, name: ChannelName) -> None:
        """Remove a name; soon."""
        if name in self._names:
            self._change(name)
            self._names.remove(name)
            self._written()

    async def renew(self, lifetime: float) -> None:
        """Let the set live for `lifetime` seconds more; write it anew if Redis lost some of it.

        Raises:
            EngineUnavailable
        """
        self._lifetime = lifetime
        doubtful = self._doubtful
        if doubtful:
            await self._command(b"DEL", self._key)
            self._doubtful = False
            for name in self._names:
                self._change(name)
        if self._unwritten or doubtful:
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
            for name in self._names:
                self._change(name)
            await asyncio.shield(self._written())

    async def finish(self) -> None:
        """Write what has changed, and nothing more."""
        if self._writer is not None:
            await asyncio.wait([self._writer])
        await self.close()

    async def close(self) -> None:
        """Write nothing more, and keep nobody waiting."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        self._settle()

    def _change(self, name: ChannelName) -> None:
        """Note that a name is to be written, before it changes."""
        self._made += 1
        if name not in self._changed:
            self._changed[name] = self._unwritten.pop(name, name in self._names)

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
                changed, self._changed = self._changed, {}
                written, self._next = self._next, None
                made = self._made
                try:
                    await self._send(changed)
                    if self._lifetime and self._names:
                        await self._expire()
                    self._failing = False
                except Exception as error:  # of Redis or of who is told; nobody waits for it here
                    self._keep(changed)
                    if not self._failing:  # clients make the batches: one line for all that fail
                        logger.warning("The list of channels could not be written: %s", error)
                    self._failing = True
                finally:
                    self._seen = made
                    if not written.done():
                        written.set_result(None)
        finally:
            self._writer = None

    def _keep(self, changed: dict[ChannelName, bool]) -> None:
        """Write these later: what was to be told is not told yet."""
        for name, listed in changed.items():
            later = self._changed if name in self._changed else self._unwritten
            later[name] = listed
        if len(self._unwritten) > len(self._names) + UNWRITTEN_ALLOWED:
            # nobody was told of the others, so nobody has to be told that they are gone
            self._unwritten = {
                name: listed
                for name, listed in self._unwritten.items()
                if listed or name in self._names
            }
            self._doubtful = True

    async def _expire(self) -> None:
        await self._command(b"PEXPIRE", self._key, int(self._lifetime * 1000))

    async def _send(self, changed: dict[ChannelName, bool]) -> None:
        """Write changes, in parts; those that are written are taken out."""
        groups: dict[tuple[bool, bool], list[ChannelName]] = {}
        for name, listed in changed.items():
            groups.setdefault((name in self._names, listed), []).append(name)
        for (add, listed), names in groups.items():
            for start in range(0, len(names), NAMES_PER_STEP):
                part = names[start : start + NAMES_PER_STEP]
                await self._change_set(part if add else (), () if add else part, add != listed)
                for name in part:
                    del changed[name]
