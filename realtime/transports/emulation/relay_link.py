"""Relay link: how a node sends relay messages, and asks other nodes. See `relay_messages`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import (
    ANSWER_TIMEOUT,
    DELIVER_TIMEOUT,
    RelayMessage,
)
from realtime.transports.emulation.session import NotOwnerError


class RelayLink:
    """Sends relay messages from one node, as direct messages about one subject."""

    def __init__(self, node: Node, subject: str) -> None:
        """
        Args:
            subject: tells apart the messages of several applications; the same at all nodes.
        """
        self._direct = node.direct
        self._subject = subject

    def on_message(self, handler: Callable[[NodeID, bytes], Awaitable[bytes] | None]) -> None:
        """Give sender and body of each message to `handler`. See `direct.Handler`."""
        self._direct.handle(self._subject, handler)

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
        if received == relay_messages.FORBIDDEN:
            raise NotOwnerError
        return received == relay_messages.YES

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
        raise EngineUnavailable("the other node, or Redis, did not answer in time") from None


async def answer(yes: bool) -> bytes:
    """Answer a question for which nothing has to be waited. See `RelayLink.on_message`."""
    return relay_messages.answer(yes)
