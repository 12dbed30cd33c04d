"""An engine whose calls a test holds, lets go on, or lets fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from realtime.engine.base import Engine, History, Joined, Notice, Receiver
from realtime.engine.epochs import new_epoch
from realtime.engine.memory import MemoryLists, MemoryPresence
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import StreamPosition
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
G = TypeVar("G", bound="Gated")

BROKER_METHODS = ("subscribe", "unsubscribe", "publish", "renew_epoch")
PRESENCE_METHODS = ("add", "remove", "get")
CLUSTER_METHODS = ("announce", "withdraw", "statuses", "claim", "owner")
LIMITS_METHODS = (
    "block",
    "blocked",
    "add_debts",
    "place_connections",
)
METHODS = (
    *BROKER_METHODS,
    "join",
    "leave",
    "position",
    "history",
    *(f"presence.{name}" for name in PRESENCE_METHODS),
    *CLUSTER_METHODS,
    *LIMITS_METHODS,
)
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


class Gated(Protocol):
    """A part of an engine behind a gate."""

    gate: Gate


def gated(*methods: str, prefix: str = "") -> Callable[[type[G]], type[G]]:
    """Have the calls of these methods of a class go through its gate."""

    def through_gate(name: str, method: Callable[..., Awaitable[object]]) -> Callable[..., object]:
        async def through(self: Gated, *args: object, **kwargs: object) -> object:
            return await self.gate.through(name, partial(method, self), *args, **kwargs)

        return through

    def decorate(kind: type[G]) -> type[G]:
        for name in methods:
            setattr(kind, name, through_gate(f"{prefix}{name}", getattr(kind, name)))
        return kind

    return decorate


@gated(*BROKER_METHODS)
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
        self.maps._maps.clear()
        self._epoch = new_epoch()
        self._subscribed = dict.fromkeys(self._subscribed, self._epoch)

    async def notify(self, channel: str, notice: Notice) -> None:
        step = "join" if isinstance(notice, Joined) else "leave"
        await self.gate.through(step, super().notify, channel, notice)

    async def positions(
        self, channels: Sequence[str], at: int | None = None
    ) -> list[StreamPosition]:
        return await self.gate.through("position", super().positions, channels, at)

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


@gated(*PRESENCE_METHODS, prefix="presence.")
class SuspendedPresence(MemoryPresence):
    """Presence behind a gate."""

    def __init__(self, timers: Timers, gate: Gate) -> None:
        super().__init__(timers)
        self.gate = gate

    def lose_everything(self) -> None:
        """Come back empty."""
        self._channels.clear()


@gated(*CLUSTER_METHODS, "round_trip")
class SuspendedCluster(MemoryCluster):
    """A cluster behind a gate."""

    def __init__(
        self, timers: Timers, broker: SuspendedBroker, gate: Gate, state: ClusterState | None = None
    ) -> None:
        super().__init__(timers, broker, state)
        self.gate = gate


@gated(*LIMITS_METHODS)
class SuspendedLimits(MemoryLimits):
    """Shared limits behind a gate."""

    def __init__(self, timers: Timers, gate: Gate, state: ClusterState) -> None:
        super().__init__(timers, state)
        self.gate = gate


class SuspendedEngine(Gate, Engine):
    """An engine without a cluster."""

    broker: SuspendedBroker
    presence: SuspendedPresence
    lists: MemoryLists

    def __init__(self, timers: Timers) -> None:
        super().__init__()
        self.broker = self.make_broker(timers)
        self.maps = self.broker.maps
        self.presence = SuspendedPresence(timers, self)
        self.lists = MemoryLists()
        self.seen = self.lists.seen

    def make_broker(self, timers: Timers) -> SuspendedBroker:
        return SuspendedBroker(timers, self)

    async def start(self, receiver: Receiver, uid: str) -> None:
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
        self.cluster = SuspendedCluster(timers, self.broker, self, state)
        self.limits = SuspendedLimits(timers, self, self.cluster.state)
        self.lists = ClusterLists(self.cluster.state)
        self.seen = self.lists.seen
