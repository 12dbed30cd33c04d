"""The hub: the clients of this process by ID, user and channel, and fan-out to them."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.node.hub import Feed, Hub
from realtime.protocol.messages import ClientInfo, Publication
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v1.protobuf import ProtobufCodec
from realtime.timers import Timers
from tests.unit.parts import RecordingClient, data

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
def hub() -> Hub:
    return Hub()


def live(feed: Feed, *clients: RecordingClient) -> None:
    for client in clients:
        feed.hold(client)
        feed.release(client)


# clients and users


def test_client_is_found_by_id_and_by_user(hub: Hub) -> None:
    first, second, other = (
        RecordingClient("C1", "17"),
        RecordingClient("C2", "17"),
        RecordingClient("C3", "18"),
    )
    for client in (first, second, other):
        hub.add(client)

    assert hub.clients == {"C1": first, "C2": second, "C3": other}
    assert hub.connections("17") == [first, second]
    assert hub.connections("19") == []


def test_removed_client_leaves_nothing_behind(hub: Hub) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    hub.add(first)
    hub.add(second)

    hub.remove(first)
    assert hub.connections("17") == [second]
    hub.remove(second)

    assert not hub.clients
    assert not hub.users


def test_removing_a_client_twice_or_an_unknown_one_is_nothing(hub: Hub) -> None:
    client, unknown = RecordingClient("C1"), RecordingClient("C2")
    hub.add(client)

    hub.remove(unknown)
    assert hub.connections("17") == [client]
    hub.remove(client)
    hub.remove(client)

    assert not hub.users


def test_connections_may_change_while_they_are_gone_through(hub: Hub) -> None:
    for number in range(3):
        hub.add(RecordingClient(f"C{number}"))

    for client in hub.connections("17"):
        hub.remove(client)

    assert not hub.clients


# channels


def test_first_and_last_subscriber_of_a_channel_are_told(hub: Hub) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")

    assert hub.add_subscription("a", first, OPTIONS) is True
    assert hub.add_subscription("a", second, OPTIONS) is False
    assert hub.add_subscription("b", first, OPTIONS) is True
    feed = hub.feeds["a"]

    assert hub.remove_subscription("a", first) is None
    assert hub.remove_subscription("a", second) is feed
    assert set(hub.feeds) == {"b"}


def test_last_subscriber_may_be_held_or_live(hub: Hub) -> None:
    held, released = RecordingClient("C1"), RecordingClient("C2")
    hub.add_subscription("a", held, OPTIONS)
    hub.add_subscription("a", released, OPTIONS)
    hub.feeds["a"].release(released)

    assert hub.remove_subscription("a", released) is None
    assert hub.remove_subscription("a", held) is not None
    assert not hub.feeds


def test_removing_an_unknown_subscription_is_nothing(hub: Hub) -> None:
    client = RecordingClient("C1")
    hub.add_subscription("a", client, OPTIONS)

    assert hub.remove_subscription("nope", client) is None
    assert hub.remove_subscription("a", RecordingClient("C2")) is None
    assert list(hub.feeds["a"].subscribers()) == [client]


# feeds


def test_publication_reaches_every_live_subscriber_in_its_format() -> None:
    feed = Feed("a", OPTIONS)
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


def test_publication_is_encoded_once_per_codec() -> None:
    feed = Feed("a", OPTIONS)
    codec = CountingCodec()
    clients = [RecordingClient(f"C{number}", codec=codec) for number in range(10)]
    live(feed, *clients)

    feed.publish(Publication(data("1")))

    assert codec.encoded == 1
    assert all(client.pushed[0] is clients[0].pushed[0] for client in clients)


def test_publication_is_kept_back_for_a_held_subscriber() -> None:
    feed = Feed("a", OPTIONS)
    client = RecordingClient()
    feed.hold(client)
    publications = [Publication(data(str(offset)), None, offset) for offset in (1, 2)]

    for publication in publications:
        feed.publish(publication)

    assert client.pushed == []
    assert feed.held(client) == publications


def test_released_subscriber_is_served_from_then_on_and_nothing_is_kept_back() -> None:
    feed = Feed("a", OPTIONS)
    client = RecordingClient()
    feed.hold(client)
    feed.publish(Publication(data("1")))

    feed.release(client)
    feed.publish(Publication(data("2")))

    assert client.pushed == [client.codec.publication("a", Publication(data("2")))]
    assert feed.held(client) == []


def test_removed_subscriber_gets_nothing_more() -> None:
    feed = Feed("a", OPTIONS)
    first, second = RecordingClient("C1"), RecordingClient("C2")
    live(feed, first, second)

    feed.remove(first)
    feed.publish(Publication(data("1")))

    assert (len(first.pushed), len(second.pushed)) == (0, 1)


def test_join_and_leave_reach_live_subscribers_only() -> None:
    feed = Feed("a", OPTIONS)
    served, held = RecordingClient("C1"), RecordingClient("C2")
    live(feed, served)
    feed.hold(held)

    feed.broadcast(lambda codec: codec.join("a", INFO))
    feed.broadcast(lambda codec: codec.leave("a", INFO))

    assert served.pushed == [served.codec.join("a", INFO), served.codec.leave("a", INFO)]
    assert held.pushed == []
    assert feed.held(held) == []


def test_nobody_is_served_any_more_in_a_feed_that_was_cut_off() -> None:
    feed = Feed("a", OPTIONS)
    served, held = RecordingClient("C1"), RecordingClient("C2")
    live(feed, served)
    feed.hold(held)

    assert set(feed.cut_off()) == {served, held}
    feed.publish(Publication(data("1")))
    feed.broadcast(lambda codec: codec.join("a", INFO))

    assert served.pushed == held.pushed == []


def test_closed_feed_lets_go_of_its_timer() -> None:
    loop = asyncio.new_event_loop()
    timers = Timers(loop)
    called: list[int] = []
    feed = Feed("a", OPTIONS)
    feed.timer = timers.timer(lambda: called.append(1))
    feed.timer.set(loop.time())

    feed.close()
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    assert called == []


def test_feed_counts_and_lists_its_subscribers() -> None:
    feed = Feed("a", OPTIONS)
    assert not feed
    held = RecordingClient("C1")
    served = RecordingClient("C2")
    other = RecordingClient("C3", codec=ProtobufCodec(use_offset=True))

    feed.hold(held)
    live(feed, served, other)

    assert feed
    assert set(feed.subscribers()) == {held, served, other}
    assert set(feed.live()) == {served, other}


def test_feed_without_subscribers_is_empty() -> None:
    feed = Feed("a", OPTIONS)
    held, served = RecordingClient("C1"), RecordingClient("C2")
    feed.hold(held)
    live(feed, served)

    feed.remove(held)
    feed.remove(served)

    assert not feed
    assert list(feed.subscribers()) == []
