"""Writes who went offline: once a minute, in bulk, by one node of the service.

Who went offline is noted in the engine, in the step that decides it. So the writer has nothing to
ask of the database while nobody goes, and nothing is lost when a node dies or the database is
away. The rows are written before the note is forgotten: a writer that dies in between leaves both,
and the next one writes them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from realtime.errors import EngineUnavailable
from realtime.hooks.runner import own_connections
from realtime.node.node import Node
from realtime.online.seen import models
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.online")

WRITE_INTERVAL = 60.0
CLAIM = "last-seen"
CLAIM_LIFETIME = 1.5 * WRITE_INTERVAL
"""Seconds after which another node writes, if the one that did has died."""
AT_ONCE = 10_000
"""Users that are read and written together."""
STOP_TIMEOUT = 1.0
"""Seconds for the last users, in a service of one process."""


class Writer:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, node: Node, interval: float = WRITE_INTERVAL) -> None:
        """`interval`: seconds between two looks."""
        self._node = node
        self._interval = interval
        self._timer = node.timers.timer(lambda: node.spawn(self._run()))
        self._is_failing = False
        """Whether the last write failed: one line tells of all that fail one after another."""
        self._writing = asyncio.Lock()

    def start(self) -> None:
        """Have users noted who go offline, and write them from now on."""
        if self._node.seen is not None:
            self._node.seen.note()
            self._timer.set(self._node.timers.now() + self._interval)

    def begin_stop(self) -> None:
        """Write no more, but for the last users."""
        self._timer.cancel()

    async def stop(self) -> None:
        """Write the last users where there is no other node that could. Never raises."""
        if self._node.cluster is None:
            try:
                async with asyncio.timeout(STOP_TIMEOUT):
                    await self._write()
            except TimeoutError:
                logger.error("When users were online last could not be written in time")

    async def _run(self) -> None:
        await self._write()
        self._timer.set(self._node.timers.now() + self._interval)

    async def _write(self) -> None:
        """Write who went offline, if this node owns the work. Never raises."""
        try:
            async with self._writing:
                while (last_seen := self._node.seen) is not None and await self._is_owner():
                    seen = await last_seen.users(AT_ONCE)
                    if not seen:
                        return
                    await asyncio.to_thread(_write, seen)
                    self._is_failing = False
                    await last_seen.forget(seen)
        except EngineUnavailable as error:
            logger.debug("Could not read who went offline: %s", error)
        except Exception as error:  # of every database
            if not self._is_failing:
                logger.error(
                    "When users were online last could not be written, trying again: %s",
                    str(error) or type(error).__name__,
                )
            self._is_failing = True

    async def _is_owner(self) -> bool:
        cluster, uid = self._node.cluster, self._node.uid
        return cluster is None or await cluster.claim(CLAIM, uid, CLAIM_LIFETIME) == uid


def _write(seen: Mapping[UserID, int]) -> None:
    with own_connections():
        models.write(seen)
