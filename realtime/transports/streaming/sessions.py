"""The streams of one node by their sessions, and the way to those of other nodes.

A session is a secret: who knows it may send commands in the name of the client. It is neither
logged nor shown, and no client ID leads to it. A request names the node that has the session, so
that a load balancer may send it to any node.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.emulation.relay_messages import (
    LISTS_DOUBTFUL,
    Forward,
    RelayLink,
    RelayMessage,
    WatchReceiver,
    answer_at_once,
    answer_when_taken,
    in_time,
)

KIND = "stream"
"""Subject of the direct messages about streams. Nodes of all versions use it."""


def new_session() -> str:
    """Return a new session: 122 random bits, which an attacker cannot guess."""
    return str(uuid.uuid4())


class StreamSessions:
    """Belongs to the event loop of its node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._streams: dict[str, IncomingFrames] = {}
        self._others = OtherNodes(node)
        self._link = RelayLink(node, KIND)
        self._link.on_message(self._on_message)

    async def open(self) -> None:
        """Begin to receive what other nodes relay.

        Raises:
            EngineUnavailable: the inbox of this node could not be opened.
        """
        if self._node.cluster is not None:
            await self._link.open()

    def add(self, session: str, incoming: IncomingFrames) -> None:
        """Give frames for a session to its stream, until `remove`."""
        self._streams[session] = incoming

    def remove(self, session: str) -> None:
        """Know a session no more."""
        del self._streams[session]

    async def deliver(self, node: NodeID, session: str, frame: bytes) -> bool:
        """Give a frame to a session at any node, and wait until its client may send more.

        Returns:
            Whether the session took it; False if there is no such node, or no such session there.

        Raises:
            EngineUnavailable: it is not known whether the session took it.
        """
        if node == self._node.uid:
            return await self._take(session, frame)
        async with in_time(self._node.loop.time()):
            if not await self._others.has(node):
                return False
            await self._link.open()
            try:
                return await self._link.deliver(
                    node, Forward(session, frame), WatchReceiver(session, 0)
                )
            except EngineUnavailable:
                self._others.forget(node)
                if await self._others.has(node):
                    raise
                return False  # it has died, and the stream with it

    async def _take(self, session: str, frame: bytes) -> bool:
        incoming = self._streams.get(session)
        return incoming is not None and await incoming.take([frame])

    def _on_message(self, sender: NodeID, message: RelayMessage) -> Awaitable[bytes] | None:
        match message:
            case Forward(session, frame):
                return answer_when_taken(self._take(session, frame))
            case WatchReceiver():
                return answer_at_once(message.session in self._streams)
        return None


class OtherNodes:
    """Which other nodes there are, as far as requests name them.

    Requests may name anything, so names are looked up together: however many wait, one question to
    the engine is under way.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: set[NodeID] = set()
        """Nodes that lived at the last look."""
        self._begun = 0
        """Looks that have begun."""
        self._answered = 0
        """How many had begun with the last one that the engine answered."""
        self._looking = asyncio.Lock()

    async def has(self, uid: NodeID) -> bool:
        """Return whether a node lives, or lived a short time ago.

        Raises:
            EngineUnavailable: the engine did not answer, or its list may lack nodes.
        """
        begun = self._begun
        if uid not in self._known:
            async with self._looking:
                if self._answered <= begun:  # otherwise one began after this call did
                    await self._look()
        if uid in self._known:
            return True
        if self._node.outage.within(LISTS_DOUBTFUL):
            raise EngineUnavailable("the nodes have not all listed themselves again")
        return False

    async def _look(self) -> None:
        self._begun += 1
        self._known = {node.uid for node in await self._node.nodes()}
        self._answered = self._begun

    def forget(self, uid: NodeID) -> None:
        """Look again when this node is named next."""
        self._known.discard(uid)
