"""Streams in Redis: what the scripts leave there, and when streams begin anew."""

from __future__ import annotations

import pytest
from msgspec import structs

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.once import Once
from realtime.engine.redis.broker import MetaSettings
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import KEPT, META_LIFETIME, PLAIN
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.unit.parts import data, position_of

NEVER = -1
"""The TTL of a key that stays forever."""
HOUR = 3600
LONG_META_LIFETIME = 10 * HOUR
RENEWAL = 100
"""Seconds that a meta lives longer, so that not each publication renews it."""


def names(bench: RedisBench, channel: str) -> tuple[str, str, str]:
    """Stream, meta and the epoch of new streams."""
    return bench.keys.stream(channel)


# appending


async def test_uids_of_the_top_and_of_the_one_before_are_known_when_nothing_is_kept(
    engine: RedisBench, unique: str
) -> None:
    await engine.publish(unique, 1, 2)
    one, two = (await engine.broker.history(unique)).publications
    await engine.broker.remove_history(unique)
    assert (await engine.broker.history(unique)).top_uid == two.uid
    assert await engine.broker.history(unique, limit=0) == await engine.broker.history(unique)

    await engine.publish(unique, 3)

    history = await engine.broker.history(unique)
    assert (history.publications[0].offset, history.previous_uid) == (3, two.uid)
    assert len({one.uid, two.uid, history.top_uid}) == 3


async def test_uid_that_an_older_version_did_not_write_is_unknown(
    engine: RedisBench, unique: str
) -> None:
    await engine.publish(unique, 1)
    with engine.client() as client:  # as older versions publish
        client.hset(names(engine, unique)[1], "s", 2)

    assert (await engine.broker.history(unique, limit=0)).top_uid == ""
    await engine.publish(unique, 3)
    history = await engine.broker.history(unique, 3)
    assert (history.top_uid, history.previous_uid) == (history.publications[0].uid, "")


@pytest.mark.parametrize("size", [1, 2, 100, 257])
async def test_stream_is_trimmed_exactly(engine: RedisBench, unique: str, size: int) -> None:
    """Redis keeps streams in nodes of a hundred entries, and could trim whole nodes only."""
    options = ChannelOptions(history_size=size, history_lifetime=100)
    await engine.publish(unique, *range(size + 150), options=options)
    with engine.client() as client:
        assert client.xlen(names(engine, unique)[0]) == size
    assert await engine.kept(unique) == [*range(151, size + 151)]


async def test_offset_and_time_are_the_id_of_the_entry(engine: RedisBench, unique: str) -> None:
    with engine.client() as client:
        before = client.time()
        await engine.publish(unique, 1, 2)
        after = client.time()
        entries = [number.decode() for number, _ in client.xrange(names(engine, unique)[0])]

    times = [publication.time for publication in (await engine.broker.history(unique)).publications]
    assert entries == [f"{offset}-{time}" for offset, time in zip((1, 2), times, strict=True)]
    assert in_ms(before) <= times[0] <= times[1] <= in_ms(after)


def in_ms(time: tuple[int, int]) -> int:
    """Milliseconds of what TIME replies."""
    seconds, microseconds = time
    return seconds * 1000 + microseconds // 1000


@pytest.mark.parametrize("offset", [2**31, 2**32 + 1, 10**15, 2**53 - 2])
async def test_offsets_are_written_in_full(engine: RedisBench, unique: str, offset: int) -> None:
    await engine.broker.subscribe(unique)
    first = await engine.publish(unique, 1)
    assert first is not None
    with engine.client() as client:
        client.hset(names(engine, unique)[1], "s", offset)

    position = await engine.publish(unique, 2)

    assert position == StreamPosition(offset + 1, first.epoch)
    assert await engine.kept(unique) == [1, offset + 1]
    assert await position_of(engine.broker, unique) == position
    assert [p.offset for p in await engine.received(unique, 2)] == [1, offset + 1]


async def test_meta_stays_forever_without_a_bound(engine: RedisBench, unique: str) -> None:
    await engine.publish(unique, 1)
    await engine.broker.history(unique)
    with engine.client() as client:
        assert client.ttl(names(engine, unique)[1]) == NEVER
        assert client.ttl(names(engine, unique)[2]) == NEVER


@pytest.mark.parametrize("use", ["publish", "history", "position"])
@pytest.mark.parametrize("published", [0, 1], ids=["unused", "published"])
async def test_every_use_renews_the_lifetime_of_the_meta(
    open_redis: OpenRedisBench, unique: str, use: str, published: int
) -> None:
    engine = await open_redis(meta=MetaSettings(META_LIFETIME))
    await engine.publish(unique, *range(published))
    await position_of(engine.broker, unique)
    await engine.elapse(META_LIFETIME - 20)

    match use:
        case "publish":
            await engine.publish(unique, 2)
        case "history":
            await engine.broker.history(unique)
        case "position":
            await position_of(engine.broker, unique)

    with engine.client() as client:
        left = client.ttl(names(engine, unique)[1])
        assert META_LIFETIME - 10 < left <= META_LIFETIME + RENEWAL


@pytest.mark.parametrize("seconds", [0, 50, 99, 100, 200, LONG_META_LIFETIME - 20])
async def test_meta_lives_for_its_lifetime_after_each_publication(
    open_redis: OpenRedisBench, unique: str, seconds: int
) -> None:
    """Not each publication renews it."""
    engine = await open_redis(meta=MetaSettings(LONG_META_LIFETIME))
    meta = names(engine, unique)[1]
    with engine.client() as client:
        await engine.publish(unique, 1)
        assert LONG_META_LIFETIME + RENEWAL - 10 < client.ttl(meta) <= LONG_META_LIFETIME + RENEWAL
        await engine.elapse(seconds)

        await engine.publish(unique, 2)

        assert LONG_META_LIFETIME - 10 < client.ttl(meta) <= LONG_META_LIFETIME + RENEWAL


async def test_epoch_of_a_stream_that_was_only_read_is_kept_for_an_hour(
    open_redis: OpenRedisBench, unique: str
) -> None:
    """Clients choose the names that are read."""
    engine = await open_redis(meta=MetaSettings(LONG_META_LIFETIME))
    meta = names(engine, unique)[1]
    with engine.client() as client:
        read = await position_of(engine.broker, unique)
        assert HOUR - 10 < client.ttl(meta) <= HOUR
        client.expire(meta, 20)

        again = await position_of(engine.broker, unique)
        assert HOUR - 10 < client.ttl(meta) <= HOUR, "a node that checks its position renews it"

        published = await engine.publish(unique, 1)
        assert LONG_META_LIFETIME - 10 < client.ttl(meta) <= LONG_META_LIFETIME + RENEWAL
        assert [read.epoch, published and published.epoch] == [again.epoch] * 2


async def test_meta_lives_twice_as_long_as_the_publications(
    open_redis: OpenRedisBench, unique: str
) -> None:
    engine = await open_redis(meta=MetaSettings(META_LIFETIME))
    options = ChannelOptions(history_size=5, history_lifetime=META_LIFETIME)

    await engine.publish(unique, 1, options=options)
    await engine.broker.history(unique)  # it only knows the shorter lifetime
    await position_of(engine.broker, unique)

    with engine.client() as client:
        stream, meta, _ = names(engine, unique)
        assert META_LIFETIME - 10 < client.ttl(stream) <= META_LIFETIME
        assert 2 * META_LIFETIME - 10 < client.ttl(meta) <= 2 * META_LIFETIME + RENEWAL


async def test_meta_that_stayed_forever_is_bounded_by_the_next_publication(
    open_redis: OpenRedisBench, unique: str
) -> None:
    before = await open_redis(prefix=unique)
    await before.publish(unique, 1)
    after = await open_redis(prefix=unique, meta=MetaSettings(META_LIFETIME))
    meta = names(after, unique)[1]

    with after.client() as client:
        await position_of(after.broker, unique)
        assert client.ttl(meta) == NEVER

        await after.publish(unique, 2)
        assert META_LIFETIME - 10 < client.ttl(meta) <= META_LIFETIME + RENEWAL


@pytest.mark.parametrize("use", ["publish", "history", "position"])
async def test_meta_stays_forever_when_the_bound_was_taken_away(
    open_redis: OpenRedisBench, unique: str, use: str
) -> None:
    before = await open_redis(prefix=unique, meta=MetaSettings(META_LIFETIME))
    await before.publish(unique, 1)
    after = await open_redis(prefix=unique)

    match use:
        case "publish":
            await after.publish(unique, 2)
        case "history":
            await after.broker.history(unique)
        case "position":
            await position_of(after.broker, unique)

    with after.client() as client:
        assert client.ttl(names(after, unique)[1]) == NEVER


# looking


async def test_reading_unknown_channels_leaves_one_key_for_all_of_them(
    engine: RedisBench, unique: str
) -> None:
    before = engine.stored_keys()

    for number in range(20):
        channel = f"{unique}-{number}"
        await engine.broker.history(channel)
        await position_of(engine.broker, channel)
        await engine.presence.get(channel)
        await engine.broker.remove_history(channel)
        await engine.presence.remove(channel, "C")
        await engine.broker.renew_epoch(channel, "epoch")
        await engine.publish(channel, 1, options=ChannelOptions())

    assert engine.stored_keys() - before == {engine.keys.stream("")[2]}


# what was lost


@pytest.mark.parametrize("meta_lifetime", [0, META_LIFETIME], ids=["forever", "bounded"])
async def test_stream_that_lost_its_meta_begins_again_in_another_epoch(
    open_redis: OpenRedisBench, unique: str, meta_lifetime: int
) -> None:
    """A client that has seen offset 3 would take the new offset 3 for the one it knows."""
    engine = await open_redis(meta=MetaSettings(meta_lifetime))
    before = await engine.publish(unique, 1, 2, 3)
    with engine.client() as client:
        client.delete(names(engine, unique)[1])

    after = await engine.publish(unique, 4, 5, 6)

    assert before is not None
    assert after is not None
    assert (after.offset, before.offset) == (3, 3)
    assert after.epoch != before.epoch
    assert await engine.kept_values(unique) == [4, 5, 6]


@pytest.mark.parametrize(("meta_lifetime", "same"), [(0, True), (META_LIFETIME, False)])
async def test_stream_of_which_nothing_is_left_has_its_old_epoch_only_if_metas_stay_forever(
    open_redis: OpenRedisBench, unique: str, meta_lifetime: int, same: bool
) -> None:
    """The first is what docs/redis.md warns of: nothing tells it from a new stream."""
    engine = await open_redis(meta=MetaSettings(meta_lifetime))
    before = await engine.publish(unique, 1, 2, 3)
    with engine.client() as client:
        client.delete(*names(engine, unique)[:2])

    after = await engine.publish(unique, 4, 5, 6)

    assert before is not None
    assert after is not None
    assert (after.offset, after.epoch == before.epoch) == (3, same)


async def test_lost_meta_is_noticed_by_the_first_reader(engine: RedisBench, unique: str) -> None:
    before = await engine.publish(unique, 1, 2, 3)
    assert before is not None
    with engine.client() as client:
        client.delete(names(engine, unique)[1])

    assert (await position_of(engine.broker, unique)).offset == 0
    await engine.broker.renew_epoch(unique, before.epoch)

    position = await position_of(engine.broker, unique)
    assert position.epoch != before.epoch
    assert await engine.publish(unique, 4) == StreamPosition(1, position.epoch)


async def test_everything_begins_anew_in_an_empty_redis(own: RedisBench, unique: str) -> None:
    before = await own.publish(unique, 1, 2)
    assert before is not None
    with own.client() as client:
        client.flushall()

    after = await own.publish(unique, 3)

    assert after is not None
    assert after.offset == 1
    assert after.epoch != before.epoch


# the publication before


@pytest.mark.parametrize("options", [KEPT, PLAIN])
async def test_publication_behind_one_that_was_not_made_is_refused(
    own: RedisBench, unique: str, options: ChannelOptions
) -> None:
    def outgoing(number: int) -> Outgoing:
        publication = Publication(data(str(number)), uid=f"u{number}")
        once, after = (Once(f"key {each}", 60) for each in (number, number - 1))
        return Outgoing(unique, publication, options, once, after=after)

    with pytest.raises(EngineUnavailable, match="BEHIND"):
        await own.broker.publish(outgoing(2))
    await own.broker.publish(structs.replace(outgoing(1), after=None))
    own.servers[0].reset_command_calls()
    assert (await own.broker.publish(outgoing(2))).kept
    # without Sentinels no key stands for a seal, which costs a look at the replication
    assert "info" not in own.servers[0].command_calls()
