"""At a relay node: sessions of other nodes, and the responses that they write to.

See `relay_messages`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
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
class RelayedResponse:
    """A response that a session of another node writes to.

    To its node it is a connection as others are, see `node.Closable`.
    """

    id = ""

    _receiver: FrameReceiver
    _framing: Framing
    _release: Callable[[], None]
    """Asks the owner to end the response."""
    _written: int = 0
    """Number of the next Written message."""
    is_interrupted: bool = False

    def written(self, message: WrittenFrames) -> None:
        """Write the frames of the owner."""
        if self._receiver.finishing:
            return  # nothing follows the frame that says "interrupted"
        if message.number != self._written:
            self.interrupt()  # a message is missing
            return
        self._written += 1
        for frame in message.frames:
            self._receiver.write(frame.encode())
        if message.last:
            self._receiver.finish()

    def close(self, disconnect: Disconnect | None) -> None:
        """End in order: this node stops."""
        self._release()

    def interrupt(self) -> None:
        """End because frames were lost, or the owner was."""
        if not self._receiver.finishing:
            self.is_interrupted = True
            self._receiver.write(self._framing.close(*INTERRUPTED))
            self._receiver.finish()


@dataclass(eq=False, repr=False)
class Relay:
    """What the remote sessions of one node share."""

    node: Node
    link: RelayLink
    framing: Framing
    responses: dict[int, RelayedResponse] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def on_written(self, message: WrittenFrames) -> None:
        response = self.responses.get(message.receiver)
        if response is not None:
            response.written(message)


@dataclass(eq=False, repr=False)
class RemoteSession:
    """A session of another node, as one request sees it. See `AnySession`."""

    _relay: Relay
    _owner: NodeID
    _name: str
    _bearer: Bearer
    """The request."""
    _began: float
    """When the request came, as the node's event loop counts."""
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
        release = Release(self._name, self._number)
        response = RelayedResponse(receiver, self._relay.framing, lambda: self._send_soon(release))
        self._relay.responses[self._number] = response
        shown = self._bearer.auth_session, self._bearer.proofs
        try:
            attached = await self._ask(Attach(self._name, self._number, receiver.limit, *shown))
        except BaseException as error:
            del self._relay.responses[self._number]
            if not isinstance(error, NotOwnerError):
                self._send_soon(Detach(self._name, self._number))  # it may be attached anyway
            raise
        if not attached:
            del self._relay.responses[self._number]
            raise SessionGoneError
        self._watching = asyncio.create_task(self._watch(response))
        self._relay.node.opened(response)

    def detach(self, receiver: FrameReceiver, *, interrupted: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        response = self._relay.responses.pop(self._number, None)
        if response is not None:
            self._relay.node.closed(response)
            if interrupted or response.is_interrupted:
                self._send_soon(Detach(self._name, self._number))

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

    async def _watch(self, response: RelayedResponse) -> None:
        watch = WatchReceiver(self._name, self._number)
        with contextlib.suppress(SessionGoneError):
            await asyncio.sleep(WATCH_INTERVAL)
            while await self._ask(watch):
                await asyncio.sleep(WATCH_INTERVAL)
        response.interrupt()

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
