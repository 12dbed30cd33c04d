"""Maintenance of feeds: refresh presence, check positions.

Each feed has one timer. When it is due, the presence of the feed's subscribers is refreshed, and
its position is compared with the engine's: so a loss at the end of a stream is noticed although no
publication follows. After an interruption of the engine all feeds are maintained at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial

from realtime.cluster.context import Context
from realtime.engine.base import Presence
from realtime.node.feed import ChannelFeed

logger = logging.getLogger("realtime.node")


class Maintenance:
    """Maintains the feeds of a node. Belongs to its event loop."""

    def __init__(self, context: Context, presence: Presence) -> None:
        self._config, self._timers = context.config, context.timers
        self._spawn = context.spawn
        self._logged = partial(
            context.logged,
            logger.warning,
            "Could not refresh presence or check positions, will retry: %s",
        )
        self._presence = presence

    def opened(self, feed: ChannelFeed) -> None:
        """Open a feed, and maintain it from now on until it is closed."""
        timer = None
        if not feed.is_maintained and (feed.options.presence or feed.follower is not None):
            timer = self._timers.timer(lambda: self._spawn(self._maintain(feed)))
        feed.opened(self._timers.now(), timer)
        if timer is not None:
            self._schedule(feed)

    def _schedule(self, feed: ChannelFeed) -> None:
        feed.schedule(self._timers.now() + self._config.client_presence_ping_interval)

    async def refresh_presence(self, feeds: Sequence[ChannelFeed]) -> None:
        """Refresh presence at once: the engine may have lost it."""
        with self._logged():  # each feed's own timer tries again
            for feed in feeds:
                if feed.options.presence and feed:
                    await self._refresh_presence(feed)

    async def _maintain(self, feed: ChannelFeed) -> None:
        try:
            with self._logged():
                if feed.options.presence:
                    await self._refresh_presence(feed)
                if feed.follower is not None:
                    await self._check_position(feed)
        finally:
            self._schedule(feed)

    async def _refresh_presence(self, feed: ChannelFeed) -> None:
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

    async def _check_position(self, feed: ChannelFeed) -> None:
        delay = self._config.client_channel_position_check_delay
        if delay <= 0 or self._timers.now() - feed.checked_at < delay:
            return
        if feed.follower is not None and feed.follower.position is not None:
            # a stream that cannot be read must not keep presence from being refreshed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.client_presence_ping_interval):
                    await feed.follower.check()
                    feed.checked(self._timers.now())
