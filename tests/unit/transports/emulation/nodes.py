"""Shared by the tests of sessions at several nodes: nodes with claims, and lost messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from realtime.channel_rules import INTERNAL
from realtime.cluster.direct import DirectMessage
from realtime.config.reader import load
from realtime.engine.base import Outgoing, Published
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from realtime.transports.emulation import relay_messages
from realtime.transports.sockjs.application import SockJS
from tests.unit.cluster.direct_parts import Branch, BranchBroker
from tests.unit.memory_cluster import ClusterState
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import Gate
from tests.unit.transports.emulation.parts import (
    CONNECT,
    OPEN,
    OPTIONS,
    Request,
    Visitor,
    subscribe_command,
)


class LossyBroker(BranchBroker):
    """Loses or repeats direct messages."""

    def __init__(self, timers: Timers, gate: Gate, branches: list[Branch]) -> None:
        super().__init__(timers, gate, branches)
        self.times: Callable[[relay_messages.RelayMessage | bytes], int]
        """How often a relay message of this node arrives, or an answer, which is given as bytes."""
        self.lose_nothing()
        self.written: list[relay_messages.RelayMessage | bytes] = []
        """Relay messages and answers of this node, in order."""
        self.withheld: list[Outgoing] = []
        """Messages that did not arrive."""

    async def publish(self, outgoing: Outgoing) -> Published:
        times = 1
        if outgoing.channel.startswith(f"{INTERNAL}node"):
            message = msgspec.json.decode(outgoing.publication.data.raw, type=DirectMessage)
            body = bytes(message.body)
            self.written.append(body if message.is_answer else relay_messages.decode(body))
            times = self.times(self.written[-1])
        if times == 0:
            self.withheld.append(outgoing)
        for _ in range(times):
            published = await super().publish(outgoing)
        return published if times else Published()

    async def let_arrive(self) -> None:
        """Let the withheld messages arrive."""
        withheld, self.withheld = self.withheld, []
        for outgoing in withheld:
            await BranchBroker.publish(self, outgoing)

    def lose(self, kind: type[relay_messages.RelayMessage], *, times: int = 0) -> None:
        """From now on messages of this kind arrive this many times, others once."""
        self.times = lambda message: times if isinstance(message, kind) else 1

    def lose_assent(self) -> None:
        """From now on positive answers do not arrive."""
        self.times = lambda message: int(message != relay_messages.YES)

    def lose_nothing(self) -> None:
        """From now on everything arrives once."""
        self.times = lambda message: 1

    def count(self, kind: type[relay_messages.RelayMessage]) -> int:
        """Return how many messages of a kind this node sent."""
        return sum(isinstance(message, kind) for message in self.written)


class LossyBranch(Branch):
    """The engine of one of several nodes, which may lose direct messages."""

    broker: LossyBroker

    def make_broker(self, timers: Timers) -> LossyBroker:
        return LossyBroker(timers, self, self._branches)


class Nodes:
    """Nodes of one service, on one event loop."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._branches: list[Branch] = []
        self.cluster = ClusterState()
        self.nodes: list[Node] = []
        self.engines: list[LossyBranch] = []
        self.application = SockJS(None)
        self._visitors = 0

    async def add(self) -> Node:
        engine = LossyBranch(Timers(asyncio.get_running_loop()), self._branches, self.cluster)
        node = Node(load(dict(OPTIONS)), engine)
        await node.start()
        # it claims the look for dead nodes, as sessions are claimed
        assert node._sweeper is not None
        node._sweeper.stop()
        self.nodes.append(node)
        self.engines.append(engine)
        return node

    def visitor(self) -> Visitor:
        self._visitors += 1
        return Visitor(self.application, f"session{self._visitors}")

    async def begun(self) -> Visitor:
        """A visitor whose session is at the first node."""
        visitor = self.visitor()
        assert await visitor.poll(self.nodes[0]) == OPEN
        return visitor

    async def subscriber(self, node: Node, channel: str = "a") -> Visitor:
        """A visitor whose session is at a node, and a subscriber."""
        visitor = self.visitor()
        assert await visitor.poll(node) == OPEN
        assert await visitor.say(node, CONNECT, subscribe_command(channel)) == 204
        frame = await visitor.poll(node)
        while '\\"id\\":2' not in frame:
            frame = await visitor.poll(node)
        return visitor

    async def die(self, node: Node) -> None:
        """Cut a node off: it neither sends nor receives any more."""
        engine = self.engines[self.nodes.index(node)]
        self._branches.remove(engine)
        engine.broker.times = lambda message: 0


def owners(nodes: Nodes) -> list[str]:
    """Return the nodes that own a session now."""
    return [owner for owner, until in nodes.cluster.claims.values() if until > nodes.clock.now]


async def claimed(nodes: Nodes, *expected: Node) -> None:
    """Wait until these are the owners of all sessions."""
    uids = sorted(node.uid for node in expected)
    await eventually(lambda: sorted(owners(nodes)) == uids)


@asynccontextmanager
async def open_nodes(clock: Clock, number: int = 2) -> AsyncIterator[Nodes]:
    """Yield started nodes, and stop them at the end."""
    nodes = Nodes(clock)
    for _ in range(number):
        await nodes.add()
    yield nodes
    for node in nodes.nodes:
        await stop(node, clock, SHUTDOWN_TIMEOUT)


# requests at one node for a session of another one


async def attached(nodes: Nodes, number: int = 1) -> None:
    """Wait until so many requests at the second node are attached at the first one."""
    await eventually(lambda: nodes.engines[1].broker.count(relay_messages.Attach) == number)
    await turns(20)


async def stream(nodes: Nodes, visitor: Visitor) -> Request:
    """A streaming request at the second node for a session of the first one."""
    before = nodes.engines[1].broker.count(relay_messages.Attach)
    request = visitor.receive(nodes.nodes[1])
    await attached(nodes, before + 1)
    return request


async def quiet(nodes: Nodes, *requests: Request) -> None:
    """Abort requests, and wait until they have ended."""
    for request in requests:
        await request.quit()
    await turns(20)
