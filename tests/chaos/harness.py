"""Publishers and subscribers at work over several servers, and the judge of what arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from tests.chaos.publishers import DEADLINE, Key, Publishers, eventually
from tests.chaos.subscribers import Received, Subscriber, Subscribers
from tests.server import Server

OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "rec",
            "history_size": 20000,
            "history_lifetime": 600,
            "history_recover": True,
            "presence": True,
        }
    ],
}
"""A namespace whose history holds everything a test publishes."""


class Chaos:
    """Everybody who takes part in one test."""

    def __init__(
        self, channels: Sequence[str], publishers: Publishers, subscribers: Subscribers
    ) -> None:
        self.channels = list(channels)
        self.publishers = publishers
        self.subscribers = subscribers

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server to all as the one to try after another."""
        self.publishers.go_on_at(server, after)
        self.subscribers.go_on_at(server, after)

    async def settle(self, timeout: float = DEADLINE) -> None:
        """End the publishers, wait until everybody has got everything, and judge.

        The last publication of every channel is one that is known to come after all others,
        so whoever has it, and lacks another, will never get that one.
        """
        await self.publishers.stop()
        for channel in self.channels:
            mark = await self.publishers.mark(channel)
            await self.arrived(channel, mark, timeout)
            self._judge(channel, mark)

    async def arrived(self, channel: str, mark: Key, timeout: float = DEADLINE) -> None:
        """Wait until all subscribers of a channel have got a publication."""

        def lacking() -> list[Subscriber]:
            return [one for one in self.subscribers.of(channel) if not one.has(channel, mark)]

        try:
            await eventually(lambda: not lacking(), "", timeout)
        except AssertionError:
            stories = "\n".join(subscriber.story for subscriber in lacking())
            raise AssertionError(
                f"{mark}, the last of {channel}, did not come in {timeout:g} s to:\n{stories}"
            ) from None

    def _judge(self, channel: str, mark: Key) -> None:
        acknowledged = self.publishers.acknowledged(channel)
        unknown = self.publishers.unknown(channel)
        subscribers = self.subscribers.of(channel)
        assert subscribers, f"nobody subscribes to {channel}"
        like = until(mark, subscribers[0].received[channel])
        for subscriber in subscribers:
            received = until(mark, subscriber.received[channel])
            found = complaints(received, acknowledged, unknown, like)
            assert not found, "\n".join([f"{channel}, {subscriber.story}", *found])


def until(mark: Key, received: Sequence[Received]) -> list[Received]:
    """What came up to a mark. Behind it may be what was given up, and carried out late."""
    return list(received[: [one.key for one in received].index(mark) + 1])


def complaints(
    received: Sequence[Received],
    acknowledged: set[Key],
    unknown: set[Key],
    like: Sequence[Received],
) -> list[str]:
    """What is wrong with what one subscriber received.

    Everything acknowledged must be there, once and in order; what is unknown may be there
    or not, but the same as for everybody else: `like`.
    """
    keys = [one.key for one in received]
    return [
        *_complain("lacks acknowledged", sorted(acknowledged.difference(keys))),
        *_complain("got twice", [key for key, n in Counter(keys).items() if n > 1]),
        *_complain("got what nobody published", sorted(set(keys) - acknowledged - unknown)),
        *_complain("out of order by offset", _jumps(received)),
        *_complain("out of order by publisher", _disorder(keys, acknowledged)),
        *_complain("differs from others", _differences(like, received)),
    ]


def _complain(what: str, about: Sequence[object]) -> list[str]:
    """Nothing, or one line about these."""
    return [f"{what}: {len(about)}: {', '.join(map(str, about[:20]))}"] if about else []


def _jumps(received: Sequence[Received]) -> list[str]:
    """Where an offset does not follow on the one before it; a new epoch begins anew."""
    return [
        f"{after.offset} ({after.key}) after {before.offset} ({before.key})"
        for before, after in pairwise(received)
        if after.offset != before.offset + 1 and after.epoch == before.epoch
    ]


def _disorder(keys: Sequence[Key], acknowledged: set[Key]) -> list[str]:
    """Where a publisher's acknowledged publications are not in its order.

    The others may come late: a request that was given up may still be carried out.
    """
    latest: dict[str, Key] = {}
    found = []
    for key in keys:
        if key in acknowledged:
            before = latest.get(key.publisher, key)
            if key.number < before.number:
                found.append(f"{key} after {before}")
            latest[key.publisher] = key
    return found


def _differences(one: Sequence[Received], other: Sequence[Received]) -> list[str]:
    """The first place where two do not agree."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return [f"at {place}: {right}, not {left}"]
    return [] if len(one) == len(other) else [f"{len(other)} publications, not {len(one)}"]


@asynccontextmanager
async def chaos(
    servers: Sequence[Server],
    channels: Sequence[str],
    *,
    publishers: int = 4,
    subscribers: int = 36,
    **options: Any,
) -> AsyncIterator[Chaos]:
    """Clients subscribed to the channels, publishers ready to start; all ended at the end.

    `options` are those of the publishers.
    """
    everybody = Chaos(
        channels,
        Publishers(publishers, servers, channels, **options),
        Subscribers(subscribers, servers, channels),
    )
    try:
        await everybody.subscribers.start()
        yield everybody
    finally:
        try:
            await everybody.publishers.stop()
        finally:
            await everybody.subscribers.stop()
