"""Interruptions of the engine, as a node lives through them.

on_interrupted ──► followers wait for what may be missing
on_resumed ──► heartbeat, blocks, followers catch up, presence is refreshed
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from realtime.channel_rules import CONTROL
from realtime.cluster.peers import Peers
from realtime.engine.base import Affects
from realtime.metrics import Counters, Outage
from realtime.node import maintenance
from realtime.node.blocks import Blocks
from realtime.node.hub import Hub
from realtime.node.maintenance import Maintenance
from realtime.node.observer import Observer
from realtime.node.user_limits import UserLimits
from realtime.protocol.messages import ChannelName
from realtime.streams.follower import StreamFollower

logger = logging.getLogger("realtime.node")


class Interruptions:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        hub: Hub,
        peers: Peers | None,
        blocks: Blocks,
        user_limits: UserLimits,
        upkeep: Maintenance,
        counters: Counters,
        outage: Outage,
        observer: Observer,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._hub = hub
        self._peers = peers
        self._blocks = blocks
        self._user_limits = user_limits
        self._maintenance = upkeep
        self._counters = counters
        self._outage = outage
        self._observer = observer
        self._spawn = spawn
        self.when_over: list[Callable[[], None]] = []
        """What else is called at the end of each."""

    def were_within(self, seconds: float) -> bool:
        """Return whether messages of other nodes may have been lost or late in that time."""
        return self._outage.within(seconds) or (
            self._peers is not None and self._peers.was_slow(seconds)
        )

    def begin(self, affects: Affects) -> None:
        """Let the followers of the affected channels wait. See `engine.base.Receiver`."""
        self._counters.interruptions += 1
        self._observer.happened("redis_away")
        logger.debug("The engine is interrupted: publications may come late")
        self._outage.announced()  # by the engine, which knows the reason
        for channel, follower in self._followers():
            if affects(channel):
                follower.interrupt()

    def end(self, affects: Affects) -> None:
        """Make up for what may be missing in the affected channels."""
        logger.debug("The engine is back")
        self._outage.over()
        if affects(CONTROL):
            self._user_limits.on_resumed()
        self._observer.happened("redis_back")
        if self._peers is not None:
            self._spawn(self._peers.heartbeat())
            self._spawn(self._blocks.check())
        followers = [each for each in self._followers() if affects(each[0])]
        self._spawn(maintenance.catch_up([(*each, each[1].interruptions) for each in followers]))
        feeds = [feed for feed in self._hub.feeds.values() if affects(feed.channel)]
        self._spawn(self._maintenance.refresh_presence(feeds))
        for callback in self.when_over:
            callback()

    def _followers(self) -> Iterator[tuple[ChannelName, StreamFollower]]:
        if self._peers is not None:
            yield CONTROL, self._peers.control
        for channel, feed in self._hub.feeds.items():
            if feed.follower is not None:
                yield channel, feed.follower
