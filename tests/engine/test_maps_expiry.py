"""The contract of `engine.maps`, for every engine: lifetimes of entries."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Published
from realtime.engine.versions import Version
from tests.engine.bench import Bench, Pair
from tests.engine.map_bench import (
    EPHEMERAL,
    KINDS_OF_MAPS,
    PERSISTENT,
    RECOVERABLE,
    TTL,
    as_texts,
    change,
    entries,
    make,
)

kinds = pytest.mark.parametrize("options", KINDS_OF_MAPS, ids=lambda options: options.map)
mortal = pytest.mark.parametrize(
    "options", [EPHEMERAL, RECOVERABLE], ids=lambda options: options.map
)


async def due(bench: Bench, prefix: str, limit: int = 100) -> list[tuple[str, str]]:
    """What is due in the channels of a test."""
    return [each for each in await all_due(bench, limit) if each[0].startswith(prefix)]


async def all_due(bench: Bench, limit: int = 100) -> list[tuple[str, str]]:
    return [each for each in await bench.maps.due(limit) if isinstance(each, tuple)]


async def sweep(bench: Bench, options: ChannelOptions) -> list[Published]:
    """Remove what is due, as a node does."""
    outcomes = await bench.broker.publish_many(
        [
            change(channel, key, None, options, key_mode="if_expired")
            for channel, key in await all_due(bench)
        ]
    )
    return [each for each in outcomes if isinstance(each, Published)]


@mortal
async def test_an_entry_is_due_after_its_lifetime(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await mapped.broker.subscribe(unique)
    await make(mapped, unique, "a", 1, options)
    assert await due(mapped, unique) == []
    await mapped.elapse(TTL - 5)
    assert await due(mapped, unique) == []
    await make(mapped, unique, "b", 2, options)
    await mapped.elapse(6)

    assert await due(mapped, unique) == [(unique, "a")]
    assert await due(mapped, unique) == [(unique, "a")]  # until it is removed
    assert await entries(mapped, unique) == {"a": "1", "b": "2"}
    [removal] = await sweep(mapped, options)
    assert removal.kept

    assert await due(mapped, unique) == []
    assert await entries(mapped, unique) == {"b": "2"}
    received = await mapped.received(unique, 3)
    assert [(p.key, p.removed) for p in received] == [("a", False), ("b", False), ("a", True)]


@kinds
async def test_lifetimes_of_puts(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    for key, ttl in (("long", 1000), ("default", None), ("ever", 0), ("short", 5)):
        await make(mapped, unique, key, 1, options, ttl=ttl)

    await mapped.elapse(6)
    assert await due(mapped, unique) == [(unique, "short")]
    await mapped.elapse(TTL)
    expected = [(unique, "short"), *([] if options is PERSISTENT else [(unique, "default")])]
    assert await due(mapped, unique) == expected
    await mapped.elapse(1000)
    assert await due(mapped, unique) == [*expected, (unique, "long")]


@kinds
async def test_each_put_begins_a_lifetime(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    for key, first, second in (("longer", 10, 30), ("shorter", 30, 10), ("ever", 10, 0)):
        await make(mapped, unique, key, 1, options, ttl=first)
        await make(mapped, unique, key, 2, options, ttl=second)
    await make(mapped, unique, "removed", 1, options, ttl=10)
    await make(mapped, unique, "removed", None, options)
    await make(mapped, unique, "new", 1, options, ttl=10)
    await make(mapped, unique, "new", None, options)
    await make(mapped, unique, "new", 2, options, ttl=0)

    await mapped.elapse(11)
    assert await due(mapped, unique) == [(unique, "shorter")]
    await mapped.elapse(20)
    assert await due(mapped, unique) == [(unique, "shorter"), (unique, "longer")]


@mortal
async def test_a_put_before_the_removal_saves_the_entry(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await make(mapped, unique, "a", 1, options)
    await mapped.elapse(TTL + 1)
    [named] = await due(mapped, unique)
    await make(mapped, unique, "a", 2, options)

    removal = await make(mapped, *named, None, options, key_mode="if_expired")

    assert (removal.kept, removal.reason) == (False, "key_exists")
    assert await due(mapped, unique) == []
    assert await entries(mapped, unique) == {"a": "2"}


@mortal
async def test_an_entry_whose_lifetime_is_over_is_new(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    for key in ("a", "b", "c"):
        await make(mapped, unique, key, 1, options, version=Version(5))
    await mapped.elapse(TTL + 1)

    changed = await make(mapped, unique, "a", 2, options, key_mode="if_exists")
    removed = await make(mapped, unique, "a", None, options, key_mode="if_exists")
    taken = await make(mapped, unique, "b", 2, options, key_mode="if_new")

    assert changed.reason == removed.reason == "key_not_found"
    assert changed.current is None
    assert taken.kept
    assert (await make(mapped, unique, "b", 3, options, key_mode="if_new")).reason == "key_exists"
    assert (await make(mapped, unique, "c", None, options)).kept
    assert await due(mapped, unique) == [(unique, "a")]


@kinds
async def test_a_put_that_renews_changes_the_lifetime_alone(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await mapped.broker.subscribe(unique)
    await make(mapped, unique, "longer", 1, options, ttl=10)
    await make(mapped, unique, "shorter", 1, options, ttl=30)
    before = await mapped.maps.page(unique)

    outcomes = await mapped.broker.publish_many(
        [
            change(unique, key, 2, options, ttl=ttl, key_mode="renew")
            for key, ttl in (("longer", 30), ("shorter", 20), ("new", 10))
        ]
    )

    assert [each.reason for each in outcomes if isinstance(each, Published)] == [
        "key_exists",
        "key_exists",
        "",
    ]
    after = await mapped.maps.page(unique)
    assert [each for each in after.entries if each.key != "new"] == list(before.entries)
    received = await mapped.received(unique, 3)
    assert [p.key for p in received] == ["longer", "shorter", "new"]
    await mapped.elapse(11)
    assert await due(mapped, unique) == [(unique, "new")]
    assert (await make(mapped, unique, "new", 3, options, key_mode="renew", ttl=15)).kept
    await mapped.elapse(10)
    assert await due(mapped, unique) == [(unique, "shorter")]
    await mapped.elapse(10)
    assert await due(mapped, unique) == [(unique, "shorter"), (unique, "new"), (unique, "longer")]


@mortal
async def test_nodes_make_one_removal(
    mapped_pair: Pair, unique: str, options: ChannelOptions
) -> None:
    one, other = mapped_pair
    await other.broker.subscribe(unique)
    for number in range(20):
        await make(one, unique, f"k{number:02}", number, options, ttl=1)
    await one.elapse(2)

    outcomes = [
        each
        for made in await asyncio.gather(*(sweep(bench, options) for bench in (one, other) * 2))
        for each in made
    ]

    assert sum(each.kept for each in outcomes) == 20
    assert {each.reason for each in outcomes} <= {"", "key_not_found"}
    await make(one, unique, "end", 1, options)
    received = await other.received(unique, 41)
    assert sorted(p.key for p in received if p.removed) == [f"k{number:02}" for number in range(20)]
    assert await entries(one, unique) == {"end": "1"}
    assert await due(other, unique) == []


@mortal
async def test_what_is_due_is_named_oldest_first(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    named = [
        (f"{unique}{channel}", key)
        for channel, key in (("", "b"), ("7:", "a:b"), ("x", "\U0001f600"), ("\0", "a"), (":", "a"))
    ]
    for seconds, (channel, key) in enumerate(named):
        await make(mapped, channel, key, 1, options, ttl=2 + 2 * seconds)
    await mapped.elapse(20)

    assert await due(mapped, unique) == named
    assert len(await mapped.maps.due(2)) <= 2
    assert await mapped.maps.due(0) == []


async def test_a_lifetime_is_kept_with_other_channels_and_kinds(mapped: Bench, unique: str) -> None:
    for number, options in enumerate(KINDS_OF_MAPS):
        for key in ("a", "b"):
            await make(mapped, f"{unique}{number}", key, number, options, ttl=10)
    await mapped.elapse(11)
    for number, options in enumerate(KINDS_OF_MAPS):
        await make(mapped, f"{unique}{number}", "b", number, options, ttl=10)

    assert sorted(await due(mapped, unique)) == [(f"{unique}{n}", "a") for n in range(3)]
    for number, options in enumerate(KINDS_OF_MAPS):
        [a, b] = (await mapped.maps.page(f"{unique}{number}")).entries
        assert as_texts([a, b]) == {"a": str(number), "b": str(number)}
        removal = await make(mapped, f"{unique}{number}", "a", None, options, key_mode="if_expired")
        assert removal.kept
    assert await due(mapped, unique) == []
