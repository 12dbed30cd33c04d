"""An engine whose calls a test holds, lets go on, or lets fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from realtime.engine.base import History, Outgoing, Published, Receiver
from realtime.engine.epochs import new_epoch
from realtime.engine.limits import BlockList, Debt, ListVersion, Places
from realtime.engine.memory import MemoryLists, MemoryPresence
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, StreamPosition
from realtime.timers import Timers
from tests.unit.memory_cluster import (
    ClusterLists,
    ClusterState,
    ListedBroker,
    MemoryCluster,
    MemoryLimits,
)
from tests.unit.parts import eventually

P = ParamSpec("P")
T = TypeVar("T")

BROKER_METHODS = (
    "subscribe",
    "unsubscribe",
    "publish",
    "join",
    "leave",
    "history",
    "position",
    "renew_epoch",
)
PRESENCE_METHODS = ("presence.add", "presence.remove", "presence.get")
CLUSTER_METHODS = (
    "announce",
    "withdraw",
    "statuses",
    "claim",
    "owner",
)
LIMITS_METHODS = (
    "block",
    "unblock",
    "blocked",
    "blocked_version",
    "add_debts",
    "place_connections",
)
METHODS = (*BROKER_METHODS, *PRESENCE_METHODS, *CLUSTER_METHODS, *LIMITS_METHODS)
"""What a test can hold."""


class Gate:
    """Holds calls, counts them, and lets them fail."""

    def __init__(self) -> None:
        self.held: dict[str, asyncio.Event] = {}
        """The methods whose calls wait."""
        self._answers_held: set[str] = set()
        self.failing: set[str] = set()
        self.waiting: list[str] = []
        self.calls: Counter[str] = Counter()

    def hold(self, *methods: str) -> None:
        """Hold the calls of these methods from now on, until `go_on`."""
        for method in methods:
            self.held[method] = asyncio.Event()

    def hold_answer(self, method: str) -> None:
        """As `hold`, but a call takes effect before it waits."""
        self.hold(method)
        self._answers_held.add(method)

    def go_on(self, *methods: str) -> None:
        """Let the calls that wait go on, and all that come."""
        for method in methods:
            self.held.pop(method).set()
            self._answers_held.discard(method)

    async def reached(self, method: str) -> None:
        """Wait until a call of this method waits."""
        await eventually(lambda: method in self.waiting)

    async def through(
        self,
        method: str,
        call: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Make a call when it may go on."""
        self.calls[method] += 1
        if method in self._answers_held:
            answer = await call(*args, **kwargs)
            await self._wait(method)
            return answer
        await self._wait(method)
        return await call(*args, **kwargs)

    async def _wait(self, method: str) -> None:
        if (held := self.held.get(method)) is not None:
            self.waiting.append(method)
            try:
                await held.wait()
            finally:
                self.waiting.remove(method)
        else:
            await asyncio.sleep(0)
        if method in self.failing:
            raise EngineUnavailable("the engine cannot be reached")


class SuspendedBroker(ListedBroker):
    """A broker behind a gate."""

    def __init__(self, timers: Timers, gate: Gate) -> None:
        super().__init__(timers)
        self.gate = gate
        self.read_from: list[int | None] = []
        """The offsets from which histories were read."""

    def lose_tail(self, channel: str, number: int) -> None:
        """Come back with an older data set, which lacks the last publications."""
        stream = self._streams[channel]
        stream.top -= number
        kept = list(stream.publications)[:-number]
        stream.publications = ()
        for publication in kept:
            stream.keep(publication, len(kept))

    def lose_everything(self) -> None:
        """Come back empty: every stream begins anew, in another epoch."""
        for channel in list(self._streams):
            self._drop(channel)
        self._epoch = new_epoch()
        self._subscribed = dict.fromkeys(self._subscribed, self._epoch)

    async def subscribe(self, channel: str) -> None:
        await self.gate.through("subscribe", super().subscribe, channel)

    async def unsubscribe(self, channel: str) -> None:
        await self.gate.through("unsubscribe", super().unsubscribe, channel)

    async def publish(self, outgoing: Outgoing) -> Published:
        return await self.gate.through("publish", super().publish, outgoing)

    async def join(self, channel: str, info: ClientInfo) -> None:
        await self.gate.through("join", super().join, channel, info)

    async def leave(self, channel: str, info: ClientInfo) -> None:
        await self.gate.through("leave", super().leave, channel, info)

    async def history(
        self,
        channel: str,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        if limit == 0:  # held as `position`, which it takes the place of
            return await self.gate.through("position", super().history, channel, limit=0)
        self.read_from.append(start)
        return await self.gate.through(
            "history", super().history, channel, start, limit, reverse=reverse
        )

    async def position(self, channel: str, at: int | None = None) -> StreamPosition:
        return await self.gate.through("position", super().position, channel, at)

    async def renew_epoch(self, channel: str, epoch: str) -> None:
        await self.gate.through("renew_epoch", super().renew_epoch, channel, epoch)


class SuspendedPresence(MemoryPresence):
    """Presence behind a gate."""

    def __init__(self, timers: Timers, gate: Gate) -> None:
        super().__init__(timers)
        self.gate = gate

    def lose_everything(self) -> None:
        """Come back empty."""
        self._channels.clear()

    async def add(self, channel: str, clients: Iterable[ClientInfo], lifetime: float) -> None:
        await self.gate.through("presence.add", super().add, channel, clients, lifetime)

    async def remove(self, channel: str, client: str) -> None:
        await self.gate.through("presence.remove", super().remove, channel, client)

    async def get(self, channel: str) -> Mapping[str, ClientInfo]:
        return await self.gate.through("presence.get", super().get, channel)


class SuspendedCluster(MemoryCluster):
    """A cluster behind a gate."""

    def __init__(
        self, timers: Timers, broker: SuspendedBroker, gate: Gate, state: ClusterState | None = None
    ) -> None:
        super().__init__(timers, broker, state)
        self.gate = gate

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        await self.gate.through("announce", super().announce, node, lifetime)

    async def withdraw(self, node: NodeInfo) -> None:
        await self.gate.through("withdraw", super().withdraw, node)

    async def statuses(self) -> list[NodeStatus]:
        return await self.gate.through("statuses", super().statuses)

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        return await self.gate.through("claim", super().claim, name, owner, lifetime)

    async def owner(self, name: str) -> str | None:
        return await self.gate.through("owner", super().owner, name)

    async def round_trip(self) -> float:
        return await self.gate.through("round_trip", super().round_trip)


class SuspendedLimits(MemoryLimits):
    """Shared limits behind a gate."""

    def __init__(self, timers: Timers, gate: Gate, state: ClusterState) -> None:
        super().__init__(timers, state)
        self.gate = gate

    async def block(self, ends: Mapping[str, float]) -> int:
        return await self.gate.through("block", super().block, ends)

    async def unblock(self, user: str) -> None:
        await self.gate.through("unblock", super().unblock, user)

    async def blocked(self) -> BlockList:
        return await self.gate.through("blocked", super().blocked)

    async def blocked_version(self) -> ListVersion:
        return await self.gate.through("blocked_version", super().blocked_version)

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        return await self.gate.through("add_debts", super().add_debts, debts, elapsed)

    async def place_connections(
        self,
        node: str,
        counts: Mapping[str, int],
        limit: int,
        *,
        clears: bool = False,
    ) -> Places:
        call = super().place_connections
        return await self.gate.through(
            "place_connections", call, node, counts, limit, clears=clears
        )


class SuspendedEngine(Gate):
    """An engine without a cluster."""

    cluster: SuspendedCluster | None = None
    limits: SuspendedLimits | None = None

    def __init__(self, timers: Timers) -> None:
        super().__init__()
        self.broker = self.make_broker(timers)
        self.presence = SuspendedPresence(timers, self)
        self.lists = MemoryLists()

    def make_broker(self, timers: Timers) -> SuspendedBroker:
        return SuspendedBroker(timers, self)

    async def start(self, receiver: Receiver) -> None:
        self.broker.receiver = self.lists.receiver = receiver

    async def stop(self) -> None:
        self.broker.receiver = self.lists.receiver = None

    def lose_everything(self) -> None:
        """Come back empty."""
        self.broker.lose_everything()
        self.presence.lose_everything()


class ClusterEngine(SuspendedEngine):
    """An engine with a cluster, in which there may be other nodes."""

    cluster: SuspendedCluster
    limits: SuspendedLimits

    def __init__(self, timers: Timers, state: ClusterState | None = None) -> None:
        super().__init__(timers)
        self.broker.pipelines_publishes = True
        self.cluster = SuspendedCluster(timers, self.broker, self, state)
        self.limits = SuspendedLimits(timers, self, self.cluster.state)
        self.lists = ClusterLists(self.cluster.state)
