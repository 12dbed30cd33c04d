"""Maps for the site's code: what puts and removals do, and where they are refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

import realtime
from realtime import Map, MapEntry, MapResult, Position
from realtime.cluster.member import Member
from realtime.errors import BadRequest, NotAnObject, NotAvailable
from realtime.server_api import methods, methods_v2
from realtime.serving import serving
from realtime.testing import TestService
from tests.redis_server import RedisServer

OPTIONS = {
    "map": "recoverable",
    "namespaces": [
        {"name": "cursors", "map": "ephemeral"},
        {"name": "flags", "map": "persistent", "map_max_keys": 3},
        {"name": "objects", "map": "persistent", "publication_data_format": "json_object"},
        {"name": "plain", "history_size": 10, "history_lifetime": 60},
    ],
}


@pytest.fixture(params=["memory", "redis"])
def service(request: pytest.FixtureRequest, settings: Any, unique: str) -> Iterator[None]:
    """A service with this engine, reached from threads."""
    settings.REALTIME = OPTIONS
    if request.param == "memory":
        with TestService():
            yield
    else:
        redis: RedisServer = request.getfixturevalue("redis_server")
        settings.REALTIME = {**OPTIONS, "redis_url": redis.url, "redis_prefix": unique}
        yield


@pytest.fixture
def memory(settings: Any) -> Iterator[None]:
    settings.REALTIME = OPTIONS
    with TestService():
        yield


@pytest.fixture
def seats() -> Map:
    return realtime.map("seats")


def made(change: MapResult | None) -> MapResult:
    assert change is not None
    return change


def items(of: Map) -> dict[str, Any]:
    return {entry.key: entry.data for entry in of.items()}


def call(method: str, **params: Any) -> Any:
    """Call a method of the HTTP API."""

    async def work(member: Member) -> bytes:
        return await methods_v2.run(member, method, json.dumps(params).encode())

    return json.loads(serving.call(work))


@pytest.mark.usefixtures("service")
def test_map_has_the_newest_data_of_each_key(seats: Map) -> None:
    first = made(seats.put("a", {"user": 1}, tags={"row": "1"}))
    last = made(seats.put("b", {"user": 2}))
    seats.put("c", None)
    assert made(seats.remove("c")).kept
    again = made(seats.put("a", {"user": 3}))

    assert last.position is not None
    assert first == MapResult(True, Position(1, last.position.epoch), "", None)
    assert items(seats) == {"a": {"user": 3}, "b": {"user": 2}}
    entry = seats.get("a")
    assert entry is not None
    assert (entry.key, entry.data, entry.position) == ("a", {"user": 3}, again.position)
    assert (entry.tags, entry.info, entry.time > 0) == ({}, None, True)
    assert (seats.get("c"), seats.size()) == (None, 2)
    kept = [(each["key"], "removed" in each) for each in realtime.history("seats")]
    assert kept == [("a", False), ("b", False), ("c", False), ("c", True), ("a", False)]


@pytest.mark.usefixtures("service")
def test_change_that_is_not_made_says_why(seats: Map) -> None:
    first = made(seats.put("a", 1, version=5, once="k"))
    entry = seats.get("a")

    for reason, options in {
        "key_exists": {"if_new": True},
        "position_mismatch": {"expect": 7},
        "version": {"version": 5},
        "idempotency": {"once": "k"},
    }.items():
        assert made(seats.put("a", 2, **options)) == (False, first.position, reason, entry)  # type: ignore[arg-type]
    for change in (seats.put("b", 2, if_exists=True), seats.remove("b")):
        assert made(change) == (False, first.position, "key_not_found", None)
    assert made(seats.remove("a", expect=0)).reason == "position_mismatch"
    assert items(seats) == {"a": 1}


@pytest.mark.usefixtures("service")
def test_expected_position_is_that_of_the_key(seats: Map) -> None:
    seats.put("a", 1)
    seats.put("b", 1)
    entry = seats.get("a")
    assert entry is not None

    assert made(seats.put("a", 2, expect=entry.position)).kept
    assert not made(seats.put("a", 3, expect=entry.position)).kept
    assert made(seats.put("c", 1, expect=0)).kept
    assert made(seats.remove("a", expect=4)).reason == "position_mismatch"
    assert made(seats.remove("a", expect=3)).kept


@pytest.mark.usefixtures("service")
def test_ephemeral_map_has_no_positions_and_versions_all_the_same() -> None:
    cursors = realtime.map("cursors:1")
    assert cursors.put("a", [1, 2], version=2) == (True, None, "", None)
    assert made(cursors.put("a", [0, 0], version=1)).reason == "version"
    entry = cursors.get("a")
    assert entry is not None
    assert (entry.data, entry.position) == ([1, 2], None)
    with pytest.raises(NotAvailable):
        cursors.put("a", 1, expect=0)
    assert call("map_read_state", channel="cursors:1")["entries"][0]["key"] == "a"


@pytest.mark.usefixtures("service")
def test_full_map_takes_no_other_key() -> None:
    flags = realtime.map("flags:1")
    for number in range(3):
        flags.put(str(number), number)

    assert made(flags.put("3", 3)).reason == "full"
    assert made(flags.put("2", -2)).kept
    assert items(flags) == {"0": 0, "1": 1, "2": -2}


@pytest.mark.usefixtures("service")
async def test_coroutines_do_the_same(seats: Map) -> None:
    assert made(await seats.aput("a", 1, if_new=True)).kept
    assert made(await seats.aput("b", 1)).kept
    assert made(await seats.aremove("b", expect=2)).kept
    entry = await seats.aget("a")
    assert entry is not None
    assert entry.data == 1
    assert [each.key async for each in seats.aitems()] == ["a"]
    assert await seats.asize() == 1


@pytest.mark.usefixtures("memory")
def test_all_pages_are_walked(monkeypatch: pytest.MonkeyPatch, seats: Map) -> None:
    monkeypatch.setattr(realtime.server_api.operations, "MAX_PAGE", 2)
    for number in range(5):
        seats.put(str(number), number)

    async def read() -> list[MapEntry]:
        return [entry async for entry in seats.aitems()]

    assert [entry.key for entry in seats.items()] == [*"01234"]
    assert [entry.data for entry in asyncio.run(read())] == [*range(5)]
    call("map_clear", channel="seats")
    assert (items(seats), len(realtime.history("seats"))) == ({}, 10)


def test_entries_that_nobody_can_read_keep_no_others_from_being_cleared(
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    redis_server: RedisServer,
    unique: str,
    seats: Map,
) -> None:
    settings.REALTIME = {**OPTIONS, "redis_url": redis_server.url, "redis_prefix": unique}
    monkeypatch.setattr(realtime.server_api.operations, "MAX_PAGE", 2)
    for number in range(5):
        seats.put(str(number), number)
    with redis_server.client() as client:
        [entries] = client.scan_iter(f"{unique}:map:*")
        client.hset(entries, mapping={"0": "of another key", "1": "of another key"})

    call("map_clear", channel="seats")

    assert seats.size() == 2


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("key", ["", "a\0b", "k" * 256, "é" * 128], ids=repr)
def test_text_that_is_no_key_is_refused(seats: Map, key: str) -> None:
    for work in (lambda: seats.put(key, 1), lambda: seats.remove(key), lambda: seats.get(key)):
        with pytest.raises(BadRequest):
            work()
    assert items(seats) == {}


WRONG: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "both modes": ({"if_new": True, "if_exists": True}, ValueError),
    "negative ttl": ({"ttl": -1}, ValueError),
    "text as ttl": ({"ttl": "1"}, TypeError),
    "unknown option": ({"skip_history": True}, TypeError),
    "expects and is durable": ({"expect": 0, "durable": True}, ValueError),
    "number as key": ({"key": 5}, TypeError),
    "lone surrogate": ({"key": "\ud800"}, TypeError),
    "no JSON": ({"data": object()}, TypeError),
}


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("case", WRONG)
def test_wrong_argument_is_refused(seats: Map, case: str) -> None:
    options, error = WRONG[case]
    with pytest.raises(error):
        seats.put(**{"key": "a", "data": 1, **options})
    assert seats.size() == 0


@pytest.mark.usefixtures("memory")
def test_maps_take_changes_alone_and_other_channels_none(seats: Map) -> None:
    plain = realtime.map("plain:1")

    for work in (
        lambda: realtime.publish("seats", 1),
        lambda: realtime.broadcast(["plain:1", "seats"], 1),
        lambda: plain.put("a", 1),
        lambda: plain.remove("a"),
        lambda: plain.get("a"),
        lambda: next(plain.items()),
        lambda: plain.size(),
        lambda: call("publish", channel="seats", data=1),
        lambda: call("map_publish", channel="plain:1", key="a", data=1),
        lambda: call("map_publish", channel="seats", key="a", data=1, skip_history=True),
        lambda: call("map_read_stream", channel="plain:1"),
        lambda: call("map_clear", channel="plain:1"),
    ):
        with pytest.raises(NotAvailable):
            work()
    assert (seats.size(), realtime.history("plain:1")) == (0, [])


@pytest.mark.usefixtures("memory")
def test_data_format_is_for_puts_and_not_for_removals() -> None:
    objects = realtime.map("objects:1")
    with pytest.raises(NotAnObject):
        objects.put("a", 1)
    objects.put("a", {})
    assert made(objects.remove("a")).kept


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("memory")
def test_transaction_makes_the_change_after_the_commit(seats: Map) -> None:
    with transaction.atomic():
        assert seats.put("a", 1) is None
        assert made(seats.put("b", 1, on_commit=False, expect=0)).kept
        assert items(seats) == {"b": 1}
        with pytest.raises(ValueError, match="on_commit=False"):
            seats.put("c", 1, expect=0)
    assert items(seats) == {"a": 1, "b": 1}


@pytest.mark.usefixtures("service")
def test_http_api_of_today_has_the_six_methods() -> None:
    epoch = call("map_publish", channel="seats", key="a", data={"user": 1})["epoch"]
    position = {"offset": 1, "epoch": epoch}
    refused = call("map_publish", channel="seats", key="a", data=2, key_mode="if_new")
    current = refused.pop("current")
    assert refused == {**position, "suppressed": True, "suppress_reason": "key_exists"}
    assert (current.pop("time") > 0, current) == (
        True,
        {"key": "a", "data": {"user": 1}, "offset": 1},
    )
    late = call("map_publish", channel="seats", key="a", data=2, expect={"offset": 9})
    assert late["suppress_reason"] == "position_mismatch"
    absent = call("map_remove", channel="seats", key="b")
    assert absent == {**position, "suppressed": True, "suppress_reason": "key_not_found"}
    call("map_publish", channel="seats", key="b", data=2, ttl=600, tags={"x": "y"})

    page = call("map_read_state", channel="seats", limit=1)
    assert ([each["key"] for each in page["entries"]], page["cursor"]) == (["a"], "a")
    last = call("map_read_state", channel="seats", limit=1, cursor="a")
    assert last["entries"][0]["tags"] == {"x": "y"}
    assert (last["offset"], last["epoch"], "cursor" in last) == (2, epoch, False)
    one = call("map_read_state", channel="seats", key="b")
    assert [each["data"] for each in one["entries"]] == [2]
    assert call("map_read_state", channel="seats", key="none")["entries"] == []
    assert call("map_stats", channel="seats") == {"num_keys": 2}

    assert call("map_remove", channel="seats", key="b") == {"offset": 3, "epoch": epoch}
    stream = call("map_read_stream", channel="seats", limit=-1, since_offset=1)
    assert [each.get("removed", False) for each in stream["entries"]] == [False, True]
    assert (stream["offset"], stream["epoch"]) == (3, epoch)
    assert call("map_clear", channel="seats") == {}
    assert call("map_stats", channel="seats") == {"num_keys": 0}


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("map_publish", {"key": "a", "data": 1, "key_mode": "if_expired"}),
        ("map_publish", {"key": "a", "data": 1, "key_mode": "if_new\n"}),
        ("map_publish", {"key": "a", "data": 1, "ttl": -1}),
        ("map_publish", {"key": "a\0", "data": 1}),
        ("map_publish", {"key": "", "data": 1}),
        ("map_publish", {"key": "a"}),
        ("map_remove", {}),
        ("map_read_state", {"limit": -1}),
        ("map_read_state", {"key": "k" * 300}),
    ],
    ids=str,
)
def test_http_api_refuses_what_it_cannot_use(method: str, params: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        call(method, channel="seats", **params)


@pytest.mark.usefixtures("memory")
def test_older_dialect_shows_keys_in_a_history(seats: Map) -> None:
    seats.put("a", 1)
    seats.remove("a")

    def read(member: Member) -> Any:
        number = methods.METHOD_NUMBERS["history"]
        return methods.run(member, number, b'{"channel": "seats"}')

    put, removal = json.loads(serving.call(read))["publications"]
    assert (put["key"], "removed" in put, removal["removed"]) == ("a", False, True)
