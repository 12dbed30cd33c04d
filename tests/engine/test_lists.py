"""The contract of `engine.lists`, for every engine: what is listed first and last."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.engine.lists import Kind, is_listable, pair, parts_of
from tests.engine.bench import Bench, comes_true
from tests.engine.conftest import MEMORY, ServersOf, open_bench
from tests.engine.postgresql_bench import POSTGRESQL
from tests.engine.redis_bench import KINDS, ONE_REDIS
from tests.unit.parts import eventually

HOSTILE = ["7", "007", " 7", "é", "\U0001f600", "\0", "\n", "a:b", "*", "{1}", "x" * 255]
"""User IDs that tokens may hold."""


@pytest.fixture(params=[MEMORY, ONE_REDIS, KINDS[-1], POSTGRESQL])
async def engine(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine; of those over Redis, one of each form of keys."""
    async with open_bench(request.param, servers_of) as bench:
        yield bench


BOTH = pytest.mark.parametrize("kind", [Kind.USERS, Kind.CHANNEL_USERS])


@BOTH
async def test_name_is_reported_when_it_comes_and_when_it_goes(
    engine: Bench, unique: str, kind: Kind
) -> None:
    lists = engine.engine.lists

    lists.add(kind, unique)
    await eventually(lambda: engine.receiver.firsts[kind] == [unique])
    assert await lists.listed(kind, [unique, "another"]) == [True, False]
    assert list(await lists.names(kind)) == [unique]
    assert await lists.size(kind) == 1

    lists.discard(kind, unique)
    await eventually(lambda: engine.receiver.lasts[kind] == [unique])
    assert await lists.listed(kind, [unique]) == [False]


async def test_kinds_are_apart(engine: Bench, unique: str) -> None:
    lists = engine.engine.lists
    lists.add(Kind.USERS, unique)
    await eventually(lambda: engine.receiver.firsts[Kind.USERS] == [unique])
    assert not await lists.names(Kind.CHANNEL_USERS)
    assert unique not in await lists.names(Kind.CHANNELS)


async def test_name_added_twice_is_reported_once(engine: Bench, unique: str) -> None:
    lists = engine.engine.lists
    for _ in range(3):
        lists.add(Kind.USERS, unique)
    lists.add(Kind.USERS, f"{unique}-after")

    await eventually(lambda: f"{unique}-after" in engine.receiver.firsts[Kind.USERS])
    assert engine.receiver.firsts[Kind.USERS].count(unique) == 1


async def test_users_may_have_any_name(engine: Bench) -> None:
    lists = engine.engine.lists
    for user in HOSTILE:
        lists.add(Kind.USERS, user)

    await eventually(lambda: len(engine.receiver.firsts[Kind.USERS]) == len(HOSTILE))

    assert sorted(await lists.names(Kind.USERS)) == sorted(HOSTILE)
    assert await lists.listed(Kind.USERS, HOSTILE) == [True] * len(HOSTILE)


async def test_more_names_than_one_step_takes(engine: Bench) -> None:
    lists = engine.engine.lists
    names = [f"u{number}" for number in range(2500)]
    for name in names:
        lists.add(Kind.USERS, name)

    await eventually(lambda: len(engine.receiver.firsts[Kind.USERS]) == len(names))

    assert await lists.listed(Kind.USERS, ["no", *names]) == [False, *[True] * len(names)]
    assert await lists.size(Kind.USERS) == len(names)


async def test_users_who_went_offline_are_kept_until_they_are_forgotten(
    engine: Bench, unique: str
) -> None:
    lists, last_seen = engine.engine.lists, engine.last_seen
    last_seen.note()
    lists.add(Kind.USERS, unique)
    await eventually(lambda: bool(engine.receiver.firsts[Kind.USERS]))
    assert await last_seen.at(unique) is None

    lists.discard(Kind.USERS, unique)

    await comes_true(lambda: _is_seen(engine, unique))
    seen = await last_seen.users(10)
    assert await last_seen.at(unique) == seen[unique]
    await last_seen.forget({unique: seen[unique] - 1})
    assert await last_seen.users(10) == seen
    await last_seen.forget(seen)
    assert await last_seen.users(10) == {}


async def _is_seen(engine: Bench, user: str) -> bool:
    return user in await engine.last_seen.users(10)


async def test_nothing_is_kept_of_users_unless_a_node_wants_it(engine: Bench, unique: str) -> None:
    lists = engine.engine.lists
    lists.add(Kind.USERS, unique)
    await eventually(lambda: bool(engine.receiver.firsts[Kind.USERS]))
    lists.discard(Kind.USERS, unique)
    await eventually(lambda: bool(engine.receiver.lasts[Kind.USERS]))

    assert await engine.last_seen.users(10) == {}


@pytest.mark.parametrize("user", HOSTILE)
@pytest.mark.parametrize("channel", ["a", "room:1", "7:x", "a" * 255])
def test_pair_has_both_parts(channel: str, user: str) -> None:
    assert parts_of(pair(channel, user)) == (channel, user)


@pytest.mark.parametrize(
    ("user", "is_listed"), [("", False), ("7", True), ("x" * 255, True), ("x" * 256, False)]
)
def test_anonymous_users_and_very_long_ids_are_not_listed(user: str, is_listed: bool) -> None:
    assert is_listable(user) is is_listed
