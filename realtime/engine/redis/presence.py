"""Presence in Redis: a hash and the expiry of its entries for each channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from realtime.engine import records
from realtime.engine.redis.scripts import REMOVE_PRESENCE
from realtime.engine.redis.shards import Shards, decoding
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo


class RedisPresence:
    """See `engine.base.Presence` for the contract."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._keys = shards.keys

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        entries = [(info.client, records.of_client(info)) for info in clients]
        await self._shards.add_entries(channel, self._keys.presence(channel), entries, lifetime)

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        await self._shards.run(channel, REMOVE_PRESENCE, self._keys.presence(channel), (client,))

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        packed = await self._shards.packed_entries(channel, self._keys.presence(channel))
        with decoding("an entry"):
            entries = [(name.decode(), self._shards.unpack(value)) for name, value in packed]
        with decoding("a presence entry"):
            return {client: records.to_client(message) for client, message in entries}
