"""The maps of the memory engine: the entries beside its streams."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from realtime.engine.base import Outgoing
from realtime.engine.maps import Page, Refusal, entry_size
from realtime.engine.versions import Version
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.timers import Timers


class _Entry(Struct, gc=False):
    put: Publication
    version: Version | None
    end: float
    """When its lifetime is over, by the clock of the loop; infinity: never."""
    size: int
    """Bytes of key and data."""


class _Map:
    __slots__ = ("entries", "keys", "size")

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}
        self.keys: list[str] = []
        """Sorted by code points, which is the order of bytes in UTF-8."""
        self.size = 0
        """Bytes of all entries."""


class MemoryMaps:
    """See `engine.maps.Maps` for the contract."""

    def __init__(self, timers: Timers, position: Callable[[ChannelName], StreamPosition]) -> None:
        """`position`: returns the top of a stream."""
        self._timers = timers
        self._position = position
        self._maps: dict[ChannelName, _Map] = {}
        """Maps with entries."""
        self._count = 0
        """Entries of all maps."""
        self._ends: list[tuple[float, ChannelName, str]] = []
        """A heap: of each entry the end of its lifetime or an earlier one. Some have no entry."""

    def __contains__(self, channel: object) -> bool:
        return channel in self._maps

    def current(self, channel: ChannelName, key: str) -> Publication | None:
        entry = self._entry(channel, key)
        return None if entry is None else entry.put

    def _entry(self, channel: ChannelName, key: str) -> _Entry | None:
        found = self._maps.get(channel)
        return None if found is None else found.entries.get(key)

    # changes

    def refusal(self, outgoing: Outgoing) -> Refusal:
        """Return why a change is not to be made; its idempotency key has been asked."""
        publication, mode, options = outgoing.publication, outgoing.key_mode, outgoing.options
        found = self._map(outgoing.channel)
        entry = found.entries.get(publication.key)
        if (expect := outgoing.expect) is not None:
            offset = entry.put.offset if entry else 0
            last = StreamPosition(offset, self._position(outgoing.channel).epoch)
            if expect not in (last, offset):
                return "position_mismatch"
        version = outgoing.version
        if version is not None and entry is not None and not version.follows(entry.version):
            return "version"
        if mode:
            lives = entry is not None and entry.end > self._timers.now()
            if entry is not None and lives and mode != "if_exists":
                if mode == "renew":
                    self._renew(entry, outgoing)
                return "key_exists"
            if mode == "if_exists" and not lives:
                return "key_not_found"
        if publication.removed:
            return "key_not_found" if entry is None else ""
        size = found.size + entry_size(publication)
        if entry is not None:
            size -= entry.size
        elif len(found.keys) >= options.map_max_keys:
            return "full"
        return "full" if size > options.map_max_bytes else ""

    def change(self, outgoing: Outgoing, publication: Publication) -> None:
        """Make a change. `publication`: as it was kept in the stream, if there is one."""
        key, found = publication.key, self._map(outgoing.channel)
        former = found.entries.get(key)
        if former is not None:
            found.size -= former.size
        if publication.removed:
            del found.entries[key], found.keys[bisect_left(found.keys, key)]
            self._count -= 1
            if not found.keys:
                del self._maps[outgoing.channel]
            return
        if former is None:
            self._maps[outgoing.channel] = found
            insort(found.keys, key)
            self._count += 1
        if not outgoing.options.keeps_history:
            publication = replace(publication, offset=0, time=time.time_ns() // 1_000_000)
        end = inf if former is None else former.end
        entry = _Entry(publication, outgoing.version, end, entry_size(publication))
        found.entries[key] = entry
        found.size += entry.size
        self._renew(entry, outgoing)

    def _map(self, channel: ChannelName) -> _Map:
        return self._maps.get(channel) or _Map()

    def _renew(self, entry: _Entry, outgoing: Outgoing) -> None:
        """Begin the lifetime that a change asks for."""
        ttl = outgoing.options.ttl(outgoing.ttl)
        end = self._timers.now() + ttl if ttl else inf
        if end < entry.end:
            self._note_end(end, outgoing.channel, entry.put.key)
        entry.end = end

    def _note_end(self, end: float, channel: ChannelName, key: str) -> None:
        heappush(self._ends, (end, channel, key))
        if len(self._ends) > 2 * self._count + 100:  # most are of former puts
            self._ends = [
                (entry.end, channel, key)
                for channel, found in self._maps.items()
                for key, entry in found.entries.items()
                if entry.end < inf
            ]
            heapify(self._ends)

    # reading

    async def page(self, channel: ChannelName, cursor: str = "", limit: int = 100) -> Page:
        found = self._maps.get(channel)
        if found is None:
            return Page((), "", self._position(channel), 0)
        start = bisect_right(found.keys, cursor) if cursor else 0
        keys = found.keys[start : start + limit]
        is_last = not keys or start + limit >= len(found.keys)
        entries = tuple(found.entries[key].put for key in keys)
        return Page(entries, "" if is_last else keys[-1], self._position(channel), len(found.keys))

    async def get(self, channel: ChannelName, key: str) -> Page:
        entry, found = self.current(channel, key), self._maps.get(channel)
        size = 0 if found is None else len(found.keys)
        return Page(() if entry is None else (entry,), "", self._position(channel), size)

    async def due(self, limit: int) -> list[tuple[ChannelName, str]]:
        now, ends = self._timers.now(), self._ends
        due: list[tuple[float, ChannelName, str]] = []
        while len(due) < limit and ends and ends[0][0] <= now:
            end, channel, key = heappop(ends)
            entry = self._entry(channel, key)
            if entry is None or (end, channel, key) in due[-1:]:
                continue
            if entry.end == end:
                due.append((end, channel, key))
            elif end < entry.end < inf:  # a later put made the lifetime longer
                heappush(ends, (entry.end, channel, key))
        for each in due:  # each is named until it is removed
            heappush(ends, each)
        return [(channel, key) for _, channel, key in due]
