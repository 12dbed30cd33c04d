"""The contract of `engine.maps`, for every engine: changes that are made only if."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Published
from realtime.engine.maps import MAX_KEY_BYTES
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import UINT64_MAX, StreamPosition
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
from tests.unit.parts import position_of

kinds = pytest.mark.parametrize("options", KINDS_OF_MAPS, ids=lambda options: options.map)

WRITERS, STEPS = 50, 4


def current_text(published: Published) -> str | None:
    """The value of the entry that a refused change met."""
    return published.current.data.raw.decode() if published.current else None


@kinds
async def test_modes_ask_for_the_entry(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    await mapped.broker.subscribe(unique)

    async def answer(value: object, mode: str) -> tuple[str, str | None]:
        published = await make(mapped, unique, "a", value, options, key_mode=mode)
        assert published.kept == (not published.reason)
        if options is EPHEMERAL:
            assert published.position is None
        else:
            assert published.position == await position_of(mapped.broker, unique)
        return published.reason, current_text(published)

    assert await answer(1, "if_exists") == ("key_not_found", None)
    assert await answer(None, "") == ("key_not_found", None)
    assert await answer(None, "if_exists") == ("key_not_found", None)
    assert await answer(None, "if_expired") == ("key_not_found", None)
    assert await answer(2, "if_new") == ("", None)
    assert await answer(3, "if_new") == ("key_exists", "2")
    assert await answer(4, "if_exists") == ("", None)
    assert await answer(None, "if_expired") == ("key_exists", "4")
    assert await answer(None, "if_exists") == ("", None)
    assert await answer(5, "if_exists") == ("key_not_found", None)
    assert await answer(6, "") == ("", None)

    assert await entries(mapped, unique) == {"a": "6"}
    received = await mapped.received(unique, 4)
    assert [p.data.raw for p in received] == [b"2", b"4", b"null", b"6"]


@kinds
async def test_of_several_that_want_a_new_key_one_gets_it(
    mapped_pair: Pair, unique: str, options: ChannelOptions
) -> None:
    made = await asyncio.gather(
        *(
            make(mapped_pair[number % 2], unique, "seat", number, options, key_mode="if_new")
            for number in range(WRITERS)
        )
    )

    [winner] = [number for number, each in enumerate(made) if each.kept]
    assert {each.reason for each in made} == {"", "key_exists"}
    assert {current_text(each) for each in made if not each.kept} == {str(winner)}
    assert await entries(mapped_pair.one, unique) == {"seat": str(winner)}


@pytest.mark.parametrize("named", [False, True], ids=["offset", "offset and epoch"])
async def test_a_change_expects_the_last_one_of_its_key(
    mapped: Bench, unique: str, named: bool
) -> None:
    epoch = (await position_of(mapped.broker, unique)).epoch

    async def put(key: str, value: object, offset: int) -> tuple[str, int, str | None]:
        expect = StreamPosition(offset, epoch) if named else offset
        published = await make(mapped, unique, key, value, expect=expect)
        assert published.position is not None
        assert published.position.epoch == epoch
        return published.reason, published.position.offset, current_text(published)

    assert await put("a", 1, 1) == ("position_mismatch", 0, None)
    assert await put("a", 1, 0) == ("", 1, None)
    assert await put("b", 2, 0) == ("", 2, None)
    assert await put("a", 3, 0) == ("position_mismatch", 2, "1")
    assert await put("a", 3, 2) == ("position_mismatch", 2, "1")
    assert await put("a", 3, 1) == ("", 3, None)
    assert await put("a", None, 1) == ("position_mismatch", 3, "3")
    assert await put("a", None, 3) == ("", 4, None)
    assert await put("a", 5, 4) == ("position_mismatch", 4, None)
    assert await put("a", 5, 0) == ("", 5, None)
    await mapped.broker.remove_history(unique)
    assert await put("b", 6, 2) == ("", 6, None)
    assert await entries(mapped, unique) == {"a": "5", "b": "6"}


async def test_a_position_of_another_epoch_is_not_expected(mapped: Bench, unique: str) -> None:
    never = await make(mapped, unique, "a", 1, expect=StreamPosition(0, "other"))
    assert (never.reason, never.kept) == ("position_mismatch", False)
    first = await make(mapped, unique, "a", 1, expect=never.position)
    assert first.kept
    assert first.position is not None
    other = await make(mapped, unique, "a", 2, expect=StreamPosition(1, "other"))
    assert (other.reason, other.position) == ("position_mismatch", first.position)

    await mapped.broker.renew_epoch(unique, first.position.epoch)
    renewed = await make(mapped, unique, "a", 3, expect=first.position)
    assert renewed.reason == "position_mismatch"
    assert renewed.current is not None
    assert renewed.position is not None
    expected = StreamPosition(renewed.current.offset, renewed.position.epoch)
    assert (await make(mapped, unique, "a", 4, expect=expected)).kept


async def test_no_update_is_lost_that_expects_the_last_one(mapped: Bench, unique: str) -> None:
    """Each writer adds to the number that it read, and reads again where another was first."""

    async def write() -> None:
        made = 0
        while made < STEPS:
            [*found], _, position, _ = await mapped.maps.get(unique, "n")
            assert position is not None
            number = int(found[0].data.raw) if found else 0
            offset = found[0].offset if found else 0
            expected = StreamPosition(offset, position.epoch)
            made += (await make(mapped, unique, "n", number + 1, expect=expected)).kept

    await asyncio.gather(*(write() for _ in range(WRITERS)))

    page = await mapped.maps.get(unique, "n")
    assert as_texts(page.entries) == {"n": str(WRITERS * STEPS)}
    assert page.position is not None
    assert page.position.offset == WRITERS * STEPS


VERSIONS: dict[str, tuple[list[tuple[int, str] | None], list[int]]] = {
    "growing": ([(1, ""), (2, ""), (3, "")], [0, 1, 2]),
    "equal and older": ([(2, ""), (2, ""), (1, "")], [0]),
    "as numbers": ([(9, ""), (10, ""), (9, "")], [0, 1]),
    "another run": ([(5, "a"), (1, "b"), (1, "b"), (2, "b")], [0, 1, 3]),
    "no run is any run": ([(5, "a"), (1, ""), (6, "")], [0, 2]),
    "a run after none": ([(5, ""), (1, "a"), (2, "a")], [0, 1, 2]),
    "without a version": ([(5, ""), None, (4, "")], [0, 1, 2]),
    "a hostile run": ([(5, "a:b:7"), (5, "a:b:7"), (4, "\U0001f600"), (4, "\U0001f600")], [0, 2]),
    "beyond the numbers of Lua": ([(2**53, ""), (2**53 + 1, ""), (UINT64_MAX, "")], [0, 1, 2]),
}


@kinds
@pytest.mark.parametrize("case", VERSIONS)
async def test_only_newer_versions_of_a_key_are_put(
    mapped: Bench, unique: str, options: ChannelOptions, case: str
) -> None:
    versions, made = VERSIONS[case]
    await make(mapped, unique, "other", 1, options, version=Version(UINT64_MAX))

    for value, each in enumerate(versions):
        version = None if each is None else Version(*each)
        published = await make(mapped, unique, "a", value, options, version=version)
        assert published.reason == ("" if value in made else "version")
        if not published.kept:
            assert current_text(published) == str(max(n for n in made if n < value))

    assert (await entries(mapped, unique))["a"] == str(made[-1])


@kinds
async def test_a_removal_forgets_the_version(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await make(mapped, unique, "a", 1, options, version=Version(7, "run"))
    old = await make(mapped, unique, "a", None, options, version=Version(7, "run"))
    assert old.reason == "version"
    assert (await make(mapped, unique, "a", None, options, version=Version(8, "run"))).kept

    again = await make(mapped, unique, "a", 2, options, version=Version(1, "run"))

    assert again.kept
    assert (await make(mapped, unique, "a", 2, options, version=Version(1))).reason == "version"


@kinds
async def test_a_key_makes_one_change(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    once = Once("o")
    first = await make(mapped, unique, "a", 1, options, once=once)
    await make(mapped, unique, "a", 2, options)

    again = await make(mapped, unique, "a", 3, options, once=once)

    assert (again.kept, again.reason, again.position) == (False, "idempotency", first.position)
    assert current_text(again) == "2"
    other = await make(mapped, unique, "b", 3, options, once=once)
    assert (other.reason, other.current) == ("idempotency", None)
    assert await entries(mapped, unique) == {"a": "2"}
    await mapped.elapse(once.lifetime + 1)
    assert (await make(mapped, unique, "a", 3, options, once=once)).kept


@kinds
async def test_what_is_refused_uses_no_key_and_leaves_no_version(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await make(mapped, unique, "a", 1, options)
    how = {"once": Once("o"), "version": Version(9)}

    assert (await make(mapped, unique, "a", 2, options, key_mode="if_new", **how)).reason
    assert (await make(mapped, unique, "b", 2, options, key_mode="if_exists", **how)).reason

    assert (await make(mapped, unique, "a", 3, options, **how)).kept
    assert (await make(mapped, unique, "b", 3, options, version=Version(1))).kept


async def test_conditions_are_asked_in_one_order(mapped: Bench, unique: str) -> None:
    full = ChannelOptions(map="recoverable", map_max_bytes=3)
    await make(mapped, unique, "a", 10, once=Once("used"), version=Version(5))
    refused: list[tuple[str, dict[str, object]]] = [
        ("idempotency", {"once": Once("used")}),
        ("position_mismatch", {"expect": 7}),
        ("version", {"version": Version(5)}),
        ("key_exists", {"key_mode": "if_new"}),
    ]

    for number, (reason, _) in enumerate(refused):
        how = dict(pair for _, wanted in refused[number:] for pair in wanted.items())
        assert (await make(mapped, unique, "a", 1000, full, **how)).reason == reason
    assert (await make(mapped, unique, "a", 1000, full)).reason == "full"


@kinds
async def test_keys_are_bounded(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    small = ChannelOptions(map=options.map, map_max_keys=3)
    made = await mapped.broker.publish_many(
        [change(unique, f"k{number}", number, small) for number in range(5)]
    )

    assert [isinstance(each, Published) and each.reason for each in made] == [
        "",
        "",
        "",
        "full",
        "full",
    ]
    assert (await make(mapped, unique, "k0", 7, small)).kept
    assert (await make(mapped, unique, "k1", None, small)).kept
    assert (await make(mapped, unique, "k4", 4, small)).kept
    assert (await make(mapped, unique, "k5", 4, small)).reason == "full"
    assert await entries(mapped, unique) == {"k0": "7", "k2": "2", "k4": "4"}


@kinds
async def test_bytes_are_bounded(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    """Of an entry count the bytes of its key, and those of its data without white space."""
    small = ChannelOptions(map=options.map, map_max_bytes=12)

    async def reason(key: str, value: object) -> str:
        return (await make(mapped, unique, key, value, small)).reason

    assert await reason("é", "[ 1, 2 ]") == ""  # 2 + 5
    assert await reason("b", "12345") == "full"
    assert await reason("b", "1234") == ""
    assert await reason("c", "1") == "full"
    assert await reason("b", "12345") == "full"
    assert await reason("b", "123") == ""
    assert await reason("é", None) == ""
    assert await reason("c", "1234567") == ""
    assert await reason("d", "1") == "full"
    assert await reason("b", None) == ""
    assert await reason("c", None) == ""
    assert await reason("a" * 11, "1") == ""
    assert await reason("a" * MAX_KEY_BYTES, "1") == "full"


@pytest.mark.parametrize("options", [RECOVERABLE, PERSISTENT], ids=lambda options: options.map)
async def test_what_is_refused_is_no_publication(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await mapped.broker.subscribe(unique)
    await make(mapped, unique, "a", 1, options, version=Version(5))
    before = await mapped.maps.page(unique)

    for how in ({"expect": 0}, {"version": Version(4)}, {"key_mode": "if_new"}):
        await make(mapped, unique, "a", 2, options, ttl=1, **how)
    await make(mapped, unique, "b", None, options)

    assert await mapped.maps.page(unique) == before
    assert await mapped.kept(unique) == [1]
    await mapped.elapse(2)
    assert await mapped.maps.due(10) == []
    await make(mapped, unique, "c", 3, options)
    assert [p.key for p in await mapped.received(unique, 2)] == ["a", "c"]
    await mapped.elapse(TTL)
