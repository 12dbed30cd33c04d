"""An engine that waits, as one does that speaks to another process; and loses what tests want."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

from realtime.config.options import ChannelOptions
from realtime.engine.base import History, NodeInfo, new_epoch
from realtime.engine.memory import MemoryEngine
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from realtime.timers import Timers
from tests.unit.parts import eventually

P = ParamSpec("P")
T = TypeVar("T")

METHODS = (
    "subscribe",
    "unsubscribe",
    "publish",
    "publish_join",
    "publish_leave",
    "history",
    "position",
    "renew_epoch",
    "add_presence",
    "remove_presence",
    "presence",
    "channels",
    "nodes",
    "announce",
    "withdraw",
)
"""What an engine may be waited for."""


class SuspendedEngine(MemoryEngine):
    """Waits before it does what it is told, where a test holds it; and may fail then."""

    def __init__(self, timers: Timers, *, shared: bool = False) -> None:
        """`shared`: whether the node is to speak to others, of which there are none."""
        super().__init__(timers)
        self.shared = shared
        self.held: dict[str, asyncio.Event] = {}
        """The methods whose calls wait."""
        self._answers_held: set[str] = set()
        self.failing: set[str] = set()
        self.failure: type[Exception] = ConnectionError
        self.waiting: list[str] = []
        self.calls: Counter[str] = Counter()
        self.read_from: list[int] = []
        """The offsets histories were asked for from."""

    def hold(self, *methods: str) -> None:
        """Calls of these methods wait from now on, until `go_on`."""
        for method in methods:
            self.held[method] = asyncio.Event()

    def hold_answer(self, method: str) -> None:
        """As `hold`, but what the call is to do is done before it waits."""
        self.hold(method)
        self._answers_held.add(method)

    def go_on(self, *methods: str) -> None:
        """Let those that wait go on, and all that come."""
        for method in methods:
            self.held.pop(method).set()
            self._answers_held.discard(method)

    async def reached(self, method: str) -> None:
        """Wait until a call of this method waits."""
        await eventually(lambda: method in self.waiting)

    async def _through(
        self,
        method: str,
        call: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
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
            raise self.failure("the engine cannot be reached")

    # what is lost

    def lose_tail(self, channel: str, number: int) -> None:
        """Come back with an older data set, in which the last publications are not."""
        stream = self._streams[channel]
        stream.top -= number
        for _ in range(min(number, len(stream.publications))):
            stream.publications.pop()

    def lose_everything(self) -> None:
        """Come back empty: every stream begins anew, in another epoch."""
        for channel in list(self._streams):
            self._drop(channel)
        self._epoch = new_epoch()
        self._subscribed = dict.fromkeys(self._subscribed, self._epoch)
        self._presence.clear()

    # what is waited for

    async def subscribe(self, channel: str) -> None:
        await self._through("subscribe", super().subscribe, channel)

    async def unsubscribe(self, channel: str) -> None:
        await self._through("unsubscribe", super().unsubscribe, channel)

    async def publish(
        self, channel: str, publication: Publication, options: ChannelOptions
    ) -> StreamPosition | None:
        return await self._through("publish", super().publish, channel, publication, options)

    async def publish_join(self, channel: str, info: ClientInfo) -> None:
        await self._through("publish_join", super().publish_join, channel, info)

    async def publish_leave(self, channel: str, info: ClientInfo) -> None:
        await self._through("publish_leave", super().publish_leave, channel, info)

    async def history(self, channel: str, since: int = 0) -> History:
        self.read_from.append(since)
        return await self._through("history", super().history, channel, since)

    async def position(self, channel: str) -> StreamPosition:
        return await self._through("position", super().position, channel)

    async def renew_epoch(self, channel: str, epoch: str) -> None:
        await self._through("renew_epoch", super().renew_epoch, channel, epoch)

    async def add_presence(
        self, channel: str, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        await self._through("add_presence", super().add_presence, channel, clients, lifetime)

    async def remove_presence(self, channel: str, client: str) -> None:
        await self._through("remove_presence", super().remove_presence, channel, client)

    async def presence(self, channel: str) -> Mapping[str, ClientInfo]:
        return await self._through("presence", super().presence, channel)

    async def channels(self) -> list[str]:
        return await self._through("channels", super().channels)

    async def nodes(self) -> list[NodeInfo]:
        return await self._through("nodes", super().nodes)

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        await self._through("announce", super().announce, node, lifetime)

    async def withdraw(self, node: NodeInfo) -> None:
        await self._through("withdraw", super().withdraw, node)


class SharedEngine(SuspendedEngine):
    """Has room for other nodes, and keeps the signs of life."""

    def __init__(self, timers: Timers) -> None:
        super().__init__(timers, shared=True)
        self.alive: dict[str, tuple[NodeInfo, float]] = {}

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        await super().announce(node, lifetime)
        self.alive[node.uid] = node, lifetime

    async def withdraw(self, node: NodeInfo) -> None:
        await super().withdraw(node)
        self.alive.pop(node.uid, None)

    async def nodes(self) -> list[NodeInfo]:
        return [node for node, _ in self.alive.values()]
