"""The contract of `engine.nodes.Cluster`, for every engine that has one: claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from realtime.errors import EngineUnavailable
from tests.engine.bench import Bench, Pair
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import ORDINARY, SHARDS, RedisBench, RedisPair
from tests.redis_server import RedisServer

NAMES = (
    "",
    "ä漢🎉",
    " a  b ",
    "a\r\nb",
    "\x00",
    "{a}{b",
    "*?[a]",
    "::owner:",
    "§node:N1",
    "n" * 300,
    "🎉" * 300,
)


def value_of(bench: RedisBench, name: str) -> tuple[str, float] | None:
    """Return the owner of a name, by its documented key, and the seconds that are left."""
    key = f"{bench.root(name)}:owner:{name}"
    if (server := bench.server_of(key)) is None:
        return None
    with server.client() as client:
        return client.get(key).decode(), client.pttl(key) / 1000


# every engine


async def test_name_is_claimed_renewed_and_given_up(clustered: Bench, unique: str) -> None:
    cluster = clustered.cluster

    await cluster.claim(unique, "N1", 0)  # giving up a free name does no harm
    assert await cluster.owner(unique) is None
    for _ in range(3):
        assert await cluster.claim(unique, "N1", 60) == "N1"
    assert await cluster.claim(unique, "N2", 0) == "N1"
    assert await cluster.owner(unique) == "N1"
    assert await clustered.channels() == []
    assert clustered.receiver.occupied == []

    await cluster.claim(unique, "N1", 0)
    assert await cluster.owner(unique) is None
    assert await cluster.claim(unique, "N2", 60) == "N2"
    assert await cluster.claim(unique, "N1", 60) == "N2"


async def test_claim_ends_with_its_lifetime(clustered: Bench, unique: str) -> None:
    await clustered.cluster.claim(unique, "N1", 60)
    await clustered.elapse(61)
    assert await clustered.cluster.owner(unique) is None
    assert await clustered.cluster.claim(unique, "N2", 60) == "N2"


# several nodes


async def test_first_claim_wins_when_many_claim_at_the_same_moment(pair: Pair, unique: str) -> None:
    claimed = await asyncio.gather(
        *(pair[number % 2].cluster.claim(unique, f"N{number}", 60) for number in range(50))
    )

    winner = claimed[0]
    assert claimed == [winner] * 50
    assert winner in {f"N{number}" for number in range(50)}
    for bench in pair:
        assert await bench.cluster.owner(unique) == winner


@pytest.mark.parametrize(
    ("again", "lifetime", "wins"),
    [
        pytest.param("N2", 60, "N3", id="another does not renew it"),
        pytest.param("N1", 60, "N1", id="the owner renews it"),
        pytest.param("N1", 5, "N3", id="the owner makes it shorter"),
    ],
)
async def test_last_claim_of_the_owner_decides_the_lifetime(
    pair: Pair, unique: str, again: str, lifetime: int, wins: str
) -> None:
    await pair.one.cluster.claim(unique, "N1", 60)
    await pair.one.elapse(50)
    assert await pair.other.cluster.claim(unique, again, lifetime) == "N1"
    await pair.one.elapse(11)
    assert await pair.other.cluster.claim(unique, "N3", 60) == wins


async def test_anything_may_be_a_name(pair: Pair) -> None:
    for name in NAMES:
        assert await pair.one.cluster.claim(name, "N1", 60) == "N1"

        assert await pair.other.cluster.claim(name, "N2", 60) == "N1"
        assert await pair.other.cluster.owner(name) == "N1"
        assert await pair.other.cluster.owner(f"{name}x") is None


async def test_key_of_a_name_has_prefix_and_owner(redis_pair: RedisPair) -> None:
    pair = redis_pair
    for name in NAMES:
        assert await pair.one.cluster.claim(name, "N1", 60) == "N1"

        assert pair.one.keys.owner(name) == f"{pair.one.root(name)}:owner:{name}"
        kept = value_of(pair.other, name)
        assert kept is not None
        assert kept[0] == "N1"
        assert 0 < kept[1] <= 60
        await pair.one.cluster.claim(name, "N1", 0)
        assert value_of(pair.other, name) is None


async def test_owner_is_returned_as_it_named_itself(pair: Pair) -> None:
    for number, owner in enumerate(["ä 🎉", "a\nb", "{N}", "0", "n" * 300]):
        name = str(number)
        assert await pair.one.cluster.claim(name, owner, 60) == owner
        assert await pair.other.cluster.claim(name, "N2", 60) == owner
        assert await pair.other.cluster.owner(name) == owner


# in Redis


@pytest.mark.parametrize("kind", ORDINARY)
async def test_claim_and_owner_are_one_round_trip_each(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str, kind: str
) -> None:
    """The script reads and writes the key inside that one."""
    servers = [own_redis() for _ in range(2 if kind == SHARDS else 1)]
    bench = await open_redis(kind, servers=servers)
    cluster = bench.cluster
    await cluster.claim(unique, "N1", 60)  # brings the script along

    async def commands(call: Callable[[], object]) -> dict[str, int]:
        for server in servers:
            server.reset_command_calls()
        await call()  # type: ignore[misc]
        total: dict[str, int] = {}
        for server in servers:
            for name, calls in server.command_calls().items():
                total[name] = total.get(name, 0) + calls
        asking = ("info", "hello", "client", "config", "select")
        return {name: n for name, n in total.items() if not name.startswith(asking)}

    assert await commands(lambda: cluster.claim(unique, "N1", 60)) == {
        "evalsha": 1,
        "get": 1,
        "set": 1,
    }
    assert await commands(lambda: cluster.claim(unique, "N2", 60)) == {"evalsha": 1, "get": 1}
    assert await commands(lambda: cluster.owner(unique)) == {"get": 1}
    assert await commands(lambda: cluster.claim(unique, "N1", 0)) == {
        "evalsha": 1,
        "get": 1,
        "del": 1,
    }


async def test_key_of_another_type_fails_its_name_only(
    open_redis: OpenRedisBench, unique: str
) -> None:
    bench = await open_redis()
    with bench.client() as client:
        client.rpush(f"{bench.prefix}:owner:{unique}", "not mine")

    with pytest.raises(EngineUnavailable):
        await bench.cluster.claim(unique, "N1", 60)
    with pytest.raises(EngineUnavailable):
        await bench.cluster.owner(unique)

    assert await bench.cluster.claim(f"{unique}-other", "N1", 60) == "N1"
