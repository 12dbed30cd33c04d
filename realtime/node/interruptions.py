"""Interruptions of the engine, as a node lives through them.

on_interrupted ──► followers wait for what may be missing
on_resumed ──► heartbeat, blocks, followers catch up, presence is refreshed, clients read ephemeral
               maps again
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from realtime.channel_rules import CONTROL
from realtime.cluster.context import Context
from realtime.cluster.peers import Peers
from realtime.engine.base import Affects
from realtime.metrics import Counters
from realtime.node.hub import Hub
from realtime.node.limits.blocks import Blocks
from realtime.node.limits.user_limits import UserLimits
from realtime.node.maintenance import Maintenance
from realtime.node.observer import Observer
from realtime.protocol.messages import ChannelName
from realtime.streams.follower import StreamFollower

logger = logging.getLogger("realtime.node")

CATCH_UP_AT_ONCE = 100
"""Feeds that catch up side by side after an interruption."""
CATCH_UP_TIMEOUT = 1.0
"""Seconds until the next feeds begin: a stream that cannot be read does not delay the others."""


@dataclass(eq=False, repr=False)
class Interruptions:
    """See the module. Belongs to the event loop of its node."""

    _context: Context
    _hub: Hub
    _peers: Peers | None
    _blocks: Blocks
    _user_limits: UserLimits
    _maintenance: Maintenance
    _counters: Counters
    _observer: Observer
    when_over: list[Callable[[], None]] = field(default_factory=list)
    """What else is called at the end of each."""

    def were_within(self, seconds: float) -> bool:
        """Return whether messages of other nodes may have been lost or late in that time."""
        return self._context.outage.within(seconds) or (
            self._peers is not None and self._peers.was_slow(seconds)
        )

    def begin(self, affects: Affects) -> None:
        """Let the followers of the affected channels wait. See `engine.base.Receiver`."""
        self._counters.interruptions += 1
        self._observer.happened("redis_away")
        logger.debug("The engine is interrupted: publications may come late")
        self._context.outage.announced()  # by the engine, which knows the reason
        for channel, follower in self._followers():
            if affects(channel):
                follower.interrupt()

    def end(self, affects: Affects) -> None:
        """Make up for what may be missing in the affected channels."""
        logger.debug("The engine is back")
        self._context.outage.over()
        if affects(CONTROL):
            self._user_limits.on_resumed()
        self._observer.happened("redis_back")
        if self._peers is not None:
            self._context.spawn(self._peers.heartbeat())
            self._context.spawn(self._blocks.check())
        followers = [each for each in self._followers() if affects(each[0])]
        self._context.spawn(_catch_up([(*each, each[1].interruptions) for each in followers]))
        feeds = [feed for feed in self._hub.feeds.values() if affects(feed.channel)]
        self._context.spawn(self._maintenance.refresh_presence(feeds))
        for feed in feeds:
            if feed.options.map == "ephemeral":
                for client in list(feed.subscribers()):
                    client.lose_position(feed.channel)
        for callback in self.when_over:
            callback()

    def _followers(self) -> Iterator[tuple[ChannelName, StreamFollower]]:
        if self._peers is not None:
            yield CONTROL, self._peers.control
        for channel, feed in self._hub.feeds.items():
            if feed.follower is not None:
                yield channel, feed.follower


async def _catch_up(interrupted: list[tuple[ChannelName, StreamFollower, int]]) -> None:
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
