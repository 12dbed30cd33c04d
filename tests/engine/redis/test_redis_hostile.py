"""Strange content in Redis: an error or a logged line, and everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgpack
import pytest

from realtime.engine.redis.broker import PUBLICATION
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, StreamPosition
from realtime.streams.follower import StreamFollower
from tests.engine.bench import KEPT, PLAIN, several
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import ONE_REDIS, SHARDS, TWO_STEPS, RedisBench
from tests.unit.parts import data, eventually, position_of

INFO = ClientInfo("17", "C")


def packed(content: object) -> bytes:
    """Bytes as the layer's serializer writes them."""
    encoded: bytes = msgpack.packb(content)
    return encoded


def deep(levels: int) -> bytes:
    """Lists in lists."""
    return b"\x91" * levels + b"\xc0"


def message(**changes: object) -> Mapping[str, object]:
    """A message between nodes, changed."""
    return {"type": PUBLICATION, "channel": "c", "record": ["1", "u"], **changes}


GARBAGE = {
    "nothing": b"",
    "no msgpack": b"\xc1\xc1\xc1",
    "cut": b"\x83\xa4type",
    "HTML": b"<html>",
    "no UTF-8": b"\xa2\xff\xfe",
    "very deep": deep(100_000),
    "a number": packed(7),
    "a list": packed([1, 2, 3]),
    "an empty map": packed({}),
    "no record": packed({"type": PUBLICATION, "channel": "c"}),
    "an empty record": packed(message(record=[])),
    "a record of numbers": packed(message(record=[1, 2])),
    "a record that is no list": packed(message(record=7)),
    "data that is no JSON": packed(message(record=["{", "u"])),
    "an info of numbers": packed(message(record=["1", "u", [1]])),
    "marked data that is no string": packed(message(record=[1, "u"], checked=True)),
    "a marked info that is no string": packed(
        message(record=["1", "u", ["", "", 1, 1]], checked=True)
    ),
    "data that is deep": packed(message(record=["[" * 100_000, "u"])),
}
"""Values that no node writes."""

MESSAGES = GARBAGE | {
    "a position without message": b"\xc11:e:",
    "a position without epoch": b"\xc11",
    "an offset that is no number": b"\xc1x:e:" + packed(message()),
    "an epoch that is no UTF-8": b"\xc11:\xff:" + packed(message()),
    "another type": packed(message(type="another")),
    "another channel": packed(message(channel="another")),
    "a channel that is no string": packed(message(channel=[1])),
    "a join without info": packed(message(type="realtime.join", record=[])),
}
"""Messages that no node sends."""


def garbage(table: Mapping[str, bytes]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("content", table.values(), ids=table.keys())


# messages


@garbage(MESSAGES)
async def test_strange_message_does_not_keep_others_from_arriving(
    engine: RedisBench, unique: str, content: bytes
) -> None:
    await engine.broker.subscribe(unique)
    with engine.client() as client:
        assert client.publish(engine.group_channel(unique), content) == 1

    await engine.publish(unique, 1, options=PLAIN)

    await engine.received(unique, 1)
    assert engine.values(unique) == [1]
    assert engine.receiver.interruptions == []


@garbage({name: GARBAGE[name] for name in ("no msgpack", "a number", "an empty record")})
async def test_undecodable_message_is_logged(
    engine: RedisBench, unique: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.broker.subscribe(unique)
    with engine.client() as client:
        client.publish(engine.group_channel(unique), content)
    await eventually(lambda: "could not be handled" in caplog.text)


@pytest.mark.parametrize("kind", [ONE_REDIS, TWO_STEPS, SHARDS])
async def test_engine_of_every_kind_survives_strange_messages(
    open_redis: OpenRedisBench, unique: str, kind: str
) -> None:
    engine = await open_redis(kind)
    await engine.broker.subscribe(unique)
    layer = engine.foreign or engine.layer
    group = engine.keys.group(unique)
    for server in engine.servers:
        with server.client() as client:
            client.publish(engine.group_channel(unique), b"\xc1\xc1")
            client.publish(f"{engine.prefix}-foreign__group__{group}", b"\xc1\xc1")
    await layer.group_send(group, {"type": PUBLICATION})

    await engine.publish(unique, 1, options=PLAIN)

    await engine.received(unique, 1)
    assert engine.values(unique) == [1]


async def test_mark_of_checked_payloads_counts_in_redis_only(
    open_redis: OpenRedisBench, unique: str
) -> None:
    """Programs that write to the channel layer of the site are not nodes."""
    engine = await open_redis(TWO_STEPS)
    await engine.broker.subscribe(unique)
    strange = message(channel=unique, record=["{", "u"], checked=True)
    await engine.foreign.group_send(engine.keys.group(unique), dict(strange))

    await engine.publish(unique, 1, options=PLAIN)

    await engine.received(unique, 1)
    assert engine.values(unique) == [1]


# streams


@garbage(GARBAGE)
async def test_undecodable_entry_is_logged_and_lost_with_those_before_it_and_no_others(
    engine: RedisBench, unique: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as those that were encrypted with a key that this process does not have."""
    await engine.publish(unique, 1)
    with engine.client() as client:
        stream, meta, _ = engine.keys.stream(unique)
        client.xadd(stream, {"m": content}, id="2-0")
        client.hset(meta, "s", 2)

    for _ in range(3):
        history = await engine.broker.history(unique)
        assert (history.publications, history.position.offset) == ((), 2)
    assert caplog.text.count("cannot be decoded") == 1

    position = await engine.publish(unique, 3)
    history = await engine.broker.history(unique)
    assert [p.offset for p in history.publications] == [3]
    assert history.position == position


async def test_follower_goes_on_after_an_undecodable_entry(engine: RedisBench, unique: str) -> None:
    await engine.publish(unique, 1)
    delivered: list[int] = []
    losses: list[bool] = []
    follower = StreamFollower(
        engine.broker, unique, lambda p: delivered.append(p.offset), lambda: losses.append(True)
    )
    await follower.start()
    with engine.client() as client:
        client.xadd(engine.keys.stream(unique)[0], {"m": b"garbage"}, id="2-0")
        client.hset(engine.keys.stream(unique)[1], "s", 2)

    async with asyncio.timeout(60):
        await follower.check()
    await engine.publish(unique, 3)
    await follower.check()

    assert (delivered, losses) == ([3], [True])


async def test_top_offset_that_is_not_a_number_fails_publishing_and_nothing_else(
    engine: RedisBench, unique: str
) -> None:
    position = await engine.publish(unique, 1)
    with engine.client() as client:
        client.hset(engine.keys.stream(unique)[1], "s", "many")

    with pytest.raises(EngineUnavailable):
        await engine.publish(unique, 2)

    other = await engine.publish(f"{unique}-other", 1)
    assert position is not None
    assert other == StreamPosition(1, position.epoch)


KEY_OF: Mapping[str, Callable[[RedisBench, str], str]] = {
    "stream": lambda bench, channel: bench.keys.stream(channel)[0],
    "meta": lambda bench, channel: bench.keys.stream(channel)[1],
    "presence": lambda bench, channel: bench.keys.presence(channel)[0],
    "expiry": lambda bench, channel: bench.keys.presence(channel)[1],
}


@pytest.mark.parametrize("kind", ["stream", "meta"])
async def test_key_of_another_type_fails_its_channel_only(
    engine: RedisBench, unique: str, kind: str
) -> None:
    await engine.publish(unique, 0)
    with engine.client() as client:
        client.set(KEY_OF[kind](engine, unique), "not mine")

    publications = several([f"{unique}-a", unique, f"{unique}-b"], range(6), KEPT)
    results = await engine.broker.publish_many(publications)

    failed = [isinstance(result, EngineUnavailable) for result in results]
    assert failed == [False, True, False, False, True, False]
    assert await engine.kept_values(f"{unique}-a") == [0, 3]
    assert await engine.kept_values(f"{unique}-b") == [2, 5]


async def test_publication_that_could_not_be_kept_takes_no_offset(
    engine: RedisBench, unique: str
) -> None:
    """An offset without a publication would be a gap that nothing fills."""
    before = await engine.publish(unique, 1)
    stream = KEY_OF["stream"](engine, unique)
    with engine.client() as client:
        client.set(stream, "not mine")
    with pytest.raises(EngineUnavailable):
        await engine.publish(unique, 2)

    assert await position_of(engine.broker, unique) == before


# presence and nodes


@garbage(GARBAGE)
async def test_strange_presence_fails_its_channel_only(
    engine: RedisBench, unique: str, content: bytes
) -> None:
    await engine.presence.add(unique, [INFO], 100)
    with engine.client() as client:
        client.hset(KEY_OF["presence"](engine, unique), "strange", content)

    with pytest.raises(EngineUnavailable, match="decoded"):
        await engine.presence.get(unique)

    await engine.presence.remove(unique, "strange")
    assert dict(await engine.presence.get(unique)) == {"C": INFO}


@pytest.mark.parametrize("kind", ["presence", "expiry"])
async def test_presence_key_of_another_type_fails_its_channel_only(
    engine: RedisBench, unique: str, kind: str
) -> None:
    with engine.client() as client:
        client.set(KEY_OF[kind](engine, unique), "not mine")

    with pytest.raises(EngineUnavailable):
        await engine.presence.add(unique, [INFO], 100)
    with pytest.raises(EngineUnavailable):
        await engine.presence.get(unique)

    await engine.presence.add(f"{unique}-other", [INFO], 100)
    assert dict(await engine.presence.get(f"{unique}-other")) == {"C": INFO}


@garbage(GARBAGE | {"fields of other types": packed(message(record=[1, 2, 3, "4", 5, 6, 7]))})
async def test_strange_node_is_left_out_and_logged_once(
    engine: RedisBench, unique: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.broker.subscribe(unique)
    with engine.client() as client:
        for entries, expiry in (engine.keys.nodes, engine.keys.seen):
            client.hset(entries, "strange", content)
            client.zadd(expiry, {"strange": 2**45})

    for _ in range(2):
        assert [node.uid for node in await engine.nodes()] == ["N1"]
        assert await engine.channels() == [unique]

    assert caplog.text.count("cannot be decoded") == 1


async def test_strange_answer_is_no_answer(engine: RedisBench) -> None:
    survey = "S1"
    await engine.cluster.ask(survey, data("1"), 100)
    await engine.cluster.answer(survey, b"one")
    with engine.client() as client:
        client.rpush(engine.keys.answers(survey), *GARBAGE.values())
    await engine.cluster.answer(survey, b"two")

    answers = await engine.cluster.answers(survey, 0)

    assert (answers[0], answers[-1]) == (b"one", b"two")
    assert await engine.cluster.answers(survey, len(answers)) == []


async def test_longer_entry_of_a_newer_node_does_not_hide_the_others(
    engine: RedisBench,
) -> None:
    """During an upgrade, nodes of two versions run at the same time."""
    fields = ["N9", "newer", "9.9", 1, 1, 1, 1, 1, 1, 1, 0.5, "something new"]
    with engine.client() as client:
        for entries, expiry in (engine.keys.nodes, engine.keys.seen):
            client.hset(entries, "N9", packed({"record": fields}))
            client.zadd(expiry, {"N9": 2**45})

    assert {"N1", "N9"} == {node.uid for node in await engine.nodes()}
