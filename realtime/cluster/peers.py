"""Peers: what every node says to all the others: that it lives, and what they are to do.

Signs of life are entries with a lifetime. Commands are a stream, followed as channels are, so a
node that was cut off obeys late rather than never.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from realtime.channel_rules import CONTROL
from realtime.cluster import control
from realtime.cluster.control import Control
from realtime.engine.base import Engine, NodeInfo
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

HEARTBEAT_INTERVAL = 3.0
HEARTBEAT_LIFETIME = 10.0
"""Seconds between a node's signs of life, and until a silent one is forgotten."""


class Peers:
    """A node's side of it. Belongs to its event loop."""

    def __init__(
        self,
        engine: Engine,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        describe: Callable[[], NodeInfo],
        on_command: Callable[[Control], None],
    ) -> None:
        """
        Args:
            describe: what the node says of itself.
            on_command: is given every command, those of this node included, in their order.
        """
        self._engine = engine
        self._timers = timers
        self._describe = describe
        self._on_command = on_command
        self.commands = StreamFollower(engine, CONTROL, self._on_publication, self._on_lost)
        """Reads the stream of commands."""
        self._heartbeat = timers.timer(lambda: spawn(self.beat()))
        self._stopping = False
        self._silent = False
        """Whether the last sign of life failed."""

    async def start(self) -> None:
        """Begin to hear the others, and to be seen by them.

        Raises:
            EngineUnavailable
        """
        await self._engine.subscribe(CONTROL)
        await self.commands.start()
        await self._engine.announce(self._describe(), HEARTBEAT_LIFETIME)
        self._heartbeat.set(self._timers.now() + HEARTBEAT_INTERVAL)

    def begin_stop(self) -> None:
        """Give no more signs of life; commands are still obeyed."""
        self._stopping = True
        self._heartbeat.cancel()

    def stop(self) -> None:
        """Obey no more."""
        self.commands.stop()

    async def beat(self) -> None:
        """Give a sign of life; see whether a command got lost. Never raises."""
        try:
            await self._engine.announce(self._describe(), HEARTBEAT_LIFETIME)
            self._silent = False
        except Exception as error:  # whatever it is, the next heartbeat tries again
            if not self._silent:
                logger.warning("The other nodes cannot be told that this one lives: %s", error)
            self._silent = True
        finally:
            if not self._stopping:
                self._heartbeat.set(self._timers.now() + HEARTBEAT_INTERVAL)
        if not self._silent:
            await self._check_commands()

    async def _check_commands(self) -> None:
        """Notice a command that got lost; and keep the stream's position from being forgotten."""
        try:
            async with asyncio.timeout(HEARTBEAT_INTERVAL):
                await self.commands.check()
        except (EngineUnavailable, TimeoutError) as error:  # the next heartbeat tries again
            logger.debug("What nodes tell each other could not be checked: %r", error)

    def _on_publication(self, publication: Publication) -> None:
        try:
            command = control.decode(publication.data)
        except msgspec.DecodeError as error:
            logger.warning("Another node says what this one does not understand: %s", error)
            return
        self._on_command(command)

    def _on_lost(self) -> None:
        logger.error(
            "Redis lost what nodes tell each other: a disconnect or unsubscribe of the last"
            " moments may not have reached the clients of this node"
        )
