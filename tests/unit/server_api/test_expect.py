"""`expect`: a publication that is made only if nothing was published in between, at every door."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

import realtime
from realtime import Position
from realtime.cluster.member import Member
from realtime.errors import BadRequest, NotAvailable
from realtime.server_api import methods_v2
from realtime.serving import serving
from realtime.testing import TestService, capture
from tests.redis_server import RedisServer

HISTORY = {"history_size": 1000, "history_lifetime": 60}
OPTIONS = {
    **HISTORY,
    "namespaces": [{"name": "plain"}, {"name": "rows", "durable": True, **HISTORY}],
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


def published(channel: str, data: object, **options: Any) -> Position:
    position = realtime.publish(channel, data, **options)
    assert position is not None
    return position


def values(channel: str) -> list[Any]:
    return [entry["data"] for entry in realtime.history(channel)]


@pytest.mark.usefixtures("service")
def test_publication_is_made_only_at_the_position_that_is_expected() -> None:
    first = published("steps", 1, expect=0)
    assert (first.offset, first.kept) == (1, True)
    assert published("steps", 2, expect=first) == (2, first.epoch)
    late = published("steps", 3, expect=first)

    assert (late, late.kept) == ((2, first.epoch), False)
    assert not published("steps", 3, expect=Position(2, "another")).kept
    assert published("steps", 3, expect=Position(2, "")).kept
    assert not published("steps", 4, expect=2**64).kept
    assert values("steps") == [1, 2, 3]
    broadcast = realtime.broadcast(["steps", "others"], 4, expect=3)
    assert [position and position.kept for position in broadcast] == [True, False]


@pytest.mark.usefixtures("service")
def test_key_and_version_say_whether_they_kept_it_too() -> None:
    first = published("steps", 1, once="k", version=5)
    assert published("steps", 2, once="k", expect=1) == first
    assert not published("steps", 2, once="k").kept
    assert not published("steps", 2, version=4, expect=1).kept
    assert published("steps", 2, version=6, expect=1).kept


@pytest.mark.usefixtures("service")
def test_writers_that_append_lose_no_step() -> None:
    """Each appends to what it has seen, and looks at the answer where another was first."""
    writers, steps = 10, 10

    def write(writer: int) -> None:
        known, made = realtime.position("steps"), 0
        while made < steps:
            known = published("steps", writer * steps + made, expect=known)
            made += known.kept

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    kept = realtime.history("steps")
    assert [entry["offset"] for entry in kept] == [*range(1, writers * steps + 1)]
    data = [entry["data"] for entry in kept]
    assert sorted(data) == [*range(writers * steps)]
    for writer in range(writers):
        own = [value for value in data if value // steps == writer]
        assert own == sorted(own)


@pytest.mark.usefixtures("memory")
async def test_coroutine_gets_the_answer_too() -> None:
    first = await realtime.apublish("steps", 1, expect=0)
    again = await realtime.apublish("steps", 1, expect=0)
    [both] = await realtime.abroadcast(["steps"], 1, expect=1)
    assert [each and each.kept for each in (first, again, both)] == [True, False, True]


def test_position_is_a_pair_whatever_it_keeps() -> None:
    position = Position(1, "E")
    position.kept = False

    assert position == (1, "E") == Position(1, "E")
    assert Position(1, "E").kept
    assert [copy.copy(position).kept, pickle.loads(pickle.dumps(position)).kept] == [False, False]
    assert msgspec.json.encode(position) == b'[1,"E"]'


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no history": ({"channel": "plain:a"}, NotAvailable, "108"),
    "skips history": ({"skip_history": True}, NotAvailable, "108"),
    "durable": ({"durable": True}, ValueError, "leave out durable and at"),
    "scheduled": ({"at": timedelta(hours=1)}, ValueError, "leave out durable and at"),
    "durable channel": ({"channel": "rows:a"}, ValueError, "pass durable=False"),
    "negative": ({"expect": -1}, ValueError, "0 or more"),
    "text": ({"expect": "1"}, TypeError, "whole number"),
    "unknown option": ({"expected": 1}, TypeError, "unexpected keyword argument 'expected'"),
}


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("is_async", [False, True], ids=["publish", "apublish"])
def test_call_without_a_sensible_answer_is_refused(case: str, is_async: bool) -> None:
    options, error, words = REFUSED[case]
    arguments = {"channel": "steps", "data": 1, "expect": 0, **options}
    call: Callable[..., Any] = async_to_sync(realtime.apublish) if is_async else realtime.publish
    with pytest.raises(error, match=words):
        call(**arguments)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "call",
    [
        lambda: realtime.publish_many([("steps", 1)], expect=0),  # type: ignore[call-arg]
        lambda: realtime.publish_many([("steps", 1)], version=1),  # type: ignore[call-arg]
        lambda: asyncio.run(realtime.apublish("steps", 1, on_commit=True)),  # type: ignore[call-arg]
    ],
    ids=["many", "version of many", "async commit"],
)
def test_functions_have_their_own_options_only(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call()


@pytest.mark.usefixtures("memory")
@pytest.mark.django_db(transaction=True)
def test_answer_does_not_wait_for_a_commit() -> None:
    with transaction.atomic():
        with pytest.raises(ValueError, match="pass on_commit=False"):
            realtime.publish("steps", 1, expect=0)
        assert published("steps", 1, expect=0, on_commit=False).kept
    assert published("rows:a", 1, expect=0, durable=False).kept


def post(method: str, **params: object) -> Any:
    async def run(member: Member) -> bytes:
        return await methods_v2.run(member, method, msgspec.json.encode(params))

    return msgspec.json.decode(serving.call(run))


@pytest.mark.usefixtures("memory")
def test_http_api_says_what_was_not_kept_to_those_who_expect() -> None:
    first = post("publish", channel="steps", data=1, expect={"offset": 0}, idempotency_key="k")
    late = post("publish", channel="steps", data=2, expect={"offset": 0, "epoch": first["epoch"]})

    assert late == {**first, "kept": False} == {"offset": 1, "epoch": first["epoch"], "kept": False}
    assert post("publish", channel="steps", data=2, idempotency_key="k") == first
    both = post("broadcast", channels=["steps", "others"], data=2, expect={"offset": 1})
    assert [each["result"].get("kept", True) for each in both["responses"]] == [True, False]
    for channel, expect in (("plain:a", {"offset": 0}), ("steps", {"offset": 2**64})):
        with pytest.raises((NotAvailable, BadRequest)):
            post("publish", channel=channel, data=1, expect=expect)


def test_outbox_has_what_an_engine_keeps(settings: Any) -> None:
    settings.REALTIME = OPTIONS
    with capture() as outbox:
        assert published("steps", 1, expect=Position(7, "E")) == (8, "E")
        late = published("steps", 2, expect=7)
        realtime.publish("steps", 3)
        again = published("steps", 4, expect=9)

    assert (late, late.kept) == ((8, "E"), False)
    assert (again, again.kept) == ((10, "E"), True)
    assert outbox == [("steps", 1), ("steps", 3), ("steps", 4)]


@pytest.mark.usefixtures("memory")
async def test_outbox_beside_a_service_asks_its_engine() -> None:
    with capture() as outbox:
        first = await realtime.apublish("steps", 1, expect=0)
        late = await realtime.apublish("steps", 2, expect=0)
    assert [each and each.kept for each in (first, late)] == [True, False]
    assert outbox == [("steps", 1)]
