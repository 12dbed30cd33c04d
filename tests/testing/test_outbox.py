"""The outbox: what is published, without a service and without a database."""

from __future__ import annotations

import asyncio
import threading

import pytest

import realtime
from realtime.errors import BadRequest, NamespaceNotFound, NotServing
from realtime.testing import Published, capture

pytestmark = pytest.mark.usefixtures("options")


def test_outbox_has_what_was_published_oldest_first() -> None:
    with capture() as outbox:
        realtime.publish("news", {"text": "hi"})
        realtime.publish("chat:lobby", [1, 2])

    assert outbox == [Published("news", {"text": "hi"}), Published("chat:lobby", [1, 2])]


def test_data_are_what_clients_get() -> None:
    with capture() as outbox:
        realtime.publish("news", {"pair": (1, 2)})

    assert outbox[0].data == {"pair": [1, 2]}


def test_broadcast_counts_once_for_each_channel() -> None:
    with capture() as outbox:
        realtime.broadcast(["news", "chat:lobby"], "hi")

    assert outbox == [("news", "hi"), ("chat:lobby", "hi")]


def test_data_of_one_channel_can_be_read() -> None:
    with capture() as outbox:
        realtime.publish("news", 1)
        realtime.publish("other", 2)
        realtime.publish("news", 3)

    assert outbox.data("news") == [1, 3]


def test_cleared_outbox_is_empty_and_goes_on() -> None:
    with capture() as outbox:
        realtime.publish("news", 1)
        outbox.clear()
        realtime.publish("news", 2)

    assert outbox == [("news", 2)]


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


def test_nothing_is_taken_when_the_block_has_ended() -> None:
    with capture() as outbox:
        pass

    with pytest.raises(NotServing):
        realtime.publish("news", 1)
    assert outbox == []


def test_block_that_fails_takes_no_more() -> None:
    with pytest.raises(ZeroDivisionError), capture():
        raise ZeroDivisionError

    with pytest.raises(NotServing):
        realtime.publish("news", 1)


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


# what publishing refuses, it refuses here too


def test_unknown_namespace_is_refused_as_without_the_kit() -> None:
    with capture() as outbox, pytest.raises(NamespaceNotFound):
        realtime.publish("nope:lobby", 1)

    assert outbox == []


async def test_broadcast_to_one_name_is_not_one_to_each_of_its_letters() -> None:
    with capture() as outbox:
        with pytest.raises(TypeError):
            await realtime.abroadcast("news", 1)
        with pytest.raises(TypeError):
            await asyncio.to_thread(realtime.broadcast, "news", 1)

    assert outbox == []


def test_nothing_of_a_broadcast_that_is_refused_is_in_the_outbox() -> None:
    with capture() as outbox, pytest.raises(NamespaceNotFound):
        realtime.broadcast(["news", "nope:lobby", "other"], 1)

    assert outbox == []


def test_broadcast_to_no_channel_is_refused_as_without_the_kit() -> None:
    with capture(), pytest.raises(BadRequest):
        realtime.broadcast([], 1)


def test_data_without_json_form_are_refused_as_without_the_kit() -> None:
    with capture(), pytest.raises(TypeError):
        realtime.publish("news", object())


async def test_plain_function_on_an_event_loop_is_refused_as_without_the_kit() -> None:
    with capture() as outbox, pytest.raises(RuntimeError, match=r"await realtime\.apublish"):
        realtime.publish("news", 1)

    assert outbox == []


def test_outbox_shows_its_publications_when_an_assertion_fails() -> None:
    with capture() as outbox:
        realtime.publish("news", {"text": "hi"})

    assert repr(outbox) == "[Published(channel='news', data={'text': 'hi'})]"
