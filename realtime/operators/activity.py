"""Activity: the busiest channels of a node, counted while an operator asks for them.

    IDLE ──asked──► COUNTING ──not asked for `LEASE`──► IDLE

While counting, each publication costs one entry of a dict; otherwise nothing is counted. Rates are
those of the last two spans: a span ends when the node is asked, and is `SPAN` long at least. So
several operators may ask at a time, each as often as they like.
"""

from __future__ import annotations

import asyncio
import heapq
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import translate

from realtime.metrics import Counters
from realtime.node.hub import Hub
from realtime.operators.questions import (
    MAX_BUSY_CHANNELS,
    ActivityAnswer,
    AskActivity,
    ChannelActivity,
    NamespaceActivity,
    NodeFigures,
    Order,
)
from realtime.operators.taps import Taps
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.timers import Timers

LEASE = 10.0
"""Seconds without a question after which the node stops counting."""
SPAN = 1.0
"""Seconds of a span at least."""
SLICE = 500
"""Channels that are looked at in one turn of the loop: less than half a millisecond."""
MAX_COUNTED = 100_000
"""Channels that are counted in one span; further ones are not."""


RANKS: dict[Order, Callable[[ChannelActivity], tuple[float, ...]]] = {
    "publications": lambda each: (each.publications, each.subscribers),
    "subscribers": lambda each: (each.subscribers, each.publications),
    "bytes": lambda each: (each.bytes, each.publications, each.subscribers),
}
"""What makes a channel busier than another one."""


class Activity:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        hub: Hub,
        taps: Taps,
        counters: Counters,
        timers: Timers,
        figures: Callable[[], NodeFigures],
    ) -> None:
        """`figures`: returns what the node says of itself."""
        self._hub = hub
        self._taps = taps
        self._counters = counters
        self._timers = timers
        self._figures = figures
        self._lease = timers.timer(self._end)
        self._is_counting = False
        self._began = 0.0
        """Monotonic seconds, of the span that is counted now."""
        self._counts: dict[ChannelName, list[int]] = {}
        """Channel → publications, and the bytes of their data."""
        self._before: dict[ChannelName, list[int]] = {}
        """The counts of the span before."""
        self._seconds_before = 0.0

    async def answer(self, question: AskActivity) -> ActivityAnswer:
        """Say how busy the node is, and count from now on."""
        seconds, spans = self._spans()
        limit = min(max(question.limit, 0), MAX_BUSY_CHANNELS)

        def rates(channel: ChannelName) -> tuple[float, float]:
            """The publications of a channel in a second, and the bytes of their data."""
            counted = [span[channel] for span in spans if channel in span]
            return (
                sum(number for number, _ in counted) / seconds if seconds else 0.0,
                sum(size for _, size in counted) / seconds if seconds else 0.0,
            )

        rank, matches = RANKS[question.order], re.compile(translate(question.pattern), re.I).match

        channels: list[ChannelActivity] = []
        subscribers: Counter[str] = Counter()
        numbers: Counter[str] = Counter()
        feeds = list(self._hub.feeds.values())
        for start in range(0, len(feeds), SLICE):
            found = []
            for feed in feeds[start : start + SLICE]:
                size, namespace = feed.size, feed.deliveries.namespace
                subscribers[namespace] += size
                numbers[namespace] += 1
                if question.namespace not in (None, namespace):
                    continue
                if question.pattern and not matches(feed.channel):
                    continue
                found.append(ChannelActivity(feed.channel, size, *rates(feed.channel)))
            channels = heapq.nlargest(limit, channels + found, key=rank)
            await asyncio.sleep(0)
        delivered = self._counters.delivered_in()
        busiest = sorted(delivered, key=lambda name: (-subscribers[name], name))[:MAX_BUSY_CHANNELS]
        return ActivityAnswer(
            self._figures(),
            seconds,
            channels,
            [
                NamespaceActivity(name, numbers[name], subscribers[name], delivered[name])
                for name in busiest
            ],
        )

    def _spans(self) -> tuple[float, tuple[Mapping[ChannelName, list[int]], ...]]:
        """Return how long was counted, and what; end the span if it is long enough."""
        now = self._timers.now()
        self._lease.set(now + LEASE)
        if not self._is_counting:
            self._is_counting = True
            self._began = now
            self._taps.add(self._on_publication)
            return 0.0, ()
        seconds, spans = now - self._began + self._seconds_before, (self._before, self._counts)
        if now - self._began >= SPAN:
            self._before, self._seconds_before = self._counts, now - self._began
            self._counts, self._began = {}, now
        return seconds, spans

    def _on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        counts = self._counts
        size = len(publication.data.raw)
        if (counted := counts.get(channel)) is not None:
            counted[0] += 1
            counted[1] += size
        elif len(counts) < MAX_COUNTED:
            counts[channel] = [1, size]

    def _end(self) -> None:
        self._is_counting = False
        self._taps.remove(self._on_publication)
        self._counts, self._before, self._seconds_before = {}, {}, 0.0
