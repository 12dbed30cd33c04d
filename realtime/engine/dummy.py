"""The dummy engine, for processes without clients: what is published goes nowhere.

It has no streams, no presence and no nodes, so everything that is read is empty. Nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from realtime.config.options import ChannelOptions
from realtime.engine.base import History, Outgoing, Published
from realtime.engine.lists import NoLists
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)

NOWHERE = StreamPosition(0, "")


class DummyStreams:
    """Streams that keep nothing. See `engine.base.Streams`."""

    async def publish(
        self,
        channel: ChannelName,
        publication: Publication,
        options: ChannelOptions,
        once: Once | None = None,
        version: Version | None = None,
    ) -> StreamPosition | None:
        return None

    async def publish_many(self, publications: Sequence[Outgoing]) -> list[Published]:
        return [None] * len(publications)

    async def join(self, channel: ChannelName, info: ClientInfo) -> None:
        pass

    async def leave(self, channel: ChannelName, info: ClientInfo) -> None:
        pass

    async def history(
        self,
        channel: ChannelName,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        return History((), NOWHERE)

    async def position(self, channel: ChannelName, at: int | None = None) -> StreamPosition:
        return NOWHERE

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        return [NOWHERE] * len(channels)

    async def top(self, channel: ChannelName) -> History:
        return History((), NOWHERE)

    async def remove_history(self, channel: ChannelName) -> None:
        pass

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        pass


class DummyPresence:
    """A presence without clients. See `engine.base.Presence`."""

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        pass

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        pass

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        return {}


class DummyStore:
    """The parts of the dummy engine. See `engine.base.Store`."""

    def __init__(self) -> None:
        self.broker = DummyStreams()
        self.presence = DummyPresence()
        self.cluster = None
        self.lists = NoLists()
