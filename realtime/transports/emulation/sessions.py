"""The SockJS sessions of a node, and those of others it acts for.

With a shared engine a session has an owner among all nodes, so its requests may come to any of
them. The first request of a session makes the node it comes to the owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from itertools import count
from weakref import WeakValueDictionary

import msgspec

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.timers import Timer
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay import (
    DELIVER_PATIENCE,
    ActingResponse,
    DistantReceiver,
    DistantSession,
    SessionGoneError,
)
from realtime.transports.emulation.response import Response
from realtime.transports.emulation.session import INTERRUPTED, AnySession, Session

CLAIM_LIFETIME = 90.0
CLAIM_RENEWAL = 30.0
"""Seconds a node owns a session, and after which it says so again."""


class Sessions:
    """Belongs to a node and its event loop."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sessions: dict[str, Session] = {}
        self._claims: dict[str, Timer] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while a session is claimed and made, or given up."""
        self._distant: dict[tuple[NodeID, int], DistantReceiver] = {}
        """The receivers of sessions here that are at other nodes."""
        self._acting: dict[int, ActingResponse] = {}
        self._numbers = count(1)
        self._shared = node.engine.shared
        if self._shared:
            node.post.handle(relay_messages.SUBJECT, self._on_letter)

    async def attach(
        self, name: str, receiver: Response, handshake: Callable[[], Handshake]
    ) -> AnySession:
        """Attach a receiver to a session, which is made if there is none anywhere.

        Raises:
            EngineUnavailable: it cannot be known where the session is.
        """
        session = self._sessions.get(name)
        if session is None and self._shared:
            owner = await self._own(name, handshake)
            if owner != self._node.uid:
                distant = self._at(owner, name)
                try:
                    await distant.attach(receiver)
                except SessionGoneError as error:
                    return await self._replace(name, owner, error, receiver, handshake)
                return distant
            session = self._sessions.get(name)
        if session is None:
            session = self._make(name, handshake())
        await session.attach(receiver)
        return session

    async def find(self, name: str) -> AnySession | None:
        """A session that exists.

        Raises:
            EngineUnavailable: it cannot be known where it is.
        """
        session = self._sessions.get(name)
        if session is not None or not self._shared:
            return session
        await self._node.post.open()
        owner = await self._node.engine.owner(_claim_name(name))
        return None if owner is None or owner == self._node.uid else self._at(owner, name)

    async def _replace(
        self,
        name: str,
        owner: NodeID,
        error: SessionGoneError,
        receiver: Response,
        handshake: Callable[[], Handshake],
    ) -> AnySession:
        """Act for a session whose owner does not have it."""
        await self._node.engine.claim(_claim_name(name), owner, 0)
        if error.__cause__ is None:
            return await self.attach(name, receiver, handshake)  # it was about to forget it
        # it is dead, and with it a session its client believes in
        if not receiver.finishing:
            receiver.write(INTERRUPTED)
            receiver.finish()
        return self._at(owner, name)

    def _make(self, name: str, handshake: Handshake) -> Session:
        session = self._sessions[name] = Session(
            self._node, handshake, lambda: self._forget(name), lambda: self._ended(name)
        )
        if self._shared:
            timer = self._node.timers.timer(lambda: self._node.spawn(self._renew(name)))
            timer.set(self._node.timers.now() + CLAIM_RENEWAL)
            self._claims[name] = timer
        return session

    def _at(self, owner: NodeID, name: str) -> DistantSession:
        return DistantSession(self._node, name, owner, self._acting, next(self._numbers))

    def _ended(self, name: str) -> None:
        if self._node.stopping:
            self._give_up(name)  # this node is not there any more when it would be forgotten

    def _forget(self, name: str) -> None:
        del self._sessions[name]
        self._give_up(name)

    # owners

    async def _own(self, name: str, handshake: Callable[[], Handshake]) -> NodeID:
        """The owner of a session; where that is this node, the session is here."""
        async with self._lock(name):
            owner = await self._claim(name)
            if owner == self._node.uid and name not in self._sessions:
                self._make(name, handshake())
        return owner

    async def _claim(self, name: str) -> NodeID:
        await self._node.post.open()
        return await self._node.engine.claim(_claim_name(name), self._node.uid, CLAIM_LIFETIME)

    async def _renew(self, name: str) -> None:
        with contextlib.suppress(EngineUnavailable):  # the next one is early enough
            await self._claim(name)
        timer = self._claims.get(name)
        if timer is not None:
            timer.set(self._node.timers.now() + CLAIM_RENEWAL)

    def _give_up(self, name: str) -> None:
        timer = self._claims.pop(name, None)
        if timer is not None:
            timer.cancel()
            self._node.spawn(self._release(name))

    async def _release(self, name: str) -> None:
        async with self._lock(name):
            if name not in self._claims:
                with contextlib.suppress(EngineUnavailable):  # it ends by itself
                    await self._node.engine.claim(_claim_name(name), self._node.uid, 0)

    def _lock(self, name: str) -> asyncio.Lock:
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    # letters

    def _on_letter(self, sender: NodeID, body: bytes) -> Awaitable[bytes] | None:
        try:
            letter = relay_messages.decode(body)
        except msgspec.DecodeError:
            return None  # of another version, which will see that nobody answers
        match letter:
            case relay_messages.Written():
                acting = self._acting.get(letter.receiver)
                if acting is not None:
                    acting.written(letter)
                return None
            case relay_messages.Detach():
                self._on_detach(sender, letter)
                return None
            case relay_messages.Release():
                receiver = self._distant.get((sender, letter.receiver))
                if receiver is not None:
                    receiver.release()
                return None
            case relay_messages.Attach():
                return self._on_attach(sender, letter)
            case relay_messages.Deliver():
                return self._on_deliver(letter)
            case relay_messages.Watch():
                receiver = self._distant.get((sender, letter.receiver))
                if receiver is not None:
                    receiver.watched()
                return _answer(receiver is not None)
            case relay_messages.Check():
                return _answer(letter.receiver in self._acting)

    def _on_detach(self, sender: NodeID, letter: relay_messages.Detach) -> None:
        receiver = self._distant.get((sender, letter.receiver))
        session = self._sessions.get(letter.session)
        if receiver is not None:
            receiver.end(interrupted=True)
        elif session is not None:
            session.closed()  # the receiver was given all it could take, and has lost it

    async def _on_attach(self, sender: NodeID, letter: relay_messages.Attach) -> bytes:
        async with self._lock(letter.session):  # others know of a claim before the session is made
            session = self._sessions.get(letter.session)
        if session is None:
            return relay_messages.NO
        key = sender, letter.receiver
        receiver = DistantReceiver(
            self._node, session, *key, letter.limit, lambda: self._distant.pop(key, None)
        )
        self._distant[key] = receiver
        await session.attach(receiver)
        return relay_messages.YES

    async def _on_deliver(self, letter: relay_messages.Deliver) -> bytes:
        session = self._sessions.get(letter.session)
        if session is None:
            return relay_messages.NO
        try:
            async with asyncio.timeout(DELIVER_PATIENCE):  # nobody waits for the answer longer
                taken = await session.deliver([text.encode() for text in letter.frames])
        except TimeoutError:
            taken = False
        return relay_messages.YES if taken else relay_messages.NO


async def _answer(yes: bool) -> bytes:
    return relay_messages.YES if yes else relay_messages.NO


def _claim_name(session: str) -> str:
    """What the owner of a session owns. Of a digest: clients choose the names of sessions."""
    digest = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
    return f"sockjs.{digest}"
