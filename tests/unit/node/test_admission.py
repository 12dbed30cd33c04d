"""Admission: which connections a process does not take, and what it remembers of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.limits import admission
from realtime.node.limits.admission import Admission, NotAdmitted, network_of
from realtime.node.limits.connect_queue import PER_TURN
from realtime.node.loop_lag import INTERVAL, PATIENCE, LoopLag
from realtime.timers import Timers
from tests.unit.parts import Clock, context

New = Callable[..., Admission]


@pytest.fixture
def new(clock: Clock) -> New:
    """Make an admission of some options; `connections` are there."""

    def new(connections: int = 0, **options: Any) -> Admission:
        timers = Timers(asyncio.get_running_loop())
        config = load(options)
        lag = LoopLag(timers, config.overload_lag)
        lag.start()
        return Admission(context(config, timers), lag, range(connections))

    return new


def admitted(admission: Admission, *addresses: str) -> list[bool]:
    """Which of some connections are taken, one after another."""
    return [_is_admitted(admission, address) for address in addresses]


def _is_admitted(admission: Admission, address: str) -> bool:
    try:
        admission.check(address)
    except NotAdmitted:
        return False
    return True


async def test_by_default_every_connection_is_taken(new: New) -> None:
    assert all(admitted(new(connections=100_000), *["192.0.2.1"] * 10_000))


@pytest.mark.parametrize(("connections", "expected"), [(9, True), (10, False), (11, False)])
async def test_process_takes_so_many_connections(
    new: New, connections: int, expected: bool
) -> None:
    assert admitted(new(connections, client_connection_limit=10), "") == [expected]


async def test_process_takes_so_many_connections_a_second(new: New, clock: Clock) -> None:
    admission = new(client_connection_rate_limit=3)
    at_once = admitted(admission, *"1234")
    await clock.advance(1 / 3)
    later = admitted(admission, *"12")
    assert at_once == [True, True, True, False]
    assert later == [True, False]
    assert admission.refused == 2


async def test_each_address_has_a_rate_of_its_own(new: New, clock: Clock) -> None:
    admission = new(address_connection_rate="1/s burst 2")
    one, other = "192.0.2.1", "192.0.2.2"
    at_once = admitted(admission, one, one, one, other)
    await clock.advance(1)
    later = admitted(admission, one, one)
    assert at_once == [True, True, False, True]
    assert later == [True, False]


async def test_unknown_addresses_have_one_rate_together(
    new: New, caplog: pytest.LogCaptureFixture
) -> None:
    rated = new(address_connection_rate="1/h burst 2")
    assert admitted(rated, "", "", "", "192.0.2.1") == [True, True, False, True]
    assert "address is not known (trusted_proxies is" in caplog.text


async def test_refused_connection_takes_nothing_of_the_rate_of_the_process(new: New) -> None:
    admission = new(address_connection_rate="1/h", client_connection_rate_limit=2)
    assert admitted(admission, "a", "a", "a", "b") == [True, False, False, True]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:DB8:0:1::1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("unix:", "unix:", True),
    ],
)
def test_ipv6_network_counts_as_one_address(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same


async def test_addresses_do_not_fill_memory(
    new: New, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_ADDRESSES", 100)
    rated = new(address_connection_rate="1/h burst 2")
    for number in range(1000):
        admitted(rated, f"10.0.{number // 256}.{number % 256}")
        assert len(rated._addresses) <= 100
    # the newest are remembered
    assert admitted(rated, "10.0.3.231", "10.0.3.231") == [True, False]


async def test_overloaded_process_takes_none_until_it_is_on_time(new: New, clock: Clock) -> None:
    admission = new(overload_lag=0.1)
    for _ in range(5):
        await clock.advance(1)
    during = admitted(admission, "a")
    await clock.advance(INTERVAL)
    assert PATIENCE < 5
    assert during + admitted(admission, "a") == [False, True]


async def test_newcomers_are_refused_while_too_many_wait(
    new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 10)
    full = new()
    turns = [asyncio.create_task(full.queue.turn()) for _ in range(PER_TURN + 10)]
    before = admitted(full, "a")
    await asyncio.sleep(0)
    during = admitted(full, "a")
    await asyncio.gather(*turns)
    assert (before, during, admitted(full, "a")) == ([True], [False], [True])


async def test_newcomers_that_waited_do_not_exceed_the_connection_limit(clock: Clock) -> None:
    timers = Timers(asyncio.get_running_loop())
    config = load({"client_connection_limit": PER_TURN + 4})
    connections: list[int] = []
    limited = Admission(context(config, timers), LoopLag(timers), connections)

    async def come() -> None:
        await limited.take_turn("")
        connections.append(1)

    arrivals = [come() for _ in range(3 * PER_TURN)]
    outcomes = await asyncio.gather(*arrivals, return_exceptions=True)
    assert len(connections) == PER_TURN + 4
    assert sum(isinstance(each, NotAdmitted) for each in outcomes) == 2 * PER_TURN - 4


async def test_refused_peers_come_back_at_different_times(new: New) -> None:
    admission = new(connections=1, client_connection_limit=1)
    seconds = set()
    for _ in range(200):
        with pytest.raises(NotAdmitted) as refused:
            admission.check("")
        seconds.add(refused.value.retry_after)
    assert seconds <= set(range(5, 21))
    assert len(seconds) > 5


async def test_refusals_are_logged_once(new: New, caplog: pytest.LogCaptureFixture) -> None:
    admitted(new(connections=1, client_connection_limit=1), *"abc")
    assert [record.message for record in caplog.records] == [
        "Refused a connection, as others may be for now: there are 1 connections"
    ]
