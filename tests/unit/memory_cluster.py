"""A cluster in the memory of one process: for tests with several nodes on one event loop."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from realtime.channel_rules import INTERNAL, QUESTIONS
from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.limits import (
    MAX_BLOCKED,
    NO_LIST,
    Blocking,
    BlockList,
    Debt,
    ListVersion,
    Places,
)
from realtime.engine.lists import Kind
from realtime.engine.memory import MemoryBroker, MemoryLists
from realtime.engine.nodes import NODES_REMEMBERED, NodeInfo, NodeStatus, SurveyID
from realtime.errors import EngineUnavailable
from realtime.payload import Payload
from realtime.protocol.messages import Publication, UserID
from realtime.timers import Timers


class Heartbeat(NamedTuple):
    """What a node announced."""

    node: NodeInfo
    lifetime: float
    at: float


class ListedBroker(MemoryBroker):
    """A broker whose subscribed channels the cluster lists."""

    @property
    def subscribed(self) -> Collection[str]:
        return self._subscribed


class ClusterState:
    """What the nodes of one service share."""

    def __init__(self) -> None:
        self.heartbeats: dict[str, Heartbeat] = {}
        self.brokers: list[ListedBroker] = []
        self.claims: dict[str, tuple[str, float]] = {}
        """Name → owner, and until when."""
        self.surveys: dict[str, tuple[list[bytes], float]] = {}
        """Survey → answers, and until when they are taken."""
        self.blocked: dict[UserID, float] = {}
        self.blocks_version = NO_LIST
        self.debts: dict[tuple[str, UserID], float] = {}
        self.places: dict[str, dict[UserID, int]] = {}
        """Node → its places."""


class MemoryCluster:
    """See `engine.nodes.Cluster` for the contract; `tests/engine` holds it to that."""

    def __init__(
        self, timers: Timers, broker: ListedBroker, state: ClusterState | None = None
    ) -> None:
        self.state = state or ClusterState()
        self.state.brokers.append(broker)
        self._timers = timers
        self._broker = broker

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        self.state.heartbeats[node.uid] = Heartbeat(node, lifetime, self._timers.now())

    async def withdraw(self, node: NodeInfo, held_seconds: float | None = None) -> None:
        self.state.heartbeats.pop(node.uid, None)
        self.state.places.pop(node.uid, None)

    async def statuses(self) -> list[NodeStatus]:
        now = self._timers.now()
        return [
            NodeStatus(
                **msgspec.structs.asdict(each.node)
                | {"last_seen_seconds": now - each.at, "alive": now < each.at + each.lifetime}
            )
            for each in self.state.heartbeats.values()
            if now < each.at + NODES_REMEMBERED
        ]

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        self.state.surveys[survey] = [], self._timers.now() + lifetime
        await self._broker.publish(Outgoing(QUESTIONS, Publication(question), ChannelOptions()))

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        answers, until = self.state.surveys.get(survey, ([], 0.0))
        if self._timers.now() < until:
            answers.append(answer)

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        answers, until = self.state.surveys.get(survey, ([], 0.0))
        return answers[start:] if self._timers.now() < until else []

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        present = self._owner(name)
        if present not in (None, owner):
            return present
        if lifetime:
            self.state.claims[name] = owner, self._timers.now() + lifetime
        else:
            self.state.claims.pop(name, None)
        return owner

    async def owner(self, name: str) -> str | None:
        return self._owner(name)

    def _owner(self, name: str) -> str | None:
        owner, until = self.state.claims.get(name, ("", 0.0))
        return owner if self._timers.now() < until else None

    async def round_trip(self) -> float:
        return 0.0


class MemoryLimits:
    """See `engine.limits.SharedLimits` for the contract."""

    def __init__(self, timers: Timers, state: ClusterState) -> None:
        self._timers = timers
        self.state = state

    async def block(self, ends: Mapping[UserID, float]) -> Blocking:
        current = self._current()
        for user, end in ends.items():
            if not end:
                current.pop(user, None)
            elif user in current or len(current) < MAX_BLOCKED:
                current[user] = end
        self.state.blocked = current
        made, changed = self.state.blocks_version
        self.state.blocks_version = ListVersion(made or time.time_ns(), changed + 1)
        return Blocking(len(current.keys() & ends.keys()), self.state.blocks_version)

    def _current(self) -> dict[UserID, float]:
        now = time.time()
        return {user: end for user, end in self.state.blocked.items() if end > now}

    async def blocked(self, known: ListVersion | None = None) -> BlockList | None:
        version = self.state.blocks_version
        return None if version == known else BlockList(version, self._current())

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        now, known = self._timers.now(), self.state.debts
        for debt in debts:
            name = (debt.rate, debt.user)
            known[name] = min(
                max(known.get(name, 0.0), now - elapsed) + debt.seconds, now + debt.most
            )
        return [max(0.0, known[debt.rate, debt.user] - now) for debt in debts]

    async def place_connections(
        self,
        node: str,
        counts: Mapping[UserID, int],
        limit: int,
        *,
        clears: bool = False,
    ) -> Places:
        now = self._timers.now()
        beats = self.state.heartbeats.values()
        alive = {each.node.uid for each in beats if now < each.at + each.lifetime}
        for uid in self.state.places.keys() - alive:
            del self.state.places[uid]
        if node not in alive:
            raise EngineUnavailable("the heartbeats of this node are overdue")
        if clears:
            self.state.places.pop(node, None)
        mine = self.state.places.setdefault(node, {})
        others = [places for uid, places in self.state.places.items() if uid != node]
        here, elsewhere = [], []
        for user, count in counts.items():
            elsewhere.append(sum(places.get(user, 0) for places in others))
            room = max(0, limit - elsewhere[-1])
            if places := min(count, max(mine.pop(user, 0), room)):
                mine[user] = places
            here.append(places)
        return Places(len(mine), here, elsewhere)


class ClusterLists(MemoryLists):
    """Lists with the channels of all nodes."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__()
        self._state = state

    async def names(self, kind: Kind) -> Collection[str]:
        if kind is not Kind.CHANNELS:
            return await super().names(kind)
        names = set[str]().union(*(broker.subscribed for broker in self._state.brokers))
        return [name for name in names if not name.startswith(INTERNAL)]
