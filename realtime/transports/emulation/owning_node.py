"""Which node owns a session: claims in the engine, which all nodes see. A node alone owns all.

A claim has an end. Its owner renews it while the session lives, so the sessions of a dead node
are free after `CLAIM_LIFETIME`. The name of a claim is a digest, because clients choose the names
of sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from weakref import WeakValueDictionary

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.timers import Timer

CLAIM_LIFETIME = 90.0
"""Seconds after which a claim ends unless it is renewed."""
CLAIM_RENEWAL = 30.0
"""Seconds after which its owner renews it."""


class Claims:
    """The claims of one node on sessions. Belongs to its event loop."""

    def __init__(self, node: Node, kind: str) -> None:
        """`kind`: first part of the names of claims, the same at all nodes."""
        self._node = node
        self._kind = kind
        self._renewals: dict[str, Timer] = {}
        """Session → timer, for each claim that is kept."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock to hold while a session is claimed and made, or released.

        Other nodes see a claim before the session exists. Their questions wait for this lock.
        """
        lock = self._locks.get(session)
        if lock is None:
            lock = self._locks[session] = asyncio.Lock()
        return lock

    async def claim(self, session: str) -> NodeID:
        """Claim a session, or renew the claim, and return its owner: this node or another one.

        Raises:
            EngineUnavailable: the engine did not answer.
        """
        return await self._claim(session, self._node.uid, CLAIM_LIFETIME)

    async def owner(self, session: str) -> NodeID | None:
        """Return the owner of a session, None if no node claims it.

        Raises:
            EngineUnavailable: the engine did not answer.
        """
        if (cluster := self._node.cluster) is None:
            return None
        return await cluster.owner(self._name(session))

    async def drop(self, session: str, owner: NodeID) -> None:
        """End the claim of a node that does not have the session.

        Raises:
            EngineUnavailable: the engine did not answer.
        """
        await self._claim(session, owner, 0)

    def keep(self, session: str) -> None:
        """Renew the claim on a session until `release`."""
        timer = self._node.timers.timer(lambda: self._node.spawn(self._renew(session)))
        timer.set(self._node.timers.now() + CLAIM_RENEWAL)
        self._renewals[session] = timer

    def release(self, session: str) -> None:
        """End the claim on a session that is kept; without effect on others."""
        timer = self._renewals.pop(session, None)
        if timer is not None:
            timer.cancel()
            self._node.spawn(self._release(session))

    def renew_all(self) -> None:
        """Renew every claim soon: the engine was away, and may have lost them."""
        self._node.spawn(self._renew_all())

    async def _renew_all(self) -> None:
        for session in list(self._renewals):
            if session in self._renewals:
                await self._renew(session)

    async def _renew(self, session: str) -> None:
        with contextlib.suppress(EngineUnavailable):  # the next renewal is early enough
            await self.claim(session)
        timer = self._renewals.get(session)
        if timer is None:  # the release may have overtaken the renewal
            await self._release(session)
        else:
            timer.set(self._node.timers.now() + CLAIM_RENEWAL)

    async def _release(self, session: str) -> None:
        async with self.lock(session):
            if session not in self._renewals:
                with contextlib.suppress(EngineUnavailable):  # it ends by itself
                    await self.drop(session, self._node.uid)

    async def _claim(self, session: str, owner: NodeID, lifetime: float) -> NodeID:
        if (cluster := self._node.cluster) is None:
            return owner
        return await cluster.claim(self._name(session), owner, lifetime)

    def _name(self, session: str) -> str:
        digest = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
        return f"{self._kind}.{digest}"
