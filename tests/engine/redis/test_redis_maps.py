"""Maps over Redis: what is kept there, and what remains of it when parts are lost."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.maps import KeyMode
from realtime.engine.once import Once
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.engine import RedisStore
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.engine.bench import KEPT
from tests.engine.conftest import OpenRedisBench
from tests.engine.map_bench import (
    EPHEMERAL,
    KINDS_OF_MAPS,
    PERSISTENT,
    RECOVERABLE,
    change,
    entries,
    make,
)
from tests.engine.redis_bench import KINDS, MODEL, SHARDS, RedisBench
from tests.redis_server import RedisServer
from tests.unit.parts import data, position_of

SPARE_KEYS = ("a", "b", "c")


def names_of(bench: RedisBench, channel: str) -> list[str]:
    """What the keys of a map, and of its lifetimes, are without the prefix."""
    return sorted(
        key.removeprefix(f"{bench.prefix}:")
        for key in bench.stored_keys()
        if ":map" in key and (channel in key or key.endswith(":map.expiry"))
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_map_leaves_nothing_when_it_is_empty(open_redis: OpenRedisBench, kind: str) -> None:
    bench = await open_redis(kind)
    for options in KINDS_OF_MAPS:
        for key in SPARE_KEYS:
            await make(bench, options.map, key, 1, options, ttl=100)
        assert names_of(bench, options.map)
        for key in SPARE_KEYS:
            await make(bench, options.map, key, None, options)
        assert names_of(bench, options.map) == []


@pytest.mark.parametrize("kind", [*KINDS, MODEL])
@pytest.mark.parametrize("mode", ["", "if_expired"], ids=["removed", "expired"])
async def test_an_empty_map_keeps_its_position_as_long_as_any_stream(
    open_redis: OpenRedisBench, kind: str, mode: KeyMode
) -> None:
    bench = await open_redis(kind, meta=MetaSettings(lifetime=3600))
    await make(bench, "plain", "", 1, KEPT)
    [meta] = [key for key in bench.stored_keys() if key.endswith(":meta:plain")]
    expected = left(bench, meta)
    meta = bench.keys.stream("m")[1]
    for key in SPARE_KEYS[:2]:
        await make(bench, "m", key, 1, PERSISTENT, ttl=1 if mode else None)
        await make(bench, "m", "eternal", 1, PERSISTENT)
    if mode:
        await bench.elapse(2)

    await make(bench, "m", "eternal", None, PERSISTENT)
    await make(bench, "m", "a", None, PERSISTENT, key_mode=mode)
    assert left(bench, meta) == -1  # "b" is there
    await make(bench, "m", "b", None, PERSISTENT, key_mode=mode)
    assert abs(left(bench, meta) - expected) <= 2

    await make(bench, "m", "b", None, PERSISTENT)  # is not there
    assert left(bench, meta) > 0
    await make(bench, "m", "a", 2, PERSISTENT)
    assert left(bench, meta) == -1


@pytest.mark.parametrize("kind", [*KINDS, MODEL])
async def test_a_map_that_was_forgotten_begins_with_another_epoch(
    open_redis: OpenRedisBench, kind: str
) -> None:
    bench = await open_redis(kind, meta=MetaSettings(lifetime=200))
    first = await make(bench, "m", "a", 1, PERSISTENT)
    await make(bench, "m", "a", None, PERSISTENT)
    await bench.elapse(300)
    assert bench.keys.stream("m")[1] not in bench.stored_keys()

    second = await make(bench, "m", "a", 2, PERSISTENT)

    assert first.position is not None
    assert second.position is not None
    assert second.position.offset == 1
    assert second.position.epoch != first.position.epoch


@pytest.mark.parametrize("kind", [*KINDS, MODEL])
async def test_a_renewal_for_ever_keeps_the_position_for_ever(
    open_redis: OpenRedisBench, kind: str
) -> None:
    bench = await open_redis(kind, meta=MetaSettings(lifetime=200))
    await make(bench, "m", "a", 1, PERSISTENT, ttl=50)
    await make(bench, "m", "a", 1, PERSISTENT, key_mode="renew")
    assert left(bench, bench.keys.stream("m")[1]) == -1
    await bench.elapse(300)
    await make(bench, "m", "b", 2, PERSISTENT)
    assert await entries(bench, "m") == {"a": "1", "b": "2"}


def left(bench: RedisBench, key: str) -> int:
    """The seconds for which a key is kept; -1: for ever."""
    with bench._client_of(key) as client:
        return int(client.ttl(key))


async def test_a_map_is_in_the_slot_of_its_stream(
    lone_cluster: RedisServer, open_redis: OpenRedisBench
) -> None:
    bench = await open_redis("redis-partitions")
    channels = [f"channel{number}" for number in range(20)]
    for channel in channels:
        await make(bench, channel, "a", 1)

    for channel in channels:
        found = {key for key in bench.stored_keys() if key.endswith(f":{channel}")}
        assert len(found) == 4  # stream, meta, entries and keys
        with lone_cluster.client() as client:
            assert len({client.execute_command("CLUSTER", "KEYSLOT", key) for key in found}) == 1


@pytest.mark.parametrize("reads", [False, True], ids=["a put is first", "a reader is first"])
async def test_entries_go_with_a_lost_stream(own: RedisBench, reads: bool) -> None:
    await own.broker.subscribe("m")
    old = await position_of(own.broker, "m")
    for key in SPARE_KEYS:
        await make(own, "m", key, 1)
    with own.client() as client:
        client.delete("p:meta:m")
    if reads:
        page = await own.maps.page("m", limit=0)
        assert (page.entries, page.cursor, page.size) == ((), "", 0)
        assert (await own.maps.get("m", "a")).entries == ()

    put = await make(own, "m", "b", 2, key_mode="if_new")

    assert put.kept
    assert put.position is not None
    assert put.position.offset == 1
    assert put.position.epoch != old.epoch
    assert await entries(own, "m") == {"b": "2"}
    assert await own.kept("m") == [1]
    await own.elapse(61)
    assert await own.maps.due(10) == [("m", "b")]
    assert (await make(own, "m", "b", key_mode="if_expired")).kept
    assert names_of(own, "m") == []
    assert [p.key for p in await own.received("m", 5)] == [*SPARE_KEYS, "b", "b"]


async def test_an_ephemeral_map_needs_no_stream(own: RedisBench) -> None:
    await make(own, "m", "a", 1, EPHEMERAL)

    assert await entries(own, "m") == {"a": "1"}
    with own.client() as client:
        assert not client.exists("p:stream:m")
        assert (client.hget("p:meta:m", "s")) is None


async def test_strange_entries_are_left_out(
    own: RedisBench, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("a", "b", "c", "d", "e"):
        await make(own, "m", key, 1, PERSISTENT)
    with own.client() as client:
        client.hset("p:map:m", "a", b"")
        client.hset("p:map:m", "b", b"1:2:0:3::0:" + b"\xc1\xc1")
        client.hset("p:map:m", "d", b"x:y:z:0::999:")

    first = await own.maps.page("m", limit=2)
    assert (first.entries, first.cursor, first.size) == ((), "b", 5)
    rest = await own.maps.page("m", first.cursor, 2)
    assert [p.key for p in rest.entries] == ["c"]
    assert "cannot be decoded" in caplog.text
    for key in ("a", "b", "d"):
        with contextlib.suppress(EngineUnavailable):  # the entry that it met has no form
            await make(own, "m", key, 2, PERSISTENT, key_mode="if_new")
        assert (await make(own, "m", key, 3, PERSISTENT)).kept
    assert await entries(own, "m") == {"a": "3", "b": "3", "c": "1", "d": "3", "e": "1"}


async def test_strange_lifetimes_are_left_out(own: RedisBench) -> None:
    await make(own, "m", "a", 1, ttl=1)
    with own.client() as client:
        client.zadd("p:map.expiry", {b"": 1, b"x:y": 2, b"1:\xffa": 3})
        client.zadd("p:map.expiry", {b"1:\xff%d" % number: 4 for number in range(10)})
    await own.elapse(2)

    await own.maps.due(10)
    assert await own.maps.due(10) == [("m", "a")]


async def test_a_lifetime_stays_while_the_slot_of_its_map_moves(own: RedisBench) -> None:
    """The script that looks for lifetimes sees no map then, as one that was lost."""
    for key in ("a", "b"):
        await make(own, "m", key, 1, ttl=1)
    await own.elapse(2)
    with own.client() as client:
        client.rename("p:map:m", "elsewhere")
        assert await own.maps.due(10) == [("m", "a"), ("m", "b")]
        client.rename("elsewhere", "p:map:m")
    await own.elapse(2)
    assert await own.maps.due(10) == [("m", "a"), ("m", "b")]
    assert (await make(own, "m", "a", key_mode="if_expired")).kept

    with own.client() as client:
        client.delete("p:map:m")
    assert not (await make(own, "m", "b", key_mode="if_expired")).kept
    assert await own.maps.due(10) == []


async def test_an_encrypting_layer_hides_entries(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    layer = RedisChannelLayer([server.url], prefix="p", symmetric_encryption_keys=["secret"])
    store = RedisStore(layer.bus, "p")
    info = ClientInfo("hidden user", "C1")
    put = Publication(data('"hidden data"'), info, tags={"t": "hidden tag"}, key="shown")
    await store.broker.publish(Outgoing("m", put, RECOVERABLE))

    assert store.maps is not None
    [entry] = (await store.maps.page("m")).entries
    assert (entry.data, entry.info, entry.key) == (put.data, info, "shown")
    with server.client() as client:
        content = client.hgetall("p:map:m")
    assert b"shown" in content
    assert b"hidden" not in b"".join(content.values())


def test_a_process_without_a_loop_has_maps(redis_server: RedisServer, unique: str) -> None:
    """Its coroutines do not suspend."""
    layer = RedisChannelLayer([redis_server.url], prefix=unique)
    store = RedisStore(layer.bus, unique)
    maps = store.maps
    assert maps is not None

    def made(coroutine: object) -> object:
        with pytest.raises(StopIteration) as stop:
            coroutine.send(None)  # type: ignore[attr-defined]
        return stop.value.value

    for key in SPARE_KEYS:
        made(store.broker.publish(change("m", key, 1, ttl=1000)))
    page = made(maps.page("m"))
    assert [p.key for p in page.entries] == [*SPARE_KEYS]  # type: ignore[attr-defined]
    assert made(maps.due(5)) == []
    layer.bus.close_blocking()


async def test_what_is_due_elsewhere_is_named_while_a_server_is_away(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench
) -> None:
    servers = [own_redis(), own_redis()]
    bench = await open_redis(SHARDS, servers=servers, prefix="p")
    channels = [f"m{number}" for number in range(10)]
    for channel in channels:
        await make(bench, channel, "a", 1, ttl=1)
    await bench.elapse(2)
    assert sorted(map(str, await bench.maps.due(100))) == [str((name, "a")) for name in channels]

    servers[1].kill()

    away = [channel for channel in channels if bench.broker.shard(channel) == 1]
    *named, reason = await bench.maps.due(100)
    assert sorted(map(str, named)) == [str((c, "a")) for c in channels if c not in away]
    assert isinstance(reason, EngineUnavailable)
    servers[0].kill()
    with pytest.raises(EngineUnavailable):
        await bench.maps.due(100)


async def test_a_full_server_refuses_puts_and_changes_nothing(own: RedisBench) -> None:
    await make(own, "m", "a", 1)
    before = await own.maps.page("m")
    with own.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(EngineUnavailable):
            await make(own, "m", "a", 2)
        client.config_set("maxmemory", "0")

    assert await own.maps.page("m") == before
    put = await make(own, "m", "a", 3)
    assert put.position == StreamPosition(2, (await position_of(own.broker, "m")).epoch)


async def test_a_node_of_an_older_version_reads_the_changes(own: RedisBench) -> None:
    """It finds publications like others, and ignores key and removal."""
    await make(own, "m", "a", '"x"', KEPT)
    await make(own, "m", "a", None, KEPT)

    with own.client() as client:
        messages = [fields[b"m"] for _, fields in client.xrange("p:stream:m")]
    contents = [own.layer.deserialize(message) for message in messages]
    assert [json.loads(content["record"][0]) for content in contents] == ["x", None]
    assert [content["more"]["key"] for content in contents] == ["a", "a"]


@pytest.mark.parametrize("options", KINDS_OF_MAPS, ids=lambda options: options.map)
async def test_a_server_that_was_left_takes_no_change(
    own: RedisBench, monkeypatch: pytest.MonkeyPatch, options: ChannelOptions
) -> None:
    """Its seal refuses changes, as it does publications."""
    monkeypatch.setattr(own.layer.bus.servers, "asks_sentinels", lambda shard: True)
    await make(own, "m", "a", 1, options, once=Once("first"))
    with own.client() as client:
        client.set("p:seal", client.info("replication")["master_replid"])
        for once in (None, Once("o")):
            with pytest.raises(EngineUnavailable, match="READONLY"):
                await make(own, "m", "a", 2, options, once=once)
        client.delete("p:seal")

    assert await entries(own, "m") == {"a": "1"}


async def test_a_position_of_one_run_of_the_server_is_expected(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench
) -> None:
    bench = await open_redis(servers=[own_redis()], meta=MetaSettings(epoch_per_run=True))
    first = await make(bench, "m", "a", 1)
    second = await make(bench, "m", "a", 2, expect=first.position)

    assert second.kept
    assert (await bench.maps.get("m", "a")).position == second.position
    assert await position_of(bench.broker, "m") == second.position


async def test_a_change_is_made_after_the_one_before_it(own: RedisBench) -> None:
    """Without the first one, the second is refused: the two keep their order."""
    for options in KINDS_OF_MAPS:
        first, second = Once(f"1{options.map}"), Once(f"2{options.map}")
        with pytest.raises(EngineUnavailable, match="BEHIND"):
            await make(own, options.map, "a", 2, options, once=second, after=first)
        assert (await make(own, options.map, "a", 1, options, once=first)).kept
        assert (await make(own, options.map, "a", 2, options, once=second, after=first)).kept
        assert await entries(own, options.map) == {"a": "2"}
