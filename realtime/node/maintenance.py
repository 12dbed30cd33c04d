"""Maintenance of feeds: refresh presence, check positions, catch up after an interruption.

Each feed has one timer. When it is due, the presence of the feed's subscribers is refreshed, and
its position is compared with the engine's: so a loss at the end of a stream is noticed although no
publication follows. After an interruption of the engine all feeds are maintained at once.
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
from realtime.metrics import Outage
from realtime.node.feed import Feed
from realtime.protocol.messages import ChannelName
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

CATCH_UP_AT_ONCE = 100
"""Feeds that catch up side by side after an interruption."""
CATCH_UP_TIMEOUT = 1.0
"""Seconds until the next feeds begin: a stream that cannot be read does not delay the others."""


class Maintenance:
    """Maintains the feeds of a node. Belongs to its event loop."""

    def __init__(
        self,
        config: Config,
        presence: Presence,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        outage: Outage,
    ) -> None:
        self._config = config
        self._presence = presence
        self._timers = timers
        self._spawn = spawn
        self._outage = outage

    def opened(self, feed: Feed) -> None:
        """Open a feed, and maintain it from now on until it is closed."""
        timer = None
        if not feed.is_maintained and (feed.options.presence or feed.follower is not None):
            timer = self._timers.timer(lambda: self._spawn(self._maintain(feed)))
        feed.opened(self._timers.now(), timer)
        if timer is not None:
            self._schedule(feed)

    def _schedule(self, feed: Feed) -> None:
        feed.schedule(self._timers.now() + self._config.client_presence_ping_interval)

    async def refresh_presence(self, feeds: Sequence[Feed]) -> None:
        """Refresh presence at once: Redis may have lost it."""
        for feed in feeds:
            if feed.options.presence and feed:
                try:
                    await self._refresh_presence(feed)
                except EngineUnavailable as error:
                    self._log(error)
                    return  # each feed's own timer tries again

    async def _maintain(self, feed: Feed) -> None:
        try:
            if feed.options.presence:
                await self._refresh_presence(feed)
            if feed.follower is not None:
                await self._check_position(feed)
        except EngineUnavailable as error:
            self._log(error)
        finally:
            self._schedule(feed)

    def _log(self, error: EngineUnavailable) -> None:
        if self._outage.begins():
            logger.warning("Could not refresh presence or check positions, will retry: %s", error)

    async def _refresh_presence(self, feed: Feed) -> None:
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
            # a stream that cannot be read must not keep presence from being refreshed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.client_presence_ping_interval):
                    await feed.follower.check()
                    feed.checked(self._timers.now())


async def catch_up(interrupted: list[tuple[ChannelName, StreamFollower, int]]) -> None:
    """Catch up in channels after an interruption; publications that arrive meanwhile wait.

    Args:
        interrupted: channels, their followers, and the `interruptions` of each.
    """
    loop = asyncio.get_running_loop()
    for start in range(0, len(interrupted), CATCH_UP_AT_ONCE):
        part = interrupted[start : start + CATCH_UP_AT_ONCE]
        resuming = {
            loop.create_task(follower.resume(number)): channel for channel, follower, number in part
        }
        done, late = await asyncio.wait(resuming, timeout=CATCH_UP_TIMEOUT)
        for task in late:
            task.cancel()  # ends the wait; the follower's own reader tries on
        for task in done:  # a channel that ended meanwhile cancels its task
            if not task.cancelled() and (error := task.exception()) is not None:
                about = {"channel": resuming[task]}
                logger.error(
                    "Could not catch up in channel %r", resuming[task], exc_info=error, extra=about
                )
