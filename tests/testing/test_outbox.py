"""The outbox: what is published, without a service and without a database."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from typing import Any

import pytest

import realtime
from realtime import MapResult
from realtime.errors import BadRequest, NamespaceNotFound, NotServing
from realtime.testing import Published, TestService, capture

pytestmark = pytest.mark.usefixtures("options")


def test_outbox_has_what_was_published_oldest_first_as_clients_get_it() -> None:
    with capture() as outbox:
        realtime.publish("news", {"pair": (1, 2)})
        realtime.broadcast(["news", "chat:lobby"], "hi")
    assert outbox == [Published("news", {"pair": [1, 2]}), ("news", "hi"), ("chat:lobby", "hi")]
    assert outbox.data("news") == [{"pair": [1, 2]}, "hi"]


def test_cleared_outbox_is_empty_and_goes_on() -> None:
    with capture() as outbox:
        realtime.publish("news", 1)
        outbox.clear()
        realtime.publish("news", 2)
    assert outbox == [("news", 2)]
    assert repr(outbox) == "[Published(channel='news', data=2)]"


def test_publication_from_a_thread_is_in_the_outbox() -> None:
    with capture() as outbox:
        thread = threading.Thread(target=realtime.publish, args=("news", 1))
        thread.start()
        thread.join()
    assert outbox == [("news", 1)]


async def test_publication_from_a_coroutine_is_in_the_outbox() -> None:
    with capture() as outbox:
        await realtime.apublish("news", 1)
        await realtime.abroadcast(["a", "b"], 2)
    assert outbox == [("news", 1), ("a", 2), ("b", 2)]


def test_innermost_outbox_takes_the_publication() -> None:
    with capture() as outer:
        realtime.publish("news", 1)
        with capture() as inner:
            realtime.publish("news", 2)
        realtime.publish("news", 3)
    assert outer.data("news") == [1, 3]
    assert inner.data("news") == [2]


def test_nothing_is_taken_when_the_block_has_ended_or_failed() -> None:
    with pytest.raises(ZeroDivisionError), capture() as outbox:
        raise ZeroDivisionError
    with pytest.raises(NotServing):
        realtime.publish("news", 1)
    with capture():
        pass
    with pytest.raises(NotServing):
        realtime.publish("news", 1)
    assert outbox == []


def test_decorated_function_publishes_nothing() -> None:
    @capture()
    def function() -> str:
        realtime.publish("news", 1)
        return "done"

    assert [function(), function()] == ["done", "done"]


async def test_decorated_coroutine_function_publishes_nothing() -> None:
    @capture()
    async def function() -> str:
        await asyncio.sleep(0)
        await realtime.apublish("news", 1)
        return "done"

    assert await function() == "done"


def test_what_cannot_be_published_is_refused_as_without_the_kit() -> None:
    with capture() as outbox:
        with pytest.raises(NamespaceNotFound):
            realtime.publish("nope:lobby", 1)
        with pytest.raises(NamespaceNotFound):
            realtime.broadcast(["news", "nope:lobby", "other"], 1)
        with pytest.raises(BadRequest):
            realtime.broadcast([], 1)
        with pytest.raises(TypeError):
            realtime.broadcast("news", 1)
        with pytest.raises(TypeError):
            realtime.publish("news", object())
    assert outbox == []


async def test_mistakes_on_an_event_loop_are_refused_as_without_the_kit() -> None:
    with capture() as outbox:
        with pytest.raises(TypeError):
            await realtime.abroadcast("news", 1)
        with pytest.raises(RuntimeError, match=r"await realtime\.apublish"):
            realtime.publish("news", 1)
    assert outbox == []


@pytest.mark.parametrize("with_service", [False, True])
def test_changes_of_a_map_are_answered_and_those_that_are_made_are_captured(
    with_service: bool,
) -> None:
    seats = realtime.map("seats:1")

    def put(key: str, data: object, **options: Any) -> MapResult:
        change = seats.put(key, data, **options)
        assert change is not None
        return change

    with capture() as outbox, TestService() if with_service else nullcontext():
        first = put("a", 1)
        taken = put("a", 2, if_new=True)
        assert first.position is not None
        assert (taken.kept, taken.reason, taken.position) == (False, "key_exists", first.position)
        assert taken.current is not None
        assert (taken.current.data, taken.current.position) == (1, first.position)
        assert put("b", 1, if_exists=True) == (False, first.position, "key_not_found", None)
        second = put("a", 3, expect=first.position)
        assert put("a", 4, expect=first.position).reason == "position_mismatch"
        put("b", 5)
        assert [seats.remove("b"), seats.remove("b")][1] is not None

    assert second.kept
    assert outbox == [("seats:1", 1), ("seats:1", 3), ("seats:1", 5), ("seats:1", None)]
    assert [(each.key, each.removed) for each in outbox[1:]] == [
        ("a", False),
        ("b", False),
        ("b", True),
    ]
    assert (outbox.map("seats:1"), outbox.map("seats:2")) == ({"a": 3}, {})
