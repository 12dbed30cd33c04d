"""What the tests of direct messages share: two nodes, handlers that keep or answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import msgspec
import pytest

from realtime.channel_rules import inbox
from realtime.cluster.direct import DirectMessage
from realtime.config.reader import load
from realtime.engine.base import Outgoing, Published
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.protocol.messages import Publication
from realtime.timers import Timers
from tests.unit.memory_cluster import ClusterState
from tests.unit.node.node_parts import PLAIN, stop
from tests.unit.parts import Clock, data, eventually
from tests.unit.suspended_engine import ClusterEngine, Gate, SuspendedBroker

T = TypeVar("T")

TIMEOUT = 5.0
"""Seconds an answer is waited for."""


class BranchBroker(SuspendedBroker):
    """The broker of one node; what is published without history reaches all branches."""

    def __init__(self, timers: Timers, gate: Gate, branches: list[Branch]) -> None:
        super().__init__(timers, gate)
        self._branches = branches

    async def publish(self, outgoing: Outgoing) -> Published:
        published = await super().publish(outgoing)
        if published.position is None:
            for branch in self._branches:
                if branch.broker is not self:
                    branch.broker.receive(outgoing.channel, outgoing.publication)
        return published

    def receive(self, channel: str, publication: Publication) -> None:
        """Deliver what another branch published."""
        if self.receiver is not None and channel in self.subscribed:
            self.receiver.on_publication(channel, publication, None)


class Branch(ClusterEngine):
    """The engine of one of several nodes."""

    broker: BranchBroker

    def __init__(self, timers: Timers, branches: list[Branch], state: ClusterState) -> None:
        self._branches = branches
        super().__init__(timers, state)
        branches.append(self)

    def make_broker(self, timers: Timers) -> BranchBroker:
        return BranchBroker(timers, self, self._branches)


class Pair(NamedTuple):
    """Two nodes, and their engines."""

    one: Node
    other: Node
    engine: Branch
    other_engine: Branch


class Reader:
    """Keeps the messages about some subjects, in the order of arrival."""

    def __init__(self, node: Node, *subjects: str) -> None:
        self.messages: list[tuple[str, str, bytes]] = []
        """Subject, sender, body."""
        for subject in subjects:
            node.direct.handle(subject, self._handler(subject))

    def _handler(self, subject: str) -> Callable[[str, bytes], None]:
        return lambda sender, body: self.messages.append((subject, sender, body))

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.messages]


class Answerer:
    """Answers each question when the test says so; the answer is the question in a list."""

    def __init__(self, node: Node, subject: str) -> None:
        self.questions: dict[bytes, asyncio.Future[None]] = {}
        """Body → what its answer waits for."""
        node.direct.handle(subject, lambda sender, body: self._answer(body))

    async def _answer(self, body: bytes) -> bytes:
        self.questions[body] = asyncio.get_running_loop().create_future()
        await self.questions[body]
        return b"[" + body + b"]"

    def answer(self, body: bytes) -> None:
        self.questions[body].set_result(None)


@asynccontextmanager
async def two_nodes(clock: Clock, *, other_open: bool) -> AsyncIterator[Pair]:
    """Two nodes that were started; `other_open`: with both inboxes open, not only the first."""
    branches: list[Branch] = []
    state = ClusterState()
    nodes: list[Node] = []
    for _ in range(2):
        engine = Branch(Timers(asyncio.get_running_loop()), branches, state)
        nodes.append(Node(load({}), engine))
        await nodes[-1].start()
    await nodes[0].direct.open()
    if other_open:
        await nodes[1].direct.open()
    yield Pair(nodes[0], nodes[1], *branches)
    for node in nodes:
        await stop(node, clock, SHUTDOWN_TIMEOUT)


async def echo(body: bytes) -> bytes:
    return body


async def put(pair: Pair, text: str) -> None:
    """Publish any text in the inbox of the other node."""
    await pair.engine.broker.publish(
        Outgoing(inbox(pair.other.uid), Publication(data(text)), PLAIN)
    )


async def answer_of(asking: asyncio.Future[T]) -> T:
    """The answer to a question; fails when it does not come, though the clock stands still."""
    await eventually(asking.done)
    return await asking


def answer_to(question: int, body: bytes = b'"never asked"') -> str:
    message = DirectMessage("s", "somebody", question, True, msgspec.Raw(body))
    return msgspec.json.encode(message).decode()


def levels(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The levels above INFO of what was logged."""
    return {record.levelname for record in caplog.records} - {"DEBUG", "INFO"}
