"""The contract of `engine.maps`, for every engine: entries, pages, and the stream."""

from __future__ import annotations

import asyncio
import random

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.maps import MAX_KEY_BYTES
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.engine.bench import KEPT, META_LIFETIME, Bench, Pair, comes_true
from tests.engine.map_bench import (
    EPHEMERAL,
    KINDS_OF_MAPS,
    NULL,
    PERSISTENT,
    RECOVERABLE,
    as_texts,
    change,
    entries,
    make,
    pages,
)
from tests.unit.parts import data, eventually, position_of

kinds = pytest.mark.parametrize("options", KINDS_OF_MAPS, ids=lambda options: options.map)

KEYS = (
    "a",
    "b:c",
    "\U0001f600",
    "\uffff\u202e",
    "é",
    "\x01",
    "0",
    "00",
    "[a",
    "(a",
    "+",
    "-",
    "a\nb\r\tc",
    "100%s %(x)s",
    '\'; DROP TABLE "x"; -- $$ \\',
    "{schema} {a,b}",
    "*?[a-z]",
    "7:8:9",
    "a" * MAX_KEY_BYTES,
    "\U0001f600" * (MAX_KEY_BYTES // 4),
)
VALUES = ('"\U0001f600"', '"1:2:3:4:5:6"', '{"a": "<b>"}', "null", '""', "[1.0, 2e3]")


@kinds
async def test_newest_put_of_each_key_is_the_entry(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await mapped.broker.subscribe(unique)
    info = ClientInfo("17", "C1", data('{"a": 1.0}'), None)
    put = Publication(data('{"n": 2.0}'), info, 0, "uid", {"tag": "x"}, key="a")

    await make(mapped, unique, "b", 1, options)
    await make(mapped, unique, "a", 1, options)
    last = await mapped.broker.publish(Outgoing(unique, put, options))
    await make(mapped, unique, "c", 3, options)
    gone = await make(mapped, unique, "c", options=options)

    assert (last.kept, last.reason, gone.kept) == (True, "", True)
    page = await mapped.maps.page(unique)
    assert page.size == 2
    assert page.cursor == ""
    first, second = page.entries
    assert (first.key, first.data, first.info, first.uid) == ("a", put.data, info, "uid")
    assert (first.tags, first.removed) == ({"tag": "x"}, False)
    assert (second.key, second.data) == ("b", data("1"))
    assert first.time >= second.time > 0
    if options is EPHEMERAL:
        assert (last.position, first.offset, second.offset) == (None, 0, 0)
    else:
        epoch = (await position_of(mapped.broker, unique)).epoch
        assert last.position == StreamPosition(3, epoch)
        assert page.position == gone.position == StreamPosition(5, epoch)
        assert (first.offset, second.offset) == (3, 1)

    received = await mapped.received(unique, 5)
    assert [(p.key, p.removed) for p in received] == [
        *((key, False) for key in "baac"),
        ("c", True),
    ]
    assert received[-1].data == NULL
    assert [position for _, position in mapped.receiver.publications[unique]] == [
        None if options is EPHEMERAL else StreamPosition(offset, epoch) for offset in range(1, 6)
    ]


@kinds
async def test_one_entry_is_read_by_its_key(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    for key in ("a", "b", "ba"):
        await make(mapped, unique, key, f'"{key}"', options)

    for key in ("a", "b", "ba"):
        page = await mapped.maps.get(unique, key)
        assert as_texts(page.entries) == {key: f'"{key}"'}
        assert (page.cursor, page.size) == ("", 3)
        if options is not EPHEMERAL:
            assert page.position == await position_of(mapped.broker, unique)
    for key in ("", "aa", "c", "[b", "\0"):
        assert (await mapped.maps.get(unique, key)).entries == ()


async def test_a_map_without_entries_is_read(mapped: Bench, unique: str) -> None:
    page = await mapped.maps.page(unique)

    assert page == ((), "", await position_of(mapped.broker, unique), 0)
    assert (await mapped.maps.get(unique, "a")) == page
    put = await make(mapped, unique, "a", 1)
    assert page.position is not None
    assert put.position == StreamPosition(1, page.position.epoch)


async def test_pages_are_in_the_order_of_bytes(mapped: Bench, unique: str) -> None:
    for number, key in enumerate(random.Random(1).sample(KEYS, len(KEYS))):
        assert (await make(mapped, unique, key, number)).kept
    ordered = sorted(KEYS, key=str.encode)

    for limit in (1, 3, len(KEYS) - 1, len(KEYS), 1000):
        found = await pages(mapped, unique, limit)
        assert [p.key for page in found for p in page.entries] == ordered
        assert {page.size for page in found} == {len(KEYS)}
        assert all(len(page.entries) <= limit for page in found)
        assert [page.cursor for page in found[:-1]] == [p.entries[-1].key for p in found[:-1]]
    none = await mapped.maps.page(unique, limit=0)
    assert none.entries == ()
    assert none.size == len(KEYS)
    assert none.position == await position_of(mapped.broker, unique)


@pytest.mark.parametrize("cursor", ["", "\0", "[a", "~" * 1000, "\U0001f600", "-", "+"])
async def test_any_text_is_a_cursor(mapped: Bench, unique: str, cursor: str) -> None:
    for key in KEYS:
        await make(mapped, unique, key, 1)

    page = await mapped.maps.page(unique, cursor)

    rest = sorted((key for key in KEYS if key > cursor), key=str.encode)
    assert [p.key for p in page.entries] == rest


async def test_keys_that_stay_are_read_while_others_come_and_go(mapped: Bench, unique: str) -> None:
    staying = [f"k{number:02}" for number in range(0, 40, 2)]
    for key in staying:
        await make(mapped, unique, key, 1)
    read: list[str] = []
    cursor, number = "", 1

    while True:
        page = await mapped.maps.page(unique, cursor, 4)
        read += [p.key for p in page.entries]
        if not (cursor := page.cursor):
            break
        await make(mapped, unique, f"k{number:02}", 2)
        await make(mapped, unique, f"k{number:02}")
        await make(mapped, unique, f"k{40 - number:02}", 3)
        number += 2

    assert read == sorted(set(read))
    assert set(staying) <= set(read)


@kinds
async def test_hostile_keys_and_values_are_kept(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    await mapped.broker.subscribe(unique)
    for key in KEYS:
        for value in VALUES:
            await make(mapped, unique, key, value, options)
            assert as_texts((await mapped.maps.get(unique, key)).entries) == {key: value}

    assert await entries(mapped, unique) == dict.fromkeys(sorted(KEYS, key=str.encode), VALUES[-1])
    received = await mapped.received(unique, len(KEYS) * len(VALUES))
    assert [p.key for p in received[:: len(VALUES)]] == [*KEYS]
    for key in KEYS:
        assert (await make(mapped, unique, key, options=options)).kept
    assert (await mapped.maps.page(unique)).size == 0


async def test_channels_have_nothing_to_do_with_each_other(mapped: Bench, unique: str) -> None:
    for channel, key in ((f"{unique}", "1:a"), (f"{unique}1", ":a"), (f"{unique}1:", "a")):
        await make(mapped, channel, key, 1)
    await make(mapped, unique, "1:a")

    assert await entries(mapped, unique) == {}
    assert await entries(mapped, f"{unique}1") == {":a": "1"}
    assert await entries(mapped, f"{unique}1:") == {"a": "1"}


@pytest.mark.parametrize("options", [RECOVERABLE, PERSISTENT], ids=lambda options: options.map)
async def test_entries_are_what_the_stream_made(
    mapped: Bench, unique: str, options: ChannelOptions
) -> None:
    """At every position that a page names, its entries are the result of the changes until then."""
    rng = random.Random(2)
    options = ChannelOptions(map=options.map, history_size=1000, history_lifetime=100)
    read = []

    async def write() -> None:
        for number in range(20):
            key = f"k{rng.randrange(8)}"
            await make(mapped, unique, key, rng.choice([None, number]), options)

    async def look() -> None:
        for _ in range(20):
            read.append(await mapped.maps.page(unique))

    await asyncio.gather(*(write() for _ in range(5)), look())
    read.append(await mapped.maps.page(unique))
    changes = (await mapped.broker.history(unique)).publications

    for page in read:
        assert page.position is not None
        expected = as_texts(changes[: page.position.offset])
        assert as_texts(page.entries) == dict(sorted(expected.items()))
        assert page.size == len(expected)
        offsets = {p.key: p.offset for p in changes[: page.position.offset]}
        assert {p.key: p.offset for p in page.entries} == {key: offsets[key] for key in expected}
        times = {p.offset: p.time for p in changes}
        assert all(times[p.offset] == p.time for p in page.entries)


@kinds
async def test_several_changes_at_once(mapped: Bench, unique: str, options: ChannelOptions) -> None:
    await mapped.broker.subscribe(unique)
    outcomes = await mapped.broker.publish_many(
        [
            change(unique, "a", 1, options),
            change(unique, "a", 2, options, key_mode="if_new"),
            change(f"{unique}b", "a", 3, options),
            change(unique, "b", 4, options),
            change(unique, "c", None, options),
            change(unique, "b", None, options),
        ]
    )

    assert not [each for each in outcomes if isinstance(each, EngineUnavailable)]
    assert [isinstance(each, Published) and each.reason for each in outcomes] == [
        "",
        "key_exists",
        "",
        "",
        "key_not_found",
        "",
    ]
    assert await entries(mapped, unique) == {"a": "1"}
    assert await entries(mapped, f"{unique}b") == {"a": "3"}
    assert [p.key for p in await mapped.received(unique, 3)] == ["a", "b", "b"]


async def test_a_lost_stream_does_not_take_the_entries(mapped: Bench, unique: str) -> None:
    first = await make(mapped, unique, "a", 1)
    await mapped.broker.remove_history(unique)
    assert await entries(mapped, unique) == {"a": "1"}
    assert await mapped.kept(unique) == []

    assert first.position is not None
    await mapped.broker.renew_epoch(unique, first.position.epoch)
    page = await mapped.maps.get(unique, "a")
    assert as_texts(page.entries) == {"a": "1"}
    assert page.position is not None
    assert page.position.epoch != first.position.epoch
    assert page.position.offset == 1
    second = await make(mapped, unique, "b", 2)
    assert second.position == StreamPosition(2, page.position.epoch)
    assert await entries(mapped, unique) == {"a": "1", "b": "2"}


async def test_an_entry_outlives_the_publications(mapped: Bench, unique: str) -> None:
    options = ChannelOptions(map="recoverable", history_size=2, history_lifetime=10)
    for number in range(4):
        await make(mapped, unique, f"k{number}", number, options, ttl=1000)
    assert await mapped.kept(unique) == [3, 4]

    await mapped.elapse(11)

    assert await mapped.kept(unique) == []
    page = await mapped.maps.page(unique)
    assert [p.key for p in page.entries] == ["k0", "k1", "k2", "k3"]
    assert page.position is not None
    assert page.position.offset == 4


@pytest.mark.parametrize(
    ("options", "ttl"),
    [(PERSISTENT, None), (RECOVERABLE, 0), (RECOVERABLE, 3 * META_LIFETIME)],
    ids=["persistent", "forever", "long"],
)
async def test_a_position_lives_as_long_as_the_entries(
    mapped_forgetful: Bench, unique: str, options: ChannelOptions, ttl: int | None
) -> None:
    put = await make(mapped_forgetful, unique, "a", 1, options, ttl=ttl)
    await make(mapped_forgetful, unique, "b", 1, options)

    for _ in range(2):
        await mapped_forgetful.elapse(1.2 * META_LIFETIME)

    page = await mapped_forgetful.maps.get(unique, "a")
    assert as_texts(page.entries) == {"a": "1"}
    assert put.position is not None
    assert page.position == StreamPosition(2, put.position.epoch)


async def test_two_nodes_have_one_map(mapped_pair: Pair, unique: str) -> None:
    one, other = mapped_pair
    await other.broker.subscribe(unique)
    await make(one, unique, "a", 1)
    await make(other, unique, "b", 2)
    await make(one, unique, "b")

    received = await other.received(unique, 3)
    assert [(p.key, p.removed) for p in received] == [("a", False), ("b", False), ("b", True)]
    await comes_true(lambda: _equal(one, other, unique))
    assert await entries(other, unique) == {"a": "1"}


async def _equal(one: Bench, other: Bench, channel: str) -> bool:
    return await one.maps.page(channel) == await other.maps.page(channel)


async def test_a_plain_publication_changes_no_entry(mapped: Bench, unique: str) -> None:
    await make(mapped, unique, "a", 1)
    await mapped.publish(unique, 2, options=RECOVERABLE)
    await mapped.publish(f"{unique}b", 2, options=KEPT)

    page = await mapped.maps.page(unique)
    assert as_texts(page.entries) == {"a": "1"}
    assert page.position is not None
    assert page.position.offset == 2
    assert (await mapped.maps.page(f"{unique}b")).size == 0


async def test_a_change_that_no_node_reads_is_kept(mapped: Bench, unique: str) -> None:
    await make(mapped, unique, "a", 1)
    await mapped.broker.subscribe(unique)
    await make(mapped, unique, "b", 2)

    await eventually(lambda: bool(mapped.receiver.publications[unique]))
    assert [p.key for p, _ in mapped.receiver.publications[unique]] == ["b"]
    assert await entries(mapped, unique) == {"a": "1", "b": "2"}
