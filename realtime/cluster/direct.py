"""Post: what one node says to another one alone.

A letter goes to the inbox of a node, an internal channel that it alone subscribes to, so it
travels as publications do. Letters may get lost (Redis is away, the node has died): who has to
know asks, and an answer that does not come in time is an answer, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any, TypeAlias

import msgspec

from realtime import payload
from realtime.channel_rules import inbox
from realtime.config.options import ChannelOptions
from realtime.engine.base import Broker
from realtime.errors import EngineUnavailable
from realtime.payload import Payload
from realtime.protocol.messages import Publication

logger = logging.getLogger("realtime.node")

_OPTIONS = ChannelOptions()
"""Nothing is kept: a letter that comes too late is of no use."""

NodeID: TypeAlias = str


class Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What travels."""

    subject: str
    sender: NodeID
    question: int
    """Its number, where an answer is wanted, of the question in an answer; otherwise 0."""
    is_answer: bool
    body: msgspec.Raw


Handler: TypeAlias = Callable[[NodeID, bytes], Awaitable[bytes] | None]
"""Is given the sender and the body of a letter in the turn of the loop in which it came, so it
sees letters in their order. What it returns gives the answer, where one is wanted."""

_decoder: msgspec.json.Decoder[Letter] = msgspec.json.Decoder(Letter)


class Post:
    """The letters of one node. Belongs to its event loop."""

    def __init__(
        self,
        broker: Broker,
        uid: NodeID,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._broker = broker
        self._uid = uid
        self.inbox = inbox(uid)
        """The channel in which letters to this node come."""
        self._spawn = spawn
        self._handlers: dict[str, Handler] = {}
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._opening: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Begin to receive, once. Nodes that have nothing to say to each other have no inbox.

        Raises:
            EngineUnavailable: the next call tries again.
        """
        opening = self._opening
        if opening is None or _failed(opening):
            opening = asyncio.ensure_future(self._broker.subscribe(self.inbox))
            self._opening = opening
        await asyncio.shield(opening)

    def handle(self, subject: str, handler: Handler) -> None:
        """Have letters about a subject handed over."""
        self._handlers[subject] = handler

    async def send(self, to: NodeID, subject: str, body: bytes) -> None:
        """Send a letter. `body`: JSON.

        Raises:
            EngineUnavailable
        """
        await self._send(to, Letter(subject, self._uid, 0, False, msgspec.Raw(body)))

    async def ask(self, to: NodeID, subject: str, body: bytes, patience: float) -> bytes:
        """Send a letter and wait for the answer, for `patience` seconds. `open` comes first.

        Raises:
            EngineUnavailable: there is none.
        """
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(patience):
                await self._send(to, Letter(subject, self._uid, number, False, msgspec.Raw(body)))
                return await answer
        except TimeoutError:
            raise EngineUnavailable(f"another node did not answer within {patience:g} s") from None
        finally:
            del self._waiting[number]

    def arrived(self, data: Payload) -> None:
        """A letter to this node came."""
        try:
            letter = _decode(data.raw)
        except msgspec.DecodeError as error:
            logger.warning("Another node writes what this one cannot read: %s", error)
            return
        if letter.is_answer:
            waiting = self._waiting.get(letter.question)
            if waiting is not None and not waiting.done():
                waiting.set_result(bytes(letter.body))
            return
        handler = self._handlers.get(letter.subject)
        if handler is None:
            logger.debug("Nobody here reads letters about %r", letter.subject)
            return
        answering = handler(letter.sender, bytes(letter.body))
        if answering is not None:
            self._spawn(self._answer(letter, answering))

    async def _answer(self, letter: Letter, answering: Awaitable[bytes]) -> None:
        body = msgspec.Raw(await answering)
        if not letter.question:
            return
        try:
            await self._send(
                letter.sender, Letter(letter.subject, self._uid, letter.question, True, body)
            )
        except EngineUnavailable as error:
            logger.debug("A question could not be answered: %s", error)

    async def _send(self, to: NodeID, letter: Letter) -> None:
        data = payload.check(msgspec.json.encode(letter))
        await self._broker.publish(inbox(to), Publication(data), _OPTIONS)


def _decode(text: bytes) -> Letter:
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:  # perhaps of half a surrogate pair; looking for it costs more
        return _decoder.decode(payload.replace_lone_surrogates(text))


def _failed(opening: asyncio.Future[None]) -> bool:
    """Whether it is over and was of no use."""
    return opening.done() and (opening.cancelled() or opening.exception() is not None)
