"""An engine on a bench: with a receiver that keeps what arrives, and time that can pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable

from realtime.engine.base import Engine
from realtime.options import ChannelOptions
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.unit.parts import data, eventually

PLAIN = ChannelOptions()
KEPT = ChannelOptions(history_size=5, history_lifetime=10)
META_LIFETIME = 100
"""Seconds an engine made with a bound keeps the position of an unused channel."""


class RecordingReceiver:
    """A node that keeps what its engine hands over, by channel."""

    def __init__(self) -> None:
        self.publications: dict[str, list[tuple[Publication, StreamPosition | None]]] = defaultdict(
            list
        )
        self.joins: dict[str, list[ClientInfo]] = defaultdict(list)
        self.leaves: dict[str, list[ClientInfo]] = defaultdict(list)

    def on_publication(
        self, channel: str, publication: Publication, position: StreamPosition | None
    ) -> None:
        self.publications[channel].append((publication, position))

    def on_join(self, channel: str, info: ClientInfo) -> None:
        self.joins[channel].append(info)

    def on_leave(self, channel: str, info: ClientInfo) -> None:
        self.leaves[channel].append(info)


class Bench:
    """One engine under test with its receiver, and a way to let time pass."""

    def __init__(
        self,
        engine: Engine,
        forgetful: Engine,
        elapse: Callable[[float], Awaitable[None]],
    ) -> None:
        self.engine = engine
        self.forgetful = forgetful
        """The same kind of engine, which forgets unused positions after META_LIFETIME."""
        self.elapse = elapse
        self.receiver = RecordingReceiver()

    async def publish(
        self, channel: str, *values: int, options: ChannelOptions = KEPT
    ) -> StreamPosition | None:
        position = None
        for value in values:
            publication = Publication(data(str(value)), uid=f"u{value}")
            position = await self.engine.publish(channel, publication, options)
        return position

    async def kept(self, channel: str) -> list[int]:
        """The offsets of what is kept."""
        return [p.offset for p in (await self.engine.history(channel)).publications]

    async def received(self, channel: str, number: int) -> list[Publication]:
        """The publications handed over, when there are so many."""
        await eventually(lambda: len(self.receiver.publications[channel]) >= number)
        return [publication for publication, _ in self.receiver.publications[channel]]
