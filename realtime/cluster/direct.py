"""Direct messages: what one node tells one other node.

Each node has an inbox, an internal channel to which it alone is subscribed, so direct messages
travel as publications do. They may be lost, while the engine is away or because the receiver died.
Where that matters the sender asks a question: no answer in time is an answer, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeAlias

import msgspec

from realtime import payload
from realtime.channel_rules import INTERNAL_OPTIONS, inbox
from realtime.cluster.context import Context
from realtime.engine.base import Broker, Outgoing
from realtime.errors import EngineUnavailable
from realtime.payload import Payload
from realtime.protocol.messages import Publication

logger = logging.getLogger("realtime.node")

NodeID: TypeAlias = str


class DirectMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message as it travels. Nodes of the previous version read it: keep the order."""

    subject: str
    sender: NodeID
    question: int
    """The sender's number of a question, also in the answer to it; 0: no answer is wanted."""
    is_answer: bool
    body: msgspec.Raw


Handler: TypeAlias = Callable[[NodeID, bytes], Awaitable[bytes] | None]
"""Takes the sender and the body of a message, in the order of arrival and without waiting. Returns
the answer, where one is wanted."""

_decoder: msgspec.json.Decoder[DirectMessage] = msgspec.json.Decoder(DirectMessage)


class DirectMessages:
    """The direct messages of one node. Belongs to its event loop."""

    def __init__(self, context: Context, broker: Broker) -> None:
        self.inbox = inbox(context.uid)
        """The channel in which messages to this node arrive."""
        self._broker = broker
        self._uid, self._spawn = context.uid, context.spawn
        self._handlers: dict[str, Handler] = {}
        self._question_numbers = count(1)
        self._questions: dict[int, asyncio.Future[bytes]] = {}
        """Number of a question → its answer."""
        self._opening: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Begin to receive, once. A node that expects no message needs no inbox.

        Raises:
            EngineUnavailable: the inbox could not be subscribed to; the next call tries again.
        """
        opening = self._opening
        if opening is None or _has_failed(opening):
            opening = asyncio.ensure_future(self._broker.subscribe(self.inbox))
            self._opening = opening
        await asyncio.shield(opening)

    def handle(self, subject: str, handler: Handler) -> None:
        """Give messages about a subject to a handler."""
        self._handlers[subject] = handler

    async def send(self, to: NodeID, subject: str, body: bytes) -> None:
        """Send a message. `body`: JSON.

        Raises:
            EngineUnavailable: The engine did not answer, or refused.
        """
        await self._send(to, DirectMessage(subject, self._uid, 0, False, msgspec.Raw(body)))

    async def ask(self, to: NodeID, subject: str, body: bytes, timeout: float) -> bytes:
        """Send a question and wait for the answer. The inbox must be open.

        Args:
            body: JSON.
            timeout: seconds to wait.

        Returns:
            The body of the answer, JSON.

        Raises:
            EngineUnavailable: no answer came in time, or the question could not be sent.
        """
        number = next(self._question_numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        message = DirectMessage(subject, self._uid, number, False, msgspec.Raw(body))
        try:
            async with asyncio.timeout(timeout):
                await self._send(to, message)
                return await answer
        except TimeoutError:
            raise EngineUnavailable(f"another node did not answer within {timeout:g} s") from None
        finally:
            del self._questions[number]

    def on_message(self, data: Payload) -> None:
        """Take the data of a publication in the inbox."""
        try:
            message = _decode(data.raw)
        except msgspec.DecodeError as error:
            logger.warning("Ignored an unknown direct message (different version?): %s", error)
            return
        if message.is_answer:
            answer = self._questions.get(message.question)
            if answer is not None and not answer.done():
                answer.set_result(bytes(message.body))
            return
        handler = self._handlers.get(message.subject)
        if handler is None:
            logger.debug("No handler for a direct message about %r", message.subject)
            return
        answering = handler(message.sender, bytes(message.body))
        if answering is not None:
            self._spawn(self._answer(message, answering))

    async def _answer(self, message: DirectMessage, answering: Awaitable[bytes]) -> None:
        body = msgspec.Raw(await answering)
        if not message.question:
            return
        answer = DirectMessage(message.subject, self._uid, message.question, True, body)
        try:
            await self._send(message.sender, answer)
        except EngineUnavailable as error:
            logger.debug("Could not answer a direct message: %s", error)

    async def _send(self, to: NodeID, message: DirectMessage) -> None:
        data = payload.check(msgspec.json.encode(message))
        await self._broker.publish(Outgoing(inbox(to), Publication(data), INTERNAL_OPTIONS))


def _decode(text: bytes) -> DirectMessage:
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:  # rarely for a lone surrogate, so only now it is replaced
        return _decoder.decode(payload.replace_lone_surrogates(text))


def _has_failed(opening: asyncio.Future[None]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)
