"""An engine on a bench: with a receiver that records, and time that a test moves."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, NamedTuple, TypeVar

import msgspec

from realtime.config.options import ChannelOptions
from realtime.engine.base import Affects, Broker, Engine, Joined, Notice, Outgoing, Presence
from realtime.engine.epochs import OwnLifetime, no_lifetime
from realtime.engine.limits import SharedLimits
from realtime.engine.lists import Kind
from realtime.engine.maps import Maps
from realtime.engine.memory import MemoryEngine
from realtime.engine.nodes import Cluster, NodeInfo
from realtime.engine.seen import SeenUsers
from realtime.protocol.messages import ChannelName, ClientInfo, Publication, StreamPosition
from realtime.timers import Timers
from tests.unit.parts import Clock, data, eventually
from tests.unit.suspended_engine import ClusterEngine

PLAIN = ChannelOptions()
KEPT = ChannelOptions(history_size=5, history_lifetime=100)
META_LIFETIME = 1000
OWN_LIFETIMES = {"short": 300, "long": 5000}
"""Seconds for which an engine with a bound keeps the position of an unused channel."""
CHECKED = 130
"""Seconds from a position check to the next, at most."""
NODE = NodeInfo("N1", "first", "1.0", 2, 1, 3, 60)
SECOND_NODE = NodeInfo("N2", "second", "1.0", 7, 5, 9, 10)
NODE_LIFETIME = 1000.0


class RecordingReceiver:
    """A node that records what its engine delivers, by channel."""

    def __init__(self) -> None:
        self.uid = NODE.uid
        self.publications: dict[str, list[tuple[Publication, StreamPosition | None]]] = defaultdict(
            list
        )
        self.joins: dict[str, list[ClientInfo]] = defaultdict(list)
        self.leaves: dict[str, list[ClientInfo]] = defaultdict(list)
        self.events: list[tuple[str, str]] = []
        """Kind and channel of everything that was delivered, in order."""
        self.firsts: dict[Kind, list[str]] = defaultdict(list)
        self.lasts: dict[Kind, list[str]] = defaultdict(list)
        self.occupancy: list[tuple[str, str]] = []
        """"occupied" or "vacated", and the channel, in order."""
        self.interruptions: list[Affects] = []
        self.resumptions: list[Affects] = []

    def on_publication(
        self, channel: str, publication: Publication, position: StreamPosition | None
    ) -> None:
        self.publications[channel].append((publication, position))
        self.events.append(("publication", channel))

    def on_notice(self, channel: str, notice: Notice) -> None:
        is_join = isinstance(notice, Joined)
        (self.joins if is_join else self.leaves)[channel].append(notice.info)
        self.events.append(("join" if is_join else "leave", channel))

    def on_first(self, kind: Kind, name: str) -> None:
        self.firsts[kind].append(name)
        if kind is Kind.CHANNELS:
            self.occupancy.append(("occupied", name))

    def on_last(self, kind: Kind, name: str) -> None:
        self.lasts[kind].append(name)
        if kind is Kind.CHANNELS:
            self.occupancy.append(("vacated", name))

    @property
    def occupied(self) -> list[str]:
        return self.firsts[Kind.CHANNELS]

    @property
    def vacated(self) -> list[str]:
        return self.lasts[Kind.CHANNELS]

    def is_occupied(self, channel: str) -> bool:
        """Return whether the last report about a channel was "occupied"."""
        kinds = [kind for kind, name in self.occupancy if name == channel]
        return kinds[-1:] == ["occupied"]

    def on_interrupted(self, affects: Affects) -> None:
        self.interruptions.append(affects)

    def on_advance(self, channel: str, position: StreamPosition) -> None:
        raise AssertionError("engines here know publications, too")

    def on_resumed(self, affects: Affects) -> None:
        self.resumptions.append(affects)


class Bench:
    """One engine under test with its receiver; `elapse` lets time pass."""

    def __init__(self, engine: Engine, elapse: Callable[[float], Awaitable[None]]) -> None:
        self.engine = engine
        self.elapse = elapse
        """Let seconds pass for everything that the engine keeps."""
        self.receiver = RecordingReceiver()

    @property
    def broker(self) -> Broker:
        return self.engine.broker

    @property
    def presence(self) -> Presence:
        return self.engine.presence

    @property
    def cluster(self) -> Cluster:
        assert self.engine.cluster is not None
        return self.engine.cluster

    @property
    def limits(self) -> SharedLimits:
        assert self.engine.limits is not None
        return self.engine.limits

    @property
    def maps(self) -> Maps:
        assert self.engine.maps is not None
        return self.engine.maps

    @property
    def last_seen(self) -> SeenUsers:
        assert self.engine.seen is not None
        return self.engine.seen

    async def publish(
        self, channel: str, *values: int, options: ChannelOptions = KEPT
    ) -> StreamPosition | None:
        position = None
        for value in values:
            publication = Publication(data(str(value)), uid=f"u{value}")
            position = (await self.broker.publish(Outgoing(channel, publication, options))).position
        return position

    async def kept(self, channel: str) -> list[int]:
        """Return the offsets of the kept publications."""
        return [p.offset for p in (await self.broker.history(channel)).publications]

    async def kept_values(self, channel: str) -> list[int]:
        """Return the data of the kept publications."""
        return [int(p.data.raw) for p in (await self.broker.history(channel)).publications]

    async def received(self, channel: str, number: int) -> list[Publication]:
        """Return the delivered publications, when there are at least `number`."""
        await eventually(lambda: len(self.receiver.publications[channel]) >= number)
        return [publication for publication, _ in self.receiver.publications[channel]]

    def values(self, channel: str) -> list[int]:
        """Return the data of the publications delivered so far."""
        return [int(p.data.raw) for p, _ in self.receiver.publications[channel]]

    async def listed(self, channel: str) -> bool:
        """Return whether a channel is listed."""
        return channel in await self.channels()

    async def channels(self) -> list[str]:
        """Return the channels that a node lists."""
        return list(await self.engine.lists.names(Kind.CHANNELS))

    async def idle(self) -> None:
        """Wait until the changes of lists so far are written."""

    def overdue_at(self, node: str) -> int:
        """Return when the heartbeats of a node are overdue, Unix ms."""
        raise NotImplementedError

    def write_name(self, kind: Kind, node: str, name: bytes) -> None:
        """Write any bytes as a name into the list of a node."""
        raise NotImplementedError

    def lose_list(self, kind: Kind, node: str) -> None:
        """Delete a list of a node, as if the server had lost it."""
        raise NotImplementedError

    async def nodes(self) -> list[NodeInfo]:
        """Return the nodes that are alive."""
        return [status.info() for status in await self.cluster.statuses() if status.alive]


B = TypeVar("B", bound=Bench, covariant=True)


class PairOf(NamedTuple, Generic[B]):
    """Two nodes of one service."""

    one: B
    other: B


Pair = PairOf[Bench]


def several(
    channels: Sequence[ChannelName], values: range, options: ChannelOptions
) -> list[Outgoing]:
    """Return one publication for each value, in the channels by turns."""
    return [
        Outgoing(
            channels[value % len(channels)],
            Publication(data(str(value)), uid=f"u{value}"),
            options,
        )
        for value in values
    ]


def untimed(publications: Iterable[Publication]) -> list[Publication]:
    """Return publications without their times, which only history has."""
    return [msgspec.structs.replace(publication, time=0) for publication in publications]


async def comes_true(condition: Callable[[], Awaitable[bool]], timeout: float = 10.0) -> None:
    """Wait until an asynchronous condition holds."""
    pause = 0.01
    async with asyncio.timeout(timeout):
        while not await condition():
            await asyncio.sleep(pause)
            pause = min(0.05, pause * 1.2)


@asynccontextmanager
async def memory_bench(
    meta_lifetime: int = 0, own_lifetime: OwnLifetime = no_lifetime, *, clustered: bool = False
) -> AsyncIterator[Bench]:
    """Start an engine in memory; the test moves the clock of the loop.

    `clustered`: with the cluster that tests of the node use.
    """
    loop = asyncio.get_running_loop()
    clock = Clock(loop)
    timers = Timers(loop)
    engine: Engine = MemoryEngine(timers, meta_lifetime=meta_lifetime, own_lifetime=own_lifetime)
    if clustered:
        engine = ClusterEngine(timers)
    bench = Bench(engine, clock.advance)
    try:
        await engine.start(bench.receiver, bench.receiver.uid)
        if clustered:
            await bench.cluster.announce(NODE, NODE_LIFETIME)
        yield bench
        await engine.stop()
        timers.close()
    finally:
        del loop.time
