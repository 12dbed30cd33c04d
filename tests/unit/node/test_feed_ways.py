"""The two ways of publications through a feed: by the follower, and direct."""

from __future__ import annotations

import asyncio

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.memory import MemoryBroker
from realtime.node.feed import ChannelFeed
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers
from tests.unit.parts import RecordingClient, data, turns

HISTORY = ChannelOptions(history_size=10, history_lifetime=300)


async def test_held_subscriber_without_a_position_gets_nothing_from_before_it_came() -> None:
    broker = MemoryBroker(Timers(asyncio.get_running_loop()))
    feed = ChannelFeed("a", HISTORY)
    follower = StreamFollower(broker, "a", feed.publish_followed, lambda: None)
    feed.open(follower)
    await follower.start()
    feed.opened(0, None)
    follower.interrupt()  # it is behind
    first = await publish(broker, feed)

    positioned, other = RecordingClient("C1", positioned="a"), RecordingClient("C2")
    feed.hold(positioned)
    feed.hold(other)
    second = await publish(broker, feed)
    assert feed.held(other) == [second]
    assert feed.held(positioned) == []

    await follower.resume(follower.interruptions)
    await turns()

    assert feed.held(other) == [second]
    assert [each.offset for each in feed.held(positioned)] == [first.offset, second.offset]


async def publish(broker: MemoryBroker, feed: ChannelFeed) -> Publication:
    """Publish, and give the feed what arrives."""
    position = (await broker.publish(Outgoing("a", Publication(data("1")), HISTORY))).position
    assert isinstance(position, StreamPosition)
    published = (await broker.history("a")).publications[-1]
    feed.receive(published, position, 0)
    return published
