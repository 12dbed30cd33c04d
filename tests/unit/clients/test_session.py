"""The session: legal commands, limits, deadlines."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from realtime.clients.session import ClientSession, SessionState, Subscription
from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import (
    AlreadySubscribed,
    Disconnect,
    DisconnectBadRequest,
    DisconnectExpired,
    DisconnectStale,
    DisconnectSubscriptionExpired,
    LimitExceeded,
)
from realtime.node.hooks import Identity
from realtime.protocol.messages import Command, Method
from tests.unit.parts import data

START = 1000.0


def new(**options: int) -> ClientSession:
    return ClientSession(load({**options}), START)


def connected(*, expiry_deadline: float | None = None, **options: int) -> ClientSession:
    session = new(**options)
    session.connected(Identity("17", data('{"a":1}')), expiry_deadline)
    return session


def subscribed(
    session: ClientSession, channel: str, expiry_deadline: float | None = None
) -> Subscription:
    subscription = Subscription(ChannelOptions(), expiry_deadline=expiry_deadline)
    session.subscriptions[channel] = subscription
    return subscription


# commands


@pytest.mark.parametrize("method", [*Method, None])
@pytest.mark.parametrize("state", SessionState)
def test_connect_is_the_first_command_and_the_only_one_of_its_kind(
    state: SessionState, method: Method | None
) -> None:
    session = new()
    session.state = state
    legal = (method is Method.CONNECT) is (state is SessionState.NEW)
    with nullcontext() if legal else pytest.raises(DisconnectBadRequest):
        session.check(Command(1, method, None))


# subscriptions


def test_second_subscription_to_a_channel_is_refused() -> None:
    session = connected()
    subscribed(session, "a")
    with pytest.raises(AlreadySubscribed):
        session.check_subscribe("a")
    session.check_subscribe("b")


def test_limit_counts_every_subscription() -> None:
    session = connected(client_channel_limit=2)
    subscribed(session, "a")
    session.check_subscribe("b")
    session.subscriptions["b"] = Subscription(ChannelOptions(), server_side=True)
    with pytest.raises(LimitExceeded):
        session.check_subscribe("c")


def test_limit_is_asked_before_the_duplicate() -> None:
    session = connected(client_channel_limit=1)
    subscribed(session, "a")
    with pytest.raises(LimitExceeded):
        session.check_subscribe("a")


def test_limit_of_0_means_no_limit() -> None:
    session = connected(client_channel_limit=0)
    for number in range(1000):
        subscribed(session, f"a{number}")
    session.check_subscribe("b")


# life


def test_states_follow_one_another() -> None:
    session = new()
    states = [session.state]
    session.connected(Identity("17"), None)
    states.append(session.state)
    session.close()
    states.append(session.state)
    assert states == [SessionState.NEW, SessionState.CONNECTED, SessionState.CLOSED]


def test_closed_session_has_no_subscriptions_and_nothing_to_wait_for() -> None:
    session = connected(expiry_deadline=START + 1)
    subscribed(session, "a")
    session.close()
    assert not session.subscriptions
    assert session.deadline() is None


def test_user_is_empty_until_connected() -> None:
    assert new().user == ""
    assert connected().user == "17"


# time


def overdue(session: ClientSession, now: float) -> type[Disconnect] | None:
    try:
        session.due(now)
    except Disconnect as disconnect:
        return type(disconnect)
    return None


def test_session_that_does_not_connect_is_stale_after_25_seconds() -> None:
    session = new()
    assert session.deadline() == START + 25
    assert overdue(session, START + 24.9) is None
    assert overdue(session, START + 25) is DisconnectStale


def test_stale_delay_of_0_means_no_deadline() -> None:
    session = new(client_stale_close_delay=0)
    assert session.deadline() is None
    assert overdue(session, START + 1e6) is None


def test_connected_session_is_never_stale() -> None:
    session = connected()
    assert session.deadline() is None
    assert overdue(session, START + 1e6) is None


def test_expired_connection_has_25_seconds_to_be_refreshed() -> None:
    session = connected(expiry_deadline=START + 60)
    assert session.deadline() == START + 85
    assert overdue(session, START + 84.9) is None
    assert overdue(session, START + 85) is DisconnectExpired


def test_refresh_moves_the_expiry() -> None:
    session = connected(expiry_deadline=START + 60)
    session.refreshed(None, START + 600)
    assert session.deadline() == START + 625


def test_refresh_without_expiry_leaves_the_old_one_in_force() -> None:
    session = connected(expiry_deadline=START + 60)
    session.refreshed(None, None)
    assert overdue(session, START + 85) is DisconnectExpired


def test_refresh_replaces_the_info_only_by_another_one() -> None:
    session = connected()
    session.refreshed(None, None)
    assert session.conn_info == data('{"a":1}')
    session.refreshed(data("2"), None)
    assert session.conn_info == data("2")


def test_expired_subscription_has_25_seconds_to_be_refreshed() -> None:
    session = connected()
    subscribed(session, "a")
    subscribed(session, "b", START + 10)
    assert session.deadline() == START + 35
    assert overdue(session, START + 34.9) is None
    assert overdue(session, START + 35) is DisconnectSubscriptionExpired


def test_subscription_that_was_left_does_not_expire() -> None:
    session = connected()
    subscribed(session, "a", START + 10)
    del session.subscriptions["a"]
    assert session.deadline() is None
    assert overdue(session, START + 35) is None


@pytest.mark.parametrize(
    ("connection", "first", "second", "deadline"),
    [(100.0, 50.0, 70.0, 75.0), (10.0, 50.0, 70.0, 35.0), (100.0, 70.0, 50.0, 75.0)],
)
def test_deadline_is_the_earliest(
    connection: float, first: float, second: float, deadline: float
) -> None:
    session = connected(expiry_deadline=START + connection)
    subscribed(session, "a", START + first)
    subscribed(session, "b", START + second)
    assert session.deadline() == START + deadline
    assert overdue(session, START + deadline) is not None


def test_delays_are_options() -> None:
    stale = new(client_stale_close_delay=3)
    expiring = connected(expiry_deadline=START, client_expired_close_delay=5)
    with_subscription = connected(client_expired_sub_close_delay=7)
    subscribed(with_subscription, "a", START)
    assert stale.deadline() == START + 3
    assert expiring.deadline() == START + 5
    assert with_subscription.deadline() == START + 7
