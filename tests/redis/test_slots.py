"""Slots and hash tags, compared with what a Redis says of them."""

from __future__ import annotations

import pytest

from realtime.redis.slots import SLOTS, even_tags, slot_of
from tests.redis_server import RedisServer


def test_slots_are_those_of_redis(lone_cluster: RedisServer) -> None:
    tags = [f"mysite:{{{tag}}}:stream:a" for tag in even_tags(128)]
    names = ["", "a", "mysite:nodes", "a{b}{c}", "a{}b", "a{b", "a}{b", "{ä}", "ä", *tags]
    with lone_cluster.client() as client:
        theirs = [client.execute_command("CLUSTER", "KEYSLOT", name) for name in names]
    assert [slot_of(name) for name in names] == theirs


@pytest.mark.parametrize("count", [1, 7, 128, 1024])
def test_tags_are_different_and_spread_evenly(count: int) -> None:
    tags = even_tags(count)
    assert len(set(tags)) == count
    assert [slot_of(tag) * count // SLOTS for tag in tags] == list(range(count))


@pytest.mark.parametrize("servers", [3, 6, 9])
def test_equal_ranges_of_slots_have_equal_shares_of_the_tags(servers: int) -> None:
    shares = [0] * servers
    for tag in even_tags(128):
        shares[slot_of(tag) * servers // SLOTS] += 1
    assert all(abs(share - 128 / servers) < 2 for share in shares)
