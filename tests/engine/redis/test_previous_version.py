"""A rolling deployment: nodes of the version before run their own scripts on the same Redis.

`previous/` has these scripts as that version ran them. Entries whose form is the same in both
versions are recorded as that version wrote them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import redis

from realtime.config.options import ChannelOptions
from realtime.engine import records
from realtime.engine.base import Outgoing
from realtime.engine.nodes import NodeStatus
from realtime.engine.once import Once
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.engine.bench import PLAIN
from tests.engine.redis_bench import RedisBench
from tests.unit.parts import data, eventually, position_of

SCRIPTS = Path(__file__).with_name("previous")
LONG = ChannelOptions(history_size=100, history_lifetime=100)


class PreviousNode:
    """What a node of the version before does with one stream."""

    def __init__(self, engine: RedisBench, channel: str, client: redis.Redis) -> None:
        self._channel = channel
        self._group_channel = engine.group_channel(channel)
        self._keys = engine.keys.stream(channel)
        self._append, self._read = (
            client.register_script((SCRIPTS / f"{name}.lua").read_text())
            for name in ("append", "read")
        )

    def publish(self, value: int) -> tuple[int, str]:
        """Publish a number; returns offset and epoch."""
        message = msgpack.packb(
            {
                "record": [str(value), f"u{value}"],
                "checked": True,
                "type": "realtime.publication",
                "channel": self._channel,
            }
        )
        size, lifetime = LONG.history_size, LONG.history_lifetime
        arguments: list[bytes | str | int] = [message, size or 0, lifetime or 0, 0, "old", "0"]
        arguments += [self._group_channel, f"u{value}"]
        offset, epoch = self._append(keys=self._keys, args=arguments)
        return offset, epoch.decode()

    def read(self, start: int) -> tuple[int, str, list[tuple[int, int]]]:
        """Read from an offset on: top offset, epoch, and offset and number of each publication."""
        arguments: list[bytes | str | int] = [start, 0, "old", "0"]
        top, epoch, entries, _ = self._read(keys=self._keys, args=arguments)
        publications = []
        for entry, fields in entries:
            message = msgpack.unpackb(fields[1])
            publications.append((int(entry.partition(b"-")[0]), int(message["record"][0])))
        return top, epoch.decode(), publications


async def test_nothing_is_lost_while_both_versions_publish_and_read(
    engine: RedisBench, unique: str
) -> None:
    await engine.broker.subscribe(unique)
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        for value in range(1, 31):
            if value % 3:
                await engine.publish(unique, value, options=LONG)
            else:
                previous.publish(value)

        history = await engine.broker.history(unique)
        top, epoch, publications = previous.read(1)
        await eventually(lambda: len(engine.values(unique)) == 30)

    everything = list(range(1, 31))
    old = [value % 3 == 0 for value in everything]
    assert [p.time == 0 for p in history.publications] == old
    assert [p.uid for p in history.publications] == [f"u{value}" for value in everything]
    for offset in (3, 4):
        assert (await engine.broker.history(unique, offset)).previous_uid == f"u{offset - 1}"
    reverse = await engine.broker.history(unique, 3, 2, reverse=True)
    assert [p.offset for p in reverse.publications] == [3, 2]
    assert [(p.offset, int(p.data.raw)) for p in history.publications] == publications
    assert [value for _, value in publications] == everything
    assert [offset for offset, _ in publications] == everything
    assert (history.position.offset, history.position.epoch) == (top, epoch)
    assert engine.values(unique) == everything


@pytest.mark.parametrize("first", ["previous", "this"])
async def test_position_of_one_version_is_recovered_by_the_other(
    engine: RedisBench, unique: str, first: str
) -> None:
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        if first == "previous":
            position = previous.publish(1)
            await engine.publish(unique, 2, options=LONG)
        else:
            made = await engine.publish(unique, 1, options=LONG)
            assert made is not None
            position = made.offset, made.epoch
            previous.publish(2)

        history = await engine.broker.history(unique, position[0] + 1)
        read = previous.read(position[0] + 1)

    assert position == (1, history.position.epoch)
    assert [int(p.data.raw) for p in history.publications] == [2]
    assert read == (2, position[1], [(2, 2)])


@pytest.mark.parametrize("first", ["previous", "this"])
async def test_epoch_of_an_unused_channel_is_the_same(
    engine: RedisBench, unique: str, first: str
) -> None:
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        if first == "previous":
            epoch = previous.read(1)[1]
            position = await position_of(engine.broker, unique)
        else:
            position = await position_of(engine.broker, unique)
            epoch = previous.read(1)[1]

    assert (position.offset, position.epoch) == (0, epoch)


ANN = data('{"name":"Ann"}')
RECORDED: list[tuple[str, dict[str, Any], Callable[[dict[str, Any]], object], object]] = [
    (
        "82a67265636f726492a77b226e223a317da27531a7636865636b6564c3",
        records.of_publication(Publication(data('{"n":1}'), uid="u1")),
        lambda message: records.to_publication(message, 7),
        Publication(data('{"n":1}'), None, 7, "u1"),
    ),
    (
        "81a67265636f726493ab7b20226e22203a2031207da2753294a23137a143ae"
        "7b226e616d65223a22416e6e227dc0",
        records.of_publication(
            Publication(data('{ "n" : 1 }'), ClientInfo("17", "C", ANN), uid="u2")
        ),
        lambda message: records.to_publication(message, 7),
        Publication(data('{ "n" : 1 }'), ClientInfo("17", "C", ANN), 7, "u2"),
    ),
    (
        "82a67265636f726494a23137a143ae7b226e616d65223a22416e6e227da135a7636865636b6564c3",
        records.of_client(ClientInfo("17", "C", ANN, data("5"))),
        records.to_client,
        ClientInfo("17", "C", ANN, data("5")),
    ),
    (
        "81a67265636f726499a24e31a56669727374a5302e312e30010203040506",
        records.of_node(NodeStatus("N1", "first", "0.1.0", 1, 2, 3, 4, 5, 6)),
        lambda message: records.to_status(message, 0.0, alive=True),
        NodeStatus("N1", "first", "0.1.0", 1, 2, 3, 4, 5, 6),
    ),
    (
        "81a67265636f726491a77b2261223a317d",
        records.of_answer(b'{"a":1}'),
        records.to_answer,
        b'{"a":1}',
    ),
]


@pytest.mark.parametrize(
    ("recorded", "written", "read", "meant"),
    RECORDED,
    ids=["publication", "publication with info", "client", "node", "answer"],
)
def test_entry_has_the_form_of_the_version_before(
    recorded: str,
    written: dict[str, Any],
    read: Callable[[dict[str, Any]], object],
    meant: object,
) -> None:
    entry = bytes.fromhex(recorded)
    message = msgpack.unpackb(entry)
    # fields that came later are at the end, where the version before does not look
    known = {**written, "record": written["record"][: len(message["record"])]}

    assert msgpack.packb(known) == entry
    assert read(message) == meant


async def test_no_step_is_lost_between_one_who_expects_the_top_and_older_versions(
    engine: RedisBench, unique: str
) -> None:
    """Their script knows no expected top, and moves it."""
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        top = StreamPosition(*previous.publish(1))
        first = await engine.broker.publish(expecting(unique, 2, top))
        previous.publish(3)
        refused = await engine.broker.publish(expecting(unique, 4, first.position))
        last = await engine.broker.publish(expecting(unique, 5, refused.position))
        publications = previous.read(1)[2]

    assert [first.kept, refused.kept, last.kept] == [True, False, True]
    assert refused.position == StreamPosition(3, top.epoch)
    assert publications == [(1, 1), (2, 2), (3, 3), (4, 5)]


def expecting(channel: str, value: int, expect: StreamPosition | None) -> Outgoing:
    """A publication that expects a top."""
    return Outgoing(channel, Publication(data(str(value)), uid=f"u{value}"), LONG, expect=expect)


def now_ms(client: redis.Redis) -> int:
    """Return the time by the clock of Redis."""
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


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
            await engine.broker.publish(Outgoing(unique, publication, LONG, Once("k")))
        ).position

        while (passed := pubsub.get_message(timeout=10)) is None or passed["type"] != "message":
            pass  # bounded by the timeout of the test
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
    outgoing = Outgoing(unique, Publication(data("2"), uid="u"), LONG, Once("k"))
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        previous.publish(10)
        first = (await engine.broker.publish(outgoing)).position
        previous.publish(30)

    assert (await engine.broker.publish(outgoing)).position == first
    assert first == StreamPosition(2, (await position_of(engine.broker, unique)).epoch)


async def test_keys_of_idempotency_expire(engine: RedisBench, unique: str) -> None:
    for options in (LONG, PLAIN):
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
    with engine.client() as client:
        await engine.publish(unique, 10)
        PreviousNode(engine, unique, client).publish(20)
        top = await position_of(engine.broker, unique)
        first, second = [await position_of(engine.broker, unique, now_ms(client)) for _ in range(2)]

    assert first == StreamPosition(0, top.epoch)
    assert second == top


async def test_position_at_a_time_leaves_out_publications_of_older_versions(
    engine: RedisBench, unique: str
) -> None:
    """They may be later: nobody knows."""
    with engine.client() as client:
        previous = PreviousNode(engine, unique, client)
        await engine.publish(unique, 10)
        at = now_ms(client)
        while now_ms(client) == at:
            pass
        previous.publish(20)
        previous.publish(30)
        await engine.publish(unique, 40)

    assert (await position_of(engine.broker, unique, at)).offset == 1
