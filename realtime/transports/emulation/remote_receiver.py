"""At the owner of a session: responses that other nodes write. See `relay_messages`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import InitVar, dataclass, field

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import (
    CHECK_TIMEOUT,
    UNWATCHED_TIMEOUT,
    Attach,
    CheckReceiver,
    Deliver,
    Detach,
    RelayLink,
    Release,
    WatchReceiver,
    WrittenFrames,
)
from realtime.transports.emulation.session import EmulatedSession, Framing

FindSession = Callable[[str], Awaitable[EmulatedSession | None]]
"""Returns the session of this name at this node, once no claim on it is under way."""


@dataclass(eq=False, repr=False)
class RemoteReceiver:
    """A receiver whose response is written by a relay node. See `FrameReceiver`."""

    _receivers: RemoteReceivers
    """All of this node; they hold this one until its end."""
    _session: EmulatedSession
    _relay_node: NodeID
    _attach: InitVar[Attach]
    """The question of the relay node."""
    finishing: bool = False
    _written: int = 0
    """Number of the next Written message."""
    _is_sending: bool = False
    _frames: list[bytes] = field(default_factory=list)

    def __post_init__(self, attach: Attach) -> None:
        self._node, self._link = self._receivers.node, self._receivers.link
        self._number, self._room = attach.receiver, attach.limit
        self._polls = attach.limit == 0
        self._unwatched = self._node.timers.timer(lambda: self.end(interrupted=True))
        self.watched()

    def write(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._room -= len(frame)
        if self._room <= 0:
            self.finishing = True
        self._send_soon()

    def finish(self) -> None:
        self.finishing = True
        self._send_soon()

    async def is_there(self) -> bool:
        try:
            is_there = await self._link.ask(
                self._relay_node, CheckReceiver(self._number), timeout=CHECK_TIMEOUT
            )
        except EngineUnavailable:
            is_there = False
        if not is_there:
            self.end(interrupted=True)
        return is_there

    def watched(self) -> None:
        """The relay node is alive."""
        self._unwatched.set(self._node.timers.now() + UNWATCHED_TIMEOUT)

    def release(self) -> None:
        """The relay node stops: end the response in order, the client will ask another node."""
        if not self.finishing:
            if self._polls:
                self._frames.append(self._receivers.framing.heartbeat)
            self._session.hold_frames(self)
            self.finish()

    def end(self, *, interrupted: bool) -> None:
        """Take no more frames, and leave the session."""
        self.finishing = True
        self._receivers.remove(self._relay_node, self._number)
        self._unwatched.cancel()
        self._session.detach(self, interrupted=interrupted)

    def _send_soon(self) -> None:
        if not self._is_sending:
            self._is_sending = True
            self._node.spawn(self._send())

    async def _send(self) -> None:
        # one message after another: a channel layer may reorder those that are sent at once
        last = False
        while not last:
            frames, self._frames = self._frames, []
            last = self.finishing
            texts = [frame.decode() for frame in frames]
            message = WrittenFrames(self._number, self._written, texts, last)
            self._written += 1
            try:
                await self._link.send(self._relay_node, message)
            except EngineUnavailable:
                self.end(interrupted=True)
                return
            if not (self._frames or self.finishing):
                self._is_sending = False
                return
        self.end(interrupted=False)


class RemoteReceivers:
    """The remote receivers of one node, and its answers to relay nodes."""

    def __init__(self, node: Node, link: RelayLink, framing: Framing, find: FindSession) -> None:
        self.node = node
        self.link = link
        self.framing = framing
        self._find = find
        self._receivers: dict[tuple[NodeID, int], RemoteReceiver] = {}
        """Relay node and number → receiver."""

    def remove(self, relay_node: NodeID, number: int) -> None:
        """Know a receiver no more."""
        self._receivers.pop((relay_node, number), None)

    async def on_attach(self, relay_node: NodeID, message: Attach) -> bytes:
        session = await self._find(message.session)
        if session is None:
            return relay_messages.NO
        if not session.is_of(message):
            return relay_messages.FORBIDDEN
        receiver = RemoteReceiver(self, session, relay_node, message)
        self._receivers[relay_node, message.receiver] = receiver
        await session.attach(receiver)
        return relay_messages.YES

    def on_watch(self, relay_node: NodeID, message: WatchReceiver) -> bool:
        receiver = self._receivers.get((relay_node, message.receiver))
        if receiver is not None:
            receiver.watched()
        return receiver is not None

    def on_detach(
        self, relay_node: NodeID, message: Detach, session: EmulatedSession | None
    ) -> None:
        receiver = self._receivers.get((relay_node, message.receiver))
        if receiver is not None:
            receiver.end(interrupted=True)
        elif session is not None:
            session.closed()  # the receiver was full, and its frames are lost

    def on_release(self, relay_node: NodeID, message: Release) -> None:
        receiver = self._receivers.get((relay_node, message.receiver))
        if receiver is not None:
            receiver.release()


async def on_deliver(session: EmulatedSession | None, message: Deliver) -> bytes:
    """Give frames of the client to its session."""
    if session is None:
        return relay_messages.NO
    if not session.is_of(message):
        return relay_messages.FORBIDDEN
    frames = [text.encode() for text in message.frames]
    return await relay_messages.answer_when_taken(session.deliver(frames))
