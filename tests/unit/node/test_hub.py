"""The hub: the clients of this process by ID and user, and the feeds of their channels."""

from __future__ import annotations

import pytest

from realtime.config.options import ChannelOptions
from realtime.node.hub import Hub
from tests.unit.parts import RecordingClient

OPTIONS = ChannelOptions()


@pytest.fixture
def hub() -> Hub:
    return Hub()


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


def test_removing_a_client_twice_or_an_unknown_one_is_ignored(hub: Hub) -> None:
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


def test_channel_has_a_feed_from_its_first_to_its_last_subscriber(hub: Hub) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    feed = hub.add_subscription("a", first, OPTIONS)
    assert hub.add_subscription("a", second, OPTIONS) is feed
    assert hub.add_subscription("b", first, OPTIONS) is hub.feeds["b"]
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


def test_removing_an_unknown_subscription_is_ignored(hub: Hub) -> None:
    client = RecordingClient("C1")
    hub.add_subscription("a", client, OPTIONS)
    assert hub.remove_subscription("nope", client) is None
    assert hub.remove_subscription("a", RecordingClient("C2")) is None
    assert list(hub.feeds["a"].subscribers()) == [client]
