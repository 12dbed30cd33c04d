"""Connections that are lost, and clients that come back."""

from __future__ import annotations

from typing import Any

import pytest

import realtime
from realtime import tokens
from realtime.testing import TestService


@pytest.fixture(params=[True, False], ids=["offset", "seq and gen"])
def service(options: dict[str, Any], settings: Any, request: Any) -> Any:
    """A service in either variant of positions."""
    settings.REALTIME = {**options, "v3_use_offset": request.param}
    with TestService() as service:
        yield service


def test_client_that_comes_back_gets_what_it_missed(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("chat:lobby")
        realtime.publish("chat:lobby", 1)
        client.expect("chat:lobby", 1)

        client.drop()
        realtime.publish("chat:lobby", 2)
        realtime.publish("chat:lobby", 3)
        resumed = client.resume()

        assert resumed.recovered
        assert resumed.missed == [("chat:lobby", 2), ("chat:lobby", 3)]
        assert resumed.subscriptions["chat:lobby"].recovered
        client.expect_nothing("news")
        realtime.publish("chat:lobby", 4)
        client.expect("chat:lobby", 4)
        client.drop()
        realtime.publish("chat:lobby", 5)
        assert client.resume().missed == [("chat:lobby", 5)]


def test_client_that_missed_too_much_has_not_recovered(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("chat:lobby")
        client.drop()
        for number in range(4):  # one more than history keeps
            realtime.publish("chat:lobby", number)
        resumed = client.resume()
        assert not resumed.recovered
        assert resumed.missed == [("chat:lobby", 1), ("chat:lobby", 2), ("chat:lobby", 3)]


def test_channel_without_recovery_has_not_recovered(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")
        client.subscribe("chat:lobby")
        resumed = client.resume()
        assert not resumed.recovered
        assert resumed.subscriptions["chat:lobby"].recovered
        realtime.publish("news", 1)
        client.expect("news", 1)


def test_lost_client_is_gone_for_others(service: TestService) -> None:
    with service.client("1") as alice, service.client("2") as bob:
        for client in (alice, bob):
            client.subscribe("chat:lobby")
        bob.drop()
        assert alice.expect_leave("chat:lobby")["client"] == bob.id
        assert list(alice.presence("chat:lobby")) == [alice.id]


def test_lost_client_cannot_be_used(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")
        client.drop()
        with pytest.raises(ConnectionError):
            client.presence("news")
        with pytest.raises(AssertionError, match="not connected"):
            client.expect("news")


def test_resume_gives_the_client_a_new_connection_id(service: TestService) -> None:
    with service.client("17") as client:
        before = client.id
        client.resume()
        assert client.id != before
        assert realtime.info()[0]["num_clients"] == 1


def test_client_that_was_closed_may_come_back(service: TestService) -> None:
    client = service.client("17").connect()
    client.subscribe("chat:lobby")
    realtime.disconnect("17")
    client.closed(3012)
    realtime.publish("chat:lobby", 1)
    assert client.resume().missed == [("chat:lobby", 1)]
    client.close()
    with pytest.raises(ConnectionError):
        client.history("chat:lobby")


def test_server_side_subscription_is_recovered(service: TestService) -> None:
    token = tokens.connection_token("17", channels=["chat:lobby"])
    with service.client(token=token) as client:
        realtime.publish("chat:lobby", 1)
        client.expect("chat:lobby", 1)
        client.drop()
        realtime.publish("chat:lobby", 2)
        resumed = client.resume()
        assert (resumed.recovered, resumed.missed) == (True, [("chat:lobby", 2)])


def test_private_channel_is_resumed_with_a_new_token(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("$chat:staff", token=tokens.subscription_token)
        client.drop()
        realtime.publish("$chat:staff", 1)
        assert client.resume().missed == [("$chat:staff", 1)]


def test_channel_that_was_unsubscribed_is_not_resumed(service: TestService) -> None:
    """By the client, or by the server."""
    with service.client("17") as client:
        for channel in ("news", "chat:lobby", "other"):
            client.subscribe(channel)
        client.unsubscribe("news")
        realtime.unsubscribe("17", "other")
        client.expect_unsubscribed("other")
        assert list(client.resume().subscriptions) == ["chat:lobby"]


def test_other_client_recovers_from_a_position(service: TestService) -> None:
    with service.client("17") as client:
        position = client.subscribe("chat:lobby").position
    realtime.publish("chat:lobby", 1)
    with service.client("17") as client:
        subscribed = client.subscribe("chat:lobby", since=position)
    assert subscribed.recovered
    assert [publication.data for publication in subscribed.publications] == [1]
    assert subscribed.position is not None
    assert subscribed.position.offset == 1
