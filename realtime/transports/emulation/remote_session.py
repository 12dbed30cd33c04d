"""At a relay node: sessions of other nodes, and the responses that they write to.

See `relay_messages`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from realtime.cluster.direct import NodeID
from realtime.errors import Disconnect, EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation.owning_client import Bearer
from realtime.transports.emulation.relay_messages import (
    WATCH_INTERVAL,
    Attach,
    Deliver,
    Detach,
    RelayLink,
    RelayMessage,
    Release,
    WatchReceiver,
    WrittenFrames,
    in_time,
)
from realtime.transports.emulation.response import FrameReceiver, SessionResponse
from realtime.transports.emulation.session import INTERRUPTED, Framing, NotOwnerError


class SessionGoneError(Exception):
    """The owner does not have the session. With a cause: the owner did not answer."""


@dataclass(eq=False, repr=False)
class Relay:
    """What the remote sessions of one node share."""

    node: Node
    link: RelayLink
    framing: Framing
    attached: dict[int, RemoteSession] = field(default_factory=dict)
    """By the numbers of their receivers."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def on_written(self, message: WrittenFrames) -> None:
        session = self.attached.get(message.receiver)
        if session is not None:
            session.written(message)


@dataclass(eq=False, repr=False)
class RemoteSession:
    """A session of another node, as one request sees it. See `AnySession`.

    To its node its response is a connection as others are, see `node.Closable`.
    """

    id = ""

    _relay: Relay
    _owner: NodeID
    _name: str
    _bearer: Bearer
    """The request."""
    _began: float
    """When the request came, as the node's event loop counts."""
    _receiver: FrameReceiver = field(init=False)
    """The response of the request, once it is attached."""
    _written: int = 0
    """Number of the next Written message."""
    _is_interrupted: bool = False
    _watching: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._number = next(self._relay.numbers)
        """Names the response of the request to the owner."""

    async def attach(self, receiver: SessionResponse) -> None:
        """Let the session write to a receiver.

        Raises:
            NotOwnerError: the session belongs to another client.
            SessionGoneError: the owner does not have the session, or did not answer.
        """
        self._receiver = receiver
        self._relay.attached[self._number] = self
        shown = self._bearer.auth_session, self._bearer.proofs
        attached = False
        try:
            attached = await self._ask(Attach(self._name, self._number, receiver.limit, *shown))
        except NotOwnerError:
            raise
        except BaseException:
            self._send_soon(Detach(self._name, self._number))  # it may be attached anyway
            raise
        finally:
            if not attached:
                del self._relay.attached[self._number]
        if not attached:
            raise SessionGoneError
        self._watching = asyncio.create_task(self._watch())
        self._relay.node.opened(self)

    def detach(self, receiver: FrameReceiver, *, interrupted: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._relay.attached.pop(self._number, None) is not None:
            self._relay.node.closed(self)
            if interrupted or self._is_interrupted:
                self._send_soon(Detach(self._name, self._number))

    def written(self, message: WrittenFrames) -> None:
        """Write the frames of the owner."""
        if self._receiver.finishing:
            return  # nothing follows the frame that says "interrupted"
        if message.number != self._written:
            self._interrupt()  # a message is missing
            return
        self._written += 1
        for frame in message.frames:
            self._receiver.write(frame.encode())
        if message.last:
            self._receiver.finish()

    def close(self, disconnect: Disconnect | None) -> None:
        """Have the owner end the response in order: this node stops."""
        self._send_soon(Release(self._name, self._number))

    def _interrupt(self) -> None:
        """End because frames were lost, or the owner was."""
        if not self._receiver.finishing:
            self._is_interrupted = True
            self._receiver.write(self._relay.framing.close(*INTERRUPTED))
            self._receiver.finish()

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        """As `AnySession.deliver`.

        Raises:
            NotOwnerError: the session belongs to another client.
            EngineUnavailable: it is not known whether the frames were taken.
        """
        texts = [frame.decode() for frame in frames]
        message = Deliver(self._name, texts, self._bearer.auth_session, self._bearer.proofs)
        async with in_time(self._began):
            return await self._relay.link.deliver(
                self._owner, message, WatchReceiver(self._name, self._number)
            )

    async def _watch(self) -> None:
        watch = WatchReceiver(self._name, self._number)
        with contextlib.suppress(SessionGoneError):
            await asyncio.sleep(WATCH_INTERVAL)
            while await self._ask(watch):
                await asyncio.sleep(WATCH_INTERVAL)
        self._interrupt()

    async def _ask(self, question: RelayMessage) -> bool:
        try:
            return await self._relay.link.ask(self._owner, question)
        except EngineUnavailable as error:
            raise SessionGoneError(str(error)) from error

    def _send_soon(self, message: RelayMessage) -> None:
        self._relay.node.spawn(self._send(message))

    async def _send(self, message: RelayMessage) -> None:
        # if it is lost, the owner finds out because the receiver is not watched
        with contextlib.suppress(EngineUnavailable):
            await self._relay.link.send(self._owner, message)
