"""Upkeep of feeds: presence is renewed, positions are checked, streams are caught up with.

Each feed has one timer: it renews the presence of its local subscribers and compares the
position with the engine's, so that a loss at the end of a stream is noticed without a further
publication. After an interruption of the engine all of it is done at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from realtime.config.options import Config
from realtime.engine.base import Presence
from realtime.errors import EngineUnavailable
from realtime.node.feed import Feed
from realtime.protocol.messages import ChannelName
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

RESUMED_AT_ONCE = 100
"""Feeds that catch up side by side after an interruption."""
RESUME_PATIENCE = 1.0
"""Seconds these have before the next ones begin: a stream that cannot be read holds up nobody."""


class Maintenance:
    """Maintains the feeds of a node. Belongs to its event loop."""

    def __init__(
        self,
        config: Config,
        presence: Presence,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._config = config
        self._presence = presence
        self._timers = timers
        self._spawn = spawn
        self._neglecting = False
        """Whether the last feed whose turn it was could not be seen to."""

    def opened(self, feed: Feed) -> None:
        """Open a feed, and maintain it from now on until it is closed."""
        options = feed.options
        timer = None
        if options.presence or options.history_recover:
            timer = self._timers.timer(lambda: self._spawn(self._maintain(feed)))
        feed.opened(self._timers.now(), timer)
        self._schedule(feed)

    def _schedule(self, feed: Feed) -> None:
        feed.schedule(self._timers.now() + self._config.client_presence_ping_interval)

    async def renew(self, feeds: Sequence[Feed]) -> None:
        """Be present again, where Redis forgot."""
        for feed in feeds:
            if feed.options.presence and feed:
                try:
                    await self._renew_presence(feed)
                except EngineUnavailable as error:
                    logger.warning("Presence cannot be renewed yet: %s", error)
                    return  # each feed's own timer sees to it

    async def _maintain(self, feed: Feed) -> None:
        try:
            if feed.options.presence:
                await self._renew_presence(feed)
            if feed.options.history_recover:
                await self._check_position(feed)
            self._neglecting = False
        except EngineUnavailable as error:
            if not self._neglecting:  # all feeds fail together: one line for them
                logger.warning("Presence and positions cannot be seen to yet: %s", error)
            self._neglecting = True
        finally:
            self._schedule(feed)

    async def _renew_presence(self, feed: Feed) -> None:
        clients = feed.present()
        if not clients:
            return
        await self._presence.add(
            feed.channel,
            [client.info_in(feed.channel) for client in clients],
            self._config.client_presence_expire_interval,
        )
        for client in clients:
            if not feed.is_present(client):  # it left meanwhile, and must not be present again
                await self._presence.remove(feed.channel, client.id)

    async def _check_position(self, feed: Feed) -> None:
        delay = self._config.client_channel_position_check_delay
        if delay <= 0 or self._timers.now() - feed.checked_at < delay:
            return
        if feed.follower is not None and feed.follower.position is not None:
            # a stream that cannot be read must not keep presence from being renewed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.client_presence_ping_interval):
                    await feed.follower.check()
                    feed.checked(self._timers.now())


async def catch_up(interrupted: list[tuple[ChannelName, StreamFollower, int]]) -> None:
    """Catch up in every channel after an interruption; what arrives in one meanwhile waits.

    `interrupted`: channels, their followers, and how often these were interrupted.
    """
    loop = asyncio.get_running_loop()
    for start in range(0, len(interrupted), RESUMED_AT_ONCE):
        part = interrupted[start : start + RESUMED_AT_ONCE]
        resuming = {
            loop.create_task(follower.resume(number)): channel for channel, follower, number in part
        }
        done, late = await asyncio.wait(resuming, timeout=RESUME_PATIENCE)
        for task in late:
            task.cancel()  # ends the wait; the channel's own reader goes on trying
        for task in done:  # a channel that ended meanwhile cancels its task
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("Catching up failed in channel %r", resuming[task], exc_info=error)
