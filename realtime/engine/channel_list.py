"""A list of a node: a set in Redis or PostgreSQL, kept equal to the channels or users there.

Nodes change it all the time, the server may be away, and every change may be the first subscriber
or the last one of a channel over all nodes. So changes are written in batches, one after the
other, and each write says whether it is news.

States
    new       `open` was not called: changes are noted, nothing is written
    open      a writer task runs as long as there are changes
    closed    nothing is written any more

Events
    add, discard    the node subscribed or unsubscribed
    written         a part of the batch is at the server
    failed          the server did not take a part; this and the rest of the batch wait for `renew`
    doubt           the server was away: it may have lost names, or got old ones back
    renew           a heartbeat: write what failed, check the set
    begin_anew      another node took the names out of the set, and reported their ends
    finish, close   the node stops

A name is in up to three sets:

    _names       subscribed now: what the set at the server is to become
    _reported    listed, as far as other nodes know
    _changed     to be written by the next batch; or _failed: to be written by the next `renew`

    name in       to write    report
    _names        SADD        if not in _reported: this may be the first subscriber
    not _names    SREM        if in _reported: this may have been the last subscriber

Invariants
    - Both columns are looked up when a batch starts, not when the change is made. A change that
      was undone in between is therefore written, since the write before it may have failed
      halfway, but not reported.
    - A name in neither _changed nor _failed nor the batch under way is in the set exactly if it is
      in _names; unless the server lost the set, or it is doubtful.
    - Clients choose the names, so what is remembered is bounded. Of the names that failed, those
      that are neither in _names nor in _reported may be forgotten, because there is nothing left
      to report. They may still be in the set, which is doubtful then.
    - The server may lose the set, and a command that arrives late may add a name to it. `renew`
      compares its size with the number of names. Changes that were made since the last finished
      batch may be counted or not, so the sizes may differ by their number. If names are missing,
      all are written again; if there are others, the set is doubtful. As many missing names as
      others are not seen by the size. They come from an older copy of the set, so after a `doubt`
      it is doubtful, too. Of a doubtful set `renew` reads the names, and writes those that differ.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from realtime.channel_rules import INTERNAL
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.engine")

MAX_NAMES_PER_STEP = 200
"""Names written in one step. Redis runs nothing else meanwhile."""

LISTED_TIMEOUT = 0.5
"""Seconds a subscribe waits until its channel is listed. The list is at one server; while that is
away, channels of other servers must not suffer."""

MAX_FAILED = 10_000
"""Failed names, besides the subscribed ones, that are remembered one by one."""


FirstAndLast: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Names that were in no list before, and names that are in none any more."""


class ChannelSet(Protocol):
    """The set at the server. All methods raise EngineUnavailable."""

    async def change(
        self, added: Sequence[ChannelName], removed: Sequence[ChannelName], *, report: bool
    ) -> FirstAndLast | None:
        """Add and remove names.

        Args:
            report: whether the result names those that came first, or went last, at all nodes.

        Returns:
            These names; None if the node counted as dead, and another one swept the set.
        """

    async def size(self) -> int:
        """Return the number of names."""

    async def members(self) -> set[ChannelName]:
        """Return the names."""


class ChannelList:
    """See the module. Belongs to an event loop."""

    def __init__(self, pause: float = 0.0) -> None:
        """`pause`: seconds between two writes, and until a name is removed, which may come back."""
        self._pause = pause
        self._written_at = -math.inf
        """Loop time at which the last write ended."""
        self._set: ChannelSet | None = None
        self._report: Callable[[Sequence[str], Sequence[str]], None]
        """Gets a `FirstAndLast` of the set; there is none before `open`."""
        self._is_closed = False
        self._names: set[ChannelName] = set()
        self._reported: set[ChannelName] = set()
        self._changed: set[ChannelName] = set()
        self._failed: set[ChannelName] = set()
        self._is_doubtful = False
        """Whether the set may be an older copy of itself, or hold names that are not remembered."""
        self._next_batch: asyncio.Future[None] | None = None
        """Completes when the batch that will take `_changed` is written or has failed."""
        self._writer: asyncio.Task[None] | None = None
        self._num_changes = 0
        self._num_settled = 0
        """Number of changes that were made before the last finished batch began."""
        self._is_failing = False
        """Whether the last batch failed."""

    def __contains__(self, name: ChannelName) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def open(
        self, channel_set: ChannelSet, report: Callable[[Sequence[str], Sequence[str]], None]
    ) -> None:
        """Begin to write, what was noted so far included."""
        self._set, self._report = channel_set, report
        if self._changed:
            self._write_soon()

    def add(self, name: ChannelName) -> asyncio.Future[None]:
        """Add a name. Return a future that completes when it is written, or has failed."""
        self._names.add(name)
        return self._change(name)

    async def add_with(self, name: ChannelName, subscribing: Awaitable[None]) -> None:
        """Add a channel that is being subscribed; wait a little until it is listed.

        Internal channels are not listed. Where subscribing fails, the channel is removed again.
        """
        listed = None if name.startswith(INTERNAL) else self.add(name)
        try:
            await subscribing
            if listed is not None:
                await asyncio.wait([listed], timeout=LISTED_TIMEOUT)
        except BaseException:
            self.discard(name)
            raise

    def discard(self, name: ChannelName) -> None:
        """Remove a name, soon. An unknown name is ignored."""
        if name in self._names:
            self._names.remove(name)
            self._change(name)

    def doubt(self) -> None:
        """Have the next `renew` compare the names one by one: the server was away."""
        self._is_doubtful = True

    async def begin_anew(self) -> None:
        """Report the names anew that another node took out of the set. `renew` writes them.

        Nothing may be written meanwhile.

        Raises:
            EngineUnavailable: the set could not be read.
        """
        if self._set is not None:
            self._reported &= await self._set.members()
            self._failed |= self._names

    async def renew(self) -> None:
        """Write again what the set lacks.

        Raises:
            EngineUnavailable: the server did not answer, or refused. The next call continues.
        """
        channel_set = self._set
        if channel_set is None:
            return
        if self._failed:
            self._changed |= self._failed
            self._failed.clear()
            await asyncio.shield(self._write_soon())
        if self._is_doubtful:
            await self._compare(channel_set)
        num_settled = self._num_settled
        size = await channel_set.size()
        surplus = size - len(self._names)
        tolerance = self._num_changes - num_settled
        if surplus > tolerance:
            self._is_doubtful = True
        elif -surplus > tolerance:
            self._changed |= self._names
            await asyncio.shield(self._write_soon())

    async def _compare(self, channel_set: ChannelSet) -> None:
        """Write again the names that are in the set or in `_names` alone."""
        self._is_doubtful = False  # a loss of the server meanwhile sets it again
        try:
            names = await channel_set.members()
        except EngineUnavailable:
            self._is_doubtful = True
            raise
        # a name that changed meanwhile may be among them: it is written once more
        if difference := names ^ self._names:
            self._changed |= difference
            await asyncio.shield(self._write_soon())

    async def finish(self) -> None:
        """Write the changes so far, then close."""
        await self.idle()
        await self.close()

    async def idle(self) -> None:
        """Wait until no change is being written."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

    async def close(self) -> None:
        """Write nothing more, and complete the futures that callers wait for."""
        self._is_closed = True
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        self._complete(self._take_next_batch())

    # batches

    def _change(self, name: ChannelName) -> asyncio.Future[None]:
        self._num_changes += 1
        self._changed.add(name)
        self._failed.discard(name)
        return self._write_soon()

    def _write_soon(self) -> asyncio.Future[None]:
        """Return the future of the next batch, which a writer takes if there is a set."""
        if self._next_batch is None:
            self._next_batch = asyncio.get_running_loop().create_future()
        batch = self._next_batch
        if self._set is None or self._is_closed:
            self._complete(self._take_next_batch())
        elif self._writer is None:
            self._writer = asyncio.create_task(self._write(self._set))
        return batch

    def _take_next_batch(self) -> asyncio.Future[None] | None:
        batch, self._next_batch = self._next_batch, None
        return batch

    @staticmethod
    def _complete(batch: asyncio.Future[None] | None) -> None:
        if batch is not None and not batch.done():
            batch.set_result(None)

    async def _write(self, channel_set: ChannelSet) -> None:
        """Write one batch after the other, until nothing is changed."""
        try:
            if self._pause:
                await self._wait_for_more()
            while (batch := self._take_next_batch()) is not None:
                names, self._changed = self._changed, set()
                num_changes = self._num_changes
                try:
                    await self._write_batch(channel_set, names)
                    self._is_failing = False
                except EngineUnavailable as error:
                    self._keep_failed(names)
                    if not self._is_failing:  # why is in another line: a heartbeat fails, too
                        logger.debug("The channel list could not be written: %s", error)
                    self._is_failing = True
                finally:
                    self._num_settled = num_changes
                    self._complete(batch)
        finally:
            self._written_at = asyncio.get_running_loop().time()
            self._writer = None

    async def _wait_for_more(self) -> None:
        """Wait for changes that share the write. The first names after a pause wait for none."""
        if self._changed <= self._names:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, self._written_at + self._pause - now))
        else:
            await asyncio.sleep(self._pause)

    async def _write_batch(self, channel_set: ChannelSet, names: set[ChannelName]) -> None:
        """Write names, in parts; take those that are written out of `names`."""
        groups: dict[tuple[bool, bool], list[ChannelName]] = {}
        for name in sorted(names):
            is_added = name in self._names
            is_news = is_added != (name in self._reported)
            groups.setdefault((is_added, is_news), []).append(name)
        for (is_added, is_news), group in groups.items():
            for start in range(0, len(group), MAX_NAMES_PER_STEP):
                part = group[start : start + MAX_NAMES_PER_STEP]
                added, removed = (part, []) if is_added else ([], part)
                found = await channel_set.change(added, removed, report=is_news)
                if found is None:
                    raise EngineUnavailable("this node counted as dead, and was swept")
                self._report(*found)
                self._reported.update(added)
                self._reported.difference_update(removed)
                names.difference_update(part)

    def _keep_failed(self, names: set[ChannelName]) -> None:
        """Remember names for `renew`, as far as there is room."""
        self._failed |= names - self._changed
        if len(self._failed) > len(self._names) + MAX_FAILED:
            self._failed &= self._names | self._reported
            self._is_doubtful = True
