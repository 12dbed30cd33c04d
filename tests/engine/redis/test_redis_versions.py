"""Nodes of the version before and of this one side by side: what one writes, the other reads.

What older versions write is written here by hand, as it is in Redis.
"""

from __future__ import annotations

import msgpack
import pytest

from realtime.engine.base import Outgoing
from realtime.engine.once import Once
from realtime.engine.redis import records
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import KEPT, PLAIN
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.unit.parts import data, eventually, position_of


@pytest.fixture
async def engine(open_redis: OpenRedisBench) -> RedisBench:
    """The engine over one Redis."""
    bench: RedisBench = await open_redis()
    return bench


def old_message(channel: str, value: int) -> bytes:
    """A publication as older versions write it."""
    return msgpack.packb(
        {
            "record": [str(value), f"old{value}"],
            "checked": True,
            "type": "realtime.publication",
            "channel": channel,
        }
    )


def publish_as_before(engine: RedisBench, channel: str, offset: int, value: int) -> None:
    """Do what the script of older versions does."""
    stream, meta, epoch = engine.keys.stream(channel)
    with engine.client() as client:
        last = client.hget(meta, "u")
        fields = {"m": old_message(channel, value)}
        if last is not None:
            fields["p"] = last.partition(b":")[2]
        client.xadd(stream, fields, id=f"{offset}-0")
        name = client.hget(meta, "e") or client.get(epoch) or b"e"
        client.setnx(epoch, name)
        client.hset(meta, mapping={"s": offset, "e": name, "u": f"{offset}:old{value}"})
        prefix = b"\xc1%d:%s:" % (offset, name)
        client.publish(engine.group_channel(channel), prefix + fields["m"])


async def test_publications_of_both_versions_are_one_stream(
    engine: RedisBench, unique: str
) -> None:
    await engine.broker.subscribe(unique)

    publish_as_before(engine, unique, 1, 10)
    await engine.publish(unique, 20)
    publish_as_before(engine, unique, 3, 30)
    position = await engine.publish(unique, 40)

    history = await engine.broker.history(unique)
    assert history.position == position
    assert [int(p.data.raw) for p in history.publications] == [10, 20, 30, 40]
    assert [p.offset for p in history.publications] == [1, 2, 3, 4]
    assert [p.time == 0 for p in history.publications] == [True, False, True, False]
    assert [p.uid for p in history.publications] == ["old10", "u20", "old30", "u40"]
    assert (await engine.broker.history(unique, 2)).previous_uid == "old10"
    assert (await engine.broker.history(unique, 3)).previous_uid == "u20"
    await eventually(lambda: len(engine.values(unique)) == 4)
    assert engine.values(unique) == [10, 20, 30, 40]
    reverse = await engine.broker.history(unique, 3, 2, reverse=True)
    assert [p.offset for p in reverse.publications] == [3, 2]


async def test_older_versions_read_from_an_offset_on(engine: RedisBench, unique: str) -> None:
    """They read from `<offset>-0` on, and take what is before the hyphen for the offset."""
    await engine.publish(unique, 1, 2, 3)

    with engine.client() as client:
        entries = client.xrange(engine.keys.stream(unique)[0], "2-0", "+")

    assert [int(number.partition(b"-")[0]) for number, _ in entries] == [2, 3]
    fields = [list(each.items()) for _, each in entries]
    assert [names[0][0] for names in fields] == [b"m", b"m"]
    assert [names[1] for names in fields] == [(b"p", b"u1"), (b"p", b"u2")]


@pytest.mark.parametrize("tags", [None, {"kind": "goal"}], ids=["plain", "with tags"])
async def test_older_versions_read_what_is_published(
    engine: RedisBench, unique: str, tags: dict[str, str] | None
) -> None:
    """They look for these keys, and ignore others."""
    publication = Publication(data("1"), uid="u1", tags=tags)
    with engine.client() as client, client.pubsub() as pubsub:
        pubsub.subscribe(engine.group_channel(unique))
        pubsub.get_message(timeout=10)

        position = (
            await engine.broker.publish(Outgoing(unique, publication, KEPT, Once("k")))
        ).position

        (passed,) = [
            message
            for _ in range(10)
            if (message := pubsub.get_message(timeout=1)) and message["type"] == "message"
        ][:1]
    assert position is not None
    start, epoch, rest = passed["data"].split(b":", 2)
    assert (start, epoch.decode()) == (b"\xc11", position.epoch)
    message = msgpack.unpackb(rest)
    assert message["record"] == ["1", "u1"]
    assert (message["type"], message["channel"]) == ("realtime.publication", unique)
    assert set(message) - {"record", "checked", "type", "channel"} == ({"more"} if tags else set())


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"t": 1763800000000, "trace": "00-4bf9"},
        {"tags": None},
        {"tags": {}},
    ],
    ids=str,
)
def test_what_newer_versions_say_more_is_ignored(more: dict[str, object]) -> None:
    message = {"record": ["1", "u"], "more": more}

    assert records.to_publication(message, 7) == Publication(data("1"), None, 7, "u")


@pytest.mark.parametrize("tags", [{"a": 1}, {1: "a"}, ["a"], "a", 5], ids=str)
def test_tags_that_are_no_strings_are_refused(tags: object) -> None:
    with pytest.raises((TypeError, AttributeError)):
        records.to_publication({"record": ["1", "u"], "more": {"tags": tags}}, 0)


async def test_repetition_in_a_stream_of_older_versions_has_the_first_position(
    engine: RedisBench, unique: str
) -> None:
    publish_as_before(engine, unique, 1, 10)
    once = Once("k")
    first = (
        await engine.broker.publish(Outgoing(unique, Publication(data("2"), uid="u"), KEPT, once))
    ).position
    publish_as_before(engine, unique, 3, 30)

    again = (
        await engine.broker.publish(Outgoing(unique, Publication(data("2"), uid="u"), KEPT, once))
    ).position

    assert first == again
    assert first == StreamPosition(2, (await position_of(engine.broker, unique)).epoch)


async def test_keys_of_idempotency_expire(engine: RedisBench, unique: str) -> None:
    for options in (KEPT, PLAIN):
        once = Once(f"k{options.history_size}", 40)
        await engine.broker.publish(Outgoing(unique, Publication(data("1")), options, once))

    with engine.client() as client:
        left = [client.ttl(key) for key in client.scan_iter(f"{engine.prefix}:once:*")]
    assert len(left) == 2
    assert all(0 < seconds <= 40 for seconds in left)


async def test_position_at_a_time_is_unknown_after_a_publication_of_older_versions(
    engine: RedisBench, unique: str
) -> None:
    """They write no time. What is read later knows that it was there."""
    await engine.publish(unique, 10)
    publish_as_before(engine, unique, 2, 20)
    top = await position_of(engine.broker, unique)

    first = await position_of(engine.broker, unique, now_ms(engine))
    second = await position_of(engine.broker, unique, now_ms(engine))

    assert first == StreamPosition(0, top.epoch)
    assert second == top


async def test_position_at_a_time_leaves_out_publications_of_older_versions(
    engine: RedisBench, unique: str
) -> None:
    """They may be later: nobody knows."""
    await engine.publish(unique, 10)
    at = now_ms(engine)
    while now_ms(engine) == at:
        pass
    publish_as_before(engine, unique, 2, 20)
    publish_as_before(engine, unique, 3, 30)
    await engine.publish(unique, 40)

    assert (await position_of(engine.broker, unique, at)).offset == 1


def now_ms(engine: RedisBench) -> int:
    """Return the time by the clock of Redis."""
    with engine.client() as client:
        seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000
