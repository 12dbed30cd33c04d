"""What nodes say to each other about sessions, and how they send it.

A load balancer may send each request to another node. The node that has the session is its owner;
a node that got a request for it relays. Its side of the session is a remote session; at the owner
its response is a remote receiver.

    relay node                                    owner
    Attach   ─────────────────────────────────►   attach a remote receiver to the session
             ◄─────────────────────────────────   Written: frames for the response
    Watch    ──────── every few seconds ───────►  each learns that the other is alive
             ◄─────────────────────────────────   Check: is this response still open?
    Detach   ─────────────────────────────────►   the peer has gone, or frames were lost
    Release  ─────────────────────────────────►   end the response in order: this node stops
    Deliver  ─────────────────────────────────►   frames of the client
    Forward  ─────────────────────────────────►   the same for a stream, see `streaming`

Either side may die. The owner ends a session whose receiver is not watched any more; the relay
node ends its response when the owner does not answer. In both cases the client learns that the
session is interrupted, opens another one, and recovers.

Nodes of two versions exchange these messages during an upgrade: tags and order of fields stay,
and new fields come last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import msgspec

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation.session import NotOwnerError

WATCH_INTERVAL = 4.0
"""Seconds between two Watch messages of a relay node."""
ANSWER_TIMEOUT = 2.0
"""Seconds the other node has to answer."""
CHECK_TIMEOUT = ANSWER_TIMEOUT / 2
"""Seconds a relay node has to answer Check: the owner has to answer a question meanwhile."""
DELIVER_TIMEOUT = 4.5
"""Seconds until a request that brings frames for another node has its answer: clients wait for 5.
The owner may have to handle earlier frames first. The relay node asks meanwhile whether the owner
is alive."""
LISTS_DOUBTFUL = 10.0
"""Seconds after an outage of the engine in which a node or a session may be missing in its lists,
because the engine has lost them and the owners have not listed them again."""
UNWATCHED_TIMEOUT = 2 * WATCH_INTERVAL + ANSWER_TIMEOUT
"""Seconds without Watch after which the owner gives up a remote receiver."""


class _OfReceiver(msgspec.Struct, frozen=True, array_like=True):
    session: str
    receiver: int
    """Its number at the relay node."""


class Attach(_OfReceiver, frozen=True, tag="attach"):
    """Question: let this receiver take the frames of a session. The answer is a bool."""

    limit: int
    """Bytes of frames after which it is full; 0: after one frame."""
    auth_session: str | None = None
    """The auth session of the request, "" for none; None: an older node relays, and cannot say."""
    proofs: tuple[str, ...] | None = None
    """See `owning_client.Bearer`; None as above."""


class WatchReceiver(_OfReceiver, frozen=True, tag="watch"):
    """Question: is this receiver attached to the session? The answer is a bool."""


class Detach(_OfReceiver, frozen=True, tag="detach"):
    """Frames that a receiver took did not reach its peer, or may not have."""


class Release(_OfReceiver, frozen=True, tag="release"):
    """The relay node stops: end the response in order."""


class Deliver(msgspec.Struct, frozen=True, tag="deliver", array_like=True):
    """Question: take these frames of the client. The answer is a bool."""

    session: str
    frames: list[str]
    auth_session: str | None = None
    proofs: tuple[str, ...] | None = None
    """Both as in Attach."""


class WrittenFrames(msgspec.Struct, frozen=True, tag="written", array_like=True):
    """Frames for the response of a receiver."""

    receiver: int
    number: int
    """Counts these messages from 0, so that the relay node notices a missing one."""
    frames: list[str]
    last: bool


class CheckReceiver(msgspec.Struct, frozen=True, tag="check", array_like=True):
    """Question: is this receiver's response open? The answer is a bool."""

    receiver: int


class Forward(msgspec.Struct, frozen=True, tag="forward", array_like=True):
    """Question: take this frame of the client of a stream. The answer is a bool."""

    session: str
    frame: bytes


RelayMessage: TypeAlias = (
    Attach | WatchReceiver | Detach | Release | Deliver | WrittenFrames | CheckReceiver | Forward
)

_decoder: msgspec.json.Decoder[RelayMessage] = msgspec.json.Decoder(RelayMessage)

YES, NO = b"true", b"false"
FORBIDDEN = b"null"
"""Answer to Attach and Deliver: the session belongs to another client."""


def decode(body: bytes) -> RelayMessage:
    """Decode a message.

    Raises:
        msgspec.DecodeError: a node of another version sent what this one does not know.
    """
    return _decoder.decode(body)


class RelayLink:
    """Sends relay messages from one node, as direct messages about one subject."""

    def __init__(self, node: Node, subject: str) -> None:
        """
        Args:
            subject: tells apart the messages of several applications; the same at all nodes.
        """
        self._direct = node.direct
        self._subject = subject

    def on_message(
        self, handler: Callable[[NodeID, RelayMessage], Awaitable[bytes] | None]
    ) -> None:
        """Give sender and content of each message to `handler`. See `direct.Handler`."""

        def received(sender: NodeID, body: bytes) -> Awaitable[bytes] | None:
            try:
                message = decode(body)
            except msgspec.DecodeError:
                return None  # of another version; its question stays without an answer
            return handler(sender, message)

        self._direct.handle(self._subject, received)

    async def open(self) -> None:
        """Begin to receive; needed before the first question.

        Raises:
            EngineUnavailable: the inbox of this node could not be opened.
        """
        await self._direct.open()

    async def ask(
        self, to: NodeID, question: RelayMessage, timeout: float = ANSWER_TIMEOUT
    ) -> bool:
        """Ask another node and return its answer.

        Raises:
            NotOwnerError: the session belongs to another client.
            EngineUnavailable: no answer within `timeout` seconds.
        """
        body = msgspec.json.encode(question)
        received = await self._direct.ask(to, self._subject, body, timeout)
        if received == FORBIDDEN:
            raise NotOwnerError
        return received == YES

    async def deliver(self, to: NodeID, question: RelayMessage, watch: RelayMessage) -> bool:
        """Have the owner of a session take what its client sent, and return its answer.

        Args:
            watch: a question that the owner answers at once. It may be busy with earlier frames of
                the client: then any answer shows that it is alive.

        Raises:
            NotOwnerError: the session belongs to another client.
            EngineUnavailable: it is not known whether the owner took it.
        """
        asking = asyncio.ensure_future(self.ask(to, question, DELIVER_TIMEOUT))
        try:
            await asyncio.wait([asking], timeout=ANSWER_TIMEOUT)
            if not asking.done():
                await self.ask(to, watch)
            return await asking
        finally:
            asking.cancel()

    async def send(self, to: NodeID, message: RelayMessage) -> None:
        """Send a message to another node. It may be lost anyway.

        Raises:
            EngineUnavailable: the engine did not take it.
        """
        await self._direct.send(to, self._subject, msgspec.json.encode(message))


@asynccontextmanager
async def in_time(began: float) -> AsyncIterator[None]:
    """Bound what a request waits for another node, from the moment when it began.

    Raises:
        EngineUnavailable: the time is over.
    """
    try:
        async with asyncio.timeout_at(began + DELIVER_TIMEOUT):
            yield
    except TimeoutError:
        raise EngineUnavailable("the other node, or the engine, did not answer in time") from None


async def answer_at_once(yes: bool) -> bytes:
    """Answer a question for which nothing has to be waited. See `RelayLink.on_message`."""
    return YES if yes else NO


async def answer_when_taken(taking: Awaitable[bool]) -> bytes:
    """Answer whether frames were taken; no later than the relay node waits for it."""
    try:
        async with asyncio.timeout(DELIVER_TIMEOUT):
            return YES if await taking else NO
    except TimeoutError:
        return NO
