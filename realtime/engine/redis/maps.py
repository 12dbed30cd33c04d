"""Maps over Redis: entries beside the streams. `lua/append.lua` changes both in one step."""

from __future__ import annotations

from collections.abc import Callable

from realtime.engine import records
from realtime.engine.base import Outgoing
from realtime.engine.entries import Entries
from realtime.engine.maps import Page, entry_size
from realtime.engine.redis.redis_bus import ShardRequest
from realtime.engine.redis.scripts import DUE, PAGE, ReadReply
from realtime.engine.redis.shards import MAX_COUNT, OTHER_KEYS, Shards, decoding
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.redis.commands import Argument, ScriptCall


def with_change(outgoing: Outgoing, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return what `lua/append.lua` names ARGV for a change of a map, after what others have."""
    publication, options = outgoing.publication, outgoing.options
    return (
        *arguments,
        publication.key,
        outgoing.key_mode,
        options.ttl(outgoing.ttl),
        _member(outgoing.channel, publication.key),
        "" if publication.removed else entry_size(publication),
        options.map_max_keys,
        options.map_max_bytes,
    )


def _member(channel: ChannelName, key: str) -> bytes:
    """Return a key of a channel as one member of the lifetimes."""
    name = channel.encode()
    return b"%d:%b%b" % (len(name), name, key.encode())


def _of_member(member: bytes) -> tuple[ChannelName, str]:
    length, _, rest = member.partition(b":")
    return rest[: int(length)].decode(), rest[int(length) :].decode()


def to_entry(shards: Shards, entry: bytes) -> Publication:
    """Return the put in an entry.

    Raises:
        Exception: no node wrote this entry, or with another encryption key.
    """
    offset, time_ms, _, _, _, length, rest = entry.split(b":", 6)
    return records.to_publication(shards.unpack(rest[int(length) :]), int(offset), int(time_ms))


class RedisMaps:
    """See `engine.maps.Maps` for the contract."""

    def __init__(
        self, shards: Shards, read_call: Callable[[ChannelName], ScriptCall[ReadReply]]
    ) -> None:
        """`read_call`: returns the call that reads the position of a stream."""
        self._shards = shards
        self._read_call = read_call
        self._entries = Entries("an entry of a map", OTHER_KEYS)
        self._due = Entries("a lifetime of an entry", OTHER_KEYS)

    async def page(self, channel: ChannelName, cursor: str = "", limit: int = 100) -> Page:
        return await self._read(channel, f"({cursor}" if cursor else "-", "+", limit)

    async def get(self, channel: ChannelName, key: str) -> Page:
        return await self._read(channel, f"[{key}", f"[{key}", 1)

    async def _read(self, channel: ChannelName, least: str, greatest: str, limit: int) -> Page:
        read = self._read_call(channel)
        keys = (*read.keys, *self._shards.keys.map(channel)[:2])
        arguments: tuple[Argument, ...] = (least, greatest, min(limit, MAX_COUNT))
        call = ScriptCall(PAGE, keys, (*read.arguments, *arguments))
        reply = await self._shards.call(self._shards.shard(channel), call)
        with decoding("a map"):
            offset, epoch, size, names, values, more = reply
            position = StreamPosition(int(offset), epoch.decode())
            cursor = names[-1].decode() if more and names else ""
        entries = self._entries.decoded(values, lambda value: to_entry(self._shards, value))
        return Page(tuple(entries), cursor, position, size)

    async def due(self, limit: int) -> list[tuple[ChannelName, str] | EngineUnavailable]:
        redis = self._shards.redis
        requests = [
            ShardRequest(shard, ScriptCall(DUE, (f"{root}:map.expiry",), (limit, f"{root}:map:")))
            for root in self._shards.keys.roots()
            for shard in redis.servers.shards_with(root)
        ]
        found: list[tuple[int, bytes]] = []
        away: EngineUnavailable | None = None
        for reply in await self._shards.call_many(requests, reads=True):
            if isinstance(reply, EngineUnavailable):
                away = reply
            else:
                found += zip(map(int, reply[1::2]), reply[::2], strict=True)
        if away is not None and not found:
            raise away
        members = [member for _, member in sorted(found)[:limit]]
        return [*self._due.decoded(members, _of_member), *([away] if away else [])]
