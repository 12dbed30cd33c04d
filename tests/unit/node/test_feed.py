"""The feed of a channel: its states, its subscribers, and fan-out to them."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import realtime
from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.memory import MemoryBroker
from realtime.errors import EngineUnavailable
from realtime.node.feed import ChannelFeed, FeedState
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v1.protobuf import ProtobufCodec
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers
from tests.unit.parts import Clock, RecordingClient, data, turns

OPTIONS = ChannelOptions()
INFO = ClientInfo("17", "C")


class CountingCodec(JSONCodec):
    """Counts how often it encodes."""

    def __init__(self) -> None:
        super().__init__(use_offset=True)
        self.encoded = 0

    def publication(self, channel: str, publication: Publication) -> bytes:
        self.encoded += 1
        return super().publication(channel, publication)


@pytest.fixture
def feed() -> ChannelFeed:
    return ChannelFeed("a", OPTIONS)


def live(feed: ChannelFeed, *clients: RecordingClient, visible: bool = True) -> None:
    for client in clients:
        feed.hold(client, visible=visible)
        feed.release(client)


# the engine


def state(feed: ChannelFeed) -> FeedState:
    """The state now: a type checker believes that an attribute stays as it was."""
    return feed.state


def waiting(feed: ChannelFeed) -> asyncio.Task[None]:
    return asyncio.create_task(feed.wait())


async def test_callers_wait_until_the_feed_is_open(feed: ChannelFeed) -> None:
    assert state(feed) is FeedState.IDLE
    feed.open(None)
    callers = [waiting(feed) for _ in range(2)]
    await turns()
    assert state(feed) is FeedState.OPENING
    assert not any(caller.done() for caller in callers)
    feed.opened(1.0, None)
    await asyncio.gather(*callers)
    assert state(feed) is FeedState.OPEN
    assert feed.checked_at == 1.0


async def test_callers_fail_with_an_attempt_that_failed_and_the_next_one_tries(
    feed: ChannelFeed,
) -> None:
    feed.open(None)
    caller = waiting(feed)
    await turns()
    feed.failed()
    assert state(feed) is FeedState.IDLE
    with pytest.raises(EngineUnavailable):
        await caller
    feed.open(None)
    feed.opened(1.0, None)
    await feed.wait()


async def test_callers_go_on_when_an_attempt_was_abandoned(feed: ChannelFeed) -> None:
    feed.open(None)
    caller = waiting(feed)
    await turns()
    feed.abandoned()
    await caller
    assert state(feed) is FeedState.IDLE


async def test_caller_that_is_cancelled_does_not_end_the_attempt(feed: ChannelFeed) -> None:
    feed.open(None)
    impatient, patient = waiting(feed), waiting(feed)
    await turns()
    impatient.cancel()
    await turns()
    feed.opened(1.0, None)
    await patient
    assert impatient.cancelled()


async def test_feed_that_is_closed_while_it_opens_stays_closed(
    clock: Clock, feed: ChannelFeed
) -> None:
    timers = Timers(asyncio.get_running_loop())
    called: list[int] = []
    feed.open(None)
    caller = waiting(feed)
    await turns()

    feed.close()
    feed.opened(clock.now, timers.timer(lambda: called.append(1)))
    feed.schedule(clock.now)
    await caller
    await clock.advance(1)

    assert state(feed) is FeedState.CLOSED
    assert called == []


# subscribers


def test_publication_reaches_every_live_subscriber_in_its_format(feed: ChannelFeed) -> None:
    json_codec, protobuf_codec = JSONCodec(use_offset=True), ProtobufCodec(use_offset=True)
    clients = [
        RecordingClient("C1", codec=json_codec),
        RecordingClient("C2", codec=protobuf_codec),
        RecordingClient("C3", codec=json_codec),
    ]
    live(feed, *clients)
    publication = Publication(data('{"n":1}'))

    feed.publish(publication)

    assert [client.pushed for client in clients] == [
        [client.codec.publication("a", publication)] for client in clients
    ]


def test_publication_is_encoded_once_per_codec(feed: ChannelFeed) -> None:
    codec = CountingCodec()
    clients = [RecordingClient(f"C{number}", codec=codec) for number in range(10)]
    live(feed, *clients)
    feed.publish(Publication(data("1")))
    assert codec.encoded == 1
    assert all(client.pushed[0] is clients[0].pushed[0] for client in clients)


def test_publication_is_kept_back_for_a_held_subscriber(feed: ChannelFeed) -> None:
    client = RecordingClient()
    feed.hold(client)
    publications = [Publication(data(str(offset)), None, offset) for offset in (1, 2)]
    for publication in publications:
        feed.publish(publication)
    assert client.pushed == []
    assert feed.held(client) == publications


def test_released_subscriber_is_served_from_then_on_and_nothing_is_kept_back(
    feed: ChannelFeed,
) -> None:
    client = RecordingClient()
    feed.hold(client)
    feed.publish(Publication(data("1")))
    feed.release(client)
    feed.publish(Publication(data("2")))
    assert client.pushed == [client.codec.publication("a", Publication(data("2")))]
    assert feed.held(client) == []


def test_removed_subscriber_gets_nothing_more(feed: ChannelFeed) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    live(feed, first, second)
    feed.remove(first)
    feed.publish(Publication(data("1")))
    assert (len(first.pushed), len(second.pushed)) == (0, 1)


def test_join_and_leave_reach_live_subscribers_only(feed: ChannelFeed) -> None:
    served, held = RecordingClient("C1"), RecordingClient("C2")
    live(feed, served)
    feed.hold(held)
    feed.broadcast(lambda codec: codec.join("a", INFO))
    feed.broadcast(lambda codec: codec.leave("a", INFO))
    assert served.pushed == [served.codec.join("a", INFO), served.codec.leave("a", INFO)]
    assert held.pushed == []
    assert feed.held(held) == []


def test_feed_that_was_cut_off_delivers_nothing(feed: ChannelFeed) -> None:
    served, held = RecordingClient("C1", positioned="a"), RecordingClient("C2", positioned="a")
    live(feed, served)
    feed.hold(held)
    assert set(feed.cut_off()) == {served, held}
    feed.publish(Publication(data("1")))
    feed.broadcast(lambda codec: codec.join("a", INFO))
    assert served.pushed == held.pushed == []


def test_subscribers_without_a_position_go_on_when_the_others_are_cut_off(
    feed: ChannelFeed,
) -> None:
    positioned, other = RecordingClient("C1", positioned="a"), RecordingClient("C2")
    held = RecordingClient("C3")
    live(feed, positioned, other)
    feed.hold(held)
    assert feed.cut_off() == [positioned]
    feed.publish(Publication(data("1")))
    assert (len(positioned.pushed), len(other.pushed)) == (0, 1)
    assert set(feed.subscribers()) == {other, held}


def test_subscribers_with_and_without_a_position_share_what_is_encoded() -> None:
    feed, codec = ChannelFeed("a", OPTIONS), CountingCodec()
    positioned = RecordingClient("C1", codec=codec, positioned="a")
    other = RecordingClient("C2", codec=codec)
    live(feed, positioned, other)
    feed.publish(Publication(data("1")))
    feed.publish(Publication(data("2")))
    assert codec.encoded == 2
    assert positioned.pushed == other.pushed
    assert len(positioned.pushed) == 2


def test_subscriber_that_does_not_listen_gets_publications_alone(feed: ChannelFeed) -> None:
    client = RecordingClient("C1")
    feed.hold(client, hears_joins=False)
    feed.release(client)
    feed.broadcast(lambda codec: codec.join("a", INFO))
    feed.publish(Publication(data("1")))
    assert client.pushed == [client.codec.publication("a", Publication(data("1")))]


@pytest.mark.parametrize("hears_leave", [True, False])
def test_own_leave_is_kept_from_those_who_must_not_hear_it(
    hears_leave: bool, feed: ChannelFeed
) -> None:
    leaving, other = RecordingClient("C1"), RecordingClient("C2")
    live(feed, leaving, other)
    feed.leave(leaving, hears_leave=hears_leave)
    feed.broadcast(lambda codec: codec.leave("a", INFO))
    assert (len(leaving.pushed), len(other.pushed)) == (int(hears_leave), 1)


def test_feed_counts_and_lists_its_subscribers(feed: ChannelFeed) -> None:
    assert not feed
    held = RecordingClient("C1")
    served = RecordingClient("C2")
    other = RecordingClient("C3", codec=ProtobufCodec(use_offset=True))
    feed.hold(held)
    live(feed, served, other)
    assert feed
    assert feed.size == 3
    assert set(feed.subscribers()) == {held, served, other}
    assert feed.present() == [served, other]
    for subscriber in (held, served, other):
        feed.remove(subscriber)
    assert not feed
    assert list(feed.subscribers()) == []


def test_hidden_subscriber_is_served_and_neither_counted_nor_present(feed: ChannelFeed) -> None:
    client, observer = RecordingClient("C1"), RecordingClient("C2")
    live(feed, client)
    live(feed, observer, visible=False)
    feed.publish(Publication(data("1")))
    assert (len(client.pushed), len(observer.pushed)) == (1, 1)
    assert feed.size == 1
    assert feed.present() == [client]
    assert (feed.is_present(client), feed.is_present(observer)) == (True, False)


def test_leaving_subscriber_is_hidden_until_it_is_removed(feed: ChannelFeed) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    live(feed, first, second)
    feed.leave(first)
    feed.publish(Publication(data("1")))
    assert len(first.pushed) == 1
    assert (feed.size, feed.present()) == (1, [second])
    feed.remove(first)
    assert feed.size == 1
    live(feed, first)
    assert (feed.size, feed.present()) == (2, [second, first])


def test_subscribers_that_were_cut_off_are_not_counted_whether_they_leave_or_not(
    feed: ChannelFeed,
) -> None:
    client, observer, held = (RecordingClient(f"C{number}", positioned="a") for number in range(3))
    live(feed, client)
    live(feed, observer, visible=False)
    feed.hold(held)
    feed.cut_off()
    assert feed.size == 1
    for subscriber in (client, observer):
        feed.leave(subscriber)
        assert not feed.is_present(subscriber)
    assert feed.size == 1


async def test_closed_feed_lets_go_of_its_timer(clock: Clock, feed: ChannelFeed) -> None:
    timers = Timers(asyncio.get_running_loop())
    called: list[int] = []
    feed.open(None)
    feed.opened(clock.now, timers.timer(lambda: called.append(1)))
    feed.schedule(clock.now + 1)
    feed.close()
    await clock.advance(2)
    assert called == []


def test_only_the_feed_writes_its_fields() -> None:
    package = Path(realtime.__file__).parent
    writers = {
        f"{path.relative_to(package)}: {ast.unparse(node)}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value).rpartition(".")[2] in ("feed", "_feed")
    }
    assert writers == set()


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
