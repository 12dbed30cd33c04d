"""The contract of `engine.nodes.Cluster`, for every engine that has one: debts of users."""

from __future__ import annotations

import pytest

from realtime.engine.limits import Debt
from tests.engine.bench import Bench, Pair
from tests.engine.redis_bench import RedisBench

MOST = 1000.0


def debt(seconds: float, user: str = "17", rate: str = "*", most: float = MOST) -> Debt:
    return Debt(rate, user, seconds, most)


def near(seconds: float) -> object:
    """So many seconds: Redis counts in its own time, and a machine may be slow."""
    return pytest.approx(seconds - 10, abs=10.01)


async def test_debts_of_a_user_add_up(clustered: Bench) -> None:
    limits = clustered.limits
    assert await limits.add_debts([debt(100)], 0) == [near(100)]
    assert await limits.add_debts([debt(50.5)], 0) == [near(150.5)]


async def test_what_was_taken_over_a_time_has_come_back_meanwhile(clustered: Bench) -> None:
    limits = clustered.limits
    assert await limits.add_debts([debt(100), debt(30, "18")], 60) == [near(40), 0]
    assert await limits.add_debts([debt(100)], 20) == [near(140)]


async def test_users_and_rates_are_apart(clustered: Bench) -> None:
    limits = clustered.limits
    await limits.add_debts([debt(100), debt(200, "18"), debt(300, rate="rpc")], 0)
    left = await limits.add_debts([debt(0), debt(0, "18"), debt(0, rate="rpc"), debt(0, "19")], 0)
    assert left == [near(100), near(200), near(300), near(0)]


async def test_debt_has_a_bound(clustered: Bench) -> None:
    left = await clustered.limits.add_debts([debt(10_000, most=400), debt(100, most=400)], 0)
    assert left == [near(400), near(400)]


async def test_any_text_is_a_user(clustered: Bench) -> None:
    for user in ("", "ä漢🎉", "a\r\nb\x00", "u" * 10_000):
        await clustered.limits.add_debts([debt(100, user)], 0)
        assert await clustered.limits.add_debts([debt(0, user), debt(0, user + "x")], 0) == [
            near(100),
            near(0),
        ]


async def test_nodes_add_to_one_debt(pair: Pair) -> None:
    await pair.one.limits.add_debts([debt(100)], 0)
    assert await pair.other.limits.add_debts([debt(100)], 0) == [near(200)]


async def test_debts_that_are_over_leave_nothing(own: RedisBench) -> None:
    await own.limits.add_debts([debt(0.01), debt(0.01, "18")], 0)
    with own.client() as client:
        client.zadd("p:debts", {"old": 1})
        await own.limits.add_debts([debt(50, "19")], 0)
        names = client.zrange("p:debts", 0, -1)
        left = client.pttl("p:debts")

    assert b"old" not in names
    assert 0 < left <= 50_010
