"""Processes that reach no clients: the dummy engine, and publishing that fails silently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

import realtime
from realtime.errors import BadRequest, EngineUnavailable, NamespaceNotFound, NotServing
from realtime.node.node import Node
from realtime.server_api.transactions import Outcomes, Publications
from realtime.serving import serving
from realtime.testing import TestService


@pytest.fixture
def dummy(settings: Any) -> None:
    """A site with the dummy engine, in a process that serves no clients."""
    settings.REALTIME = {
        "engine": "dummy",
        "presence": True,
        "history_size": 10,
        "history_lifetime": 60,
    }


READS: dict[str, tuple[Callable[[], object], object]] = {
    "publish": (lambda: realtime.publish("news", 1), None),
    "publish_many": (lambda: realtime.publish_many([("a", 1), ("b", 2)]), [None] * 2),
    "broadcast": (lambda: realtime.broadcast(["a", "b"], 1), [None] * 2),
    "disconnect": (lambda: realtime.disconnect(17), []),
    "unsubscribe": (lambda: realtime.unsubscribe(17), []),
    "block": (lambda: realtime.block(17, 60), []),
    "unblock": (lambda: realtime.unblock(17), []),
    "blocked": (realtime.blocked, {}),
    "presence": (lambda: realtime.presence("news"), {}),
    "presence_stats": (lambda: realtime.presence_stats("news"), {"num_clients": 0, "num_users": 0}),
    "history": (lambda: realtime.history("news"), []),
    "history_remove": (lambda: realtime.history_remove("news"), None),
    "channels": (realtime.channels, []),
    "info": (realtime.info, []),
    "nodes": (realtime.nodes, []),
    "connections": (lambda: realtime.connections(17), []),
    "subscribers": (lambda: dict(realtime.subscribers(["news"])), {"news": 0}),
    "round_trip": (realtime.round_trip, None),
}


@pytest.mark.usefixtures("dummy")
@pytest.mark.parametrize(("call", "expected"), READS.values(), ids=READS)
def test_dummy_engine_keeps_nothing(call: Callable[[], object], expected: object) -> None:
    assert call() == expected


@pytest.mark.usefixtures("dummy")
def test_dummy_engine_is_for_coroutines_too() -> None:
    async def work() -> object:
        await realtime.apublish("news", 1)
        return await realtime.ahistory("news")

    assert asyncio.run(work()) == []


@pytest.mark.usefixtures("dummy")
def test_dummy_engine_refuses_mistakes() -> None:
    with pytest.raises(NamespaceNotFound):
        realtime.publish("nowhere:news", 1)
    with pytest.raises(BadRequest):
        realtime.publish("", 1)


@pytest.mark.usefixtures("dummy")
def test_service_of_a_test_reaches_its_clients() -> None:
    with TestService() as service, service.client("17") as client:
        client.subscribe("news")
        realtime.publish("news", 1)
        client.expect("news", 1)


@pytest.mark.usefixtures("dummy")
async def test_process_that_serves_clients_reaches_them_and_says_what_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = await serving.start()
    try:
        assert isinstance(node, Node)
        await realtime.apublish("news", 1)
        assert [entry["data"] for entry in await realtime.ahistory("news")] == [1]
        assert "publications of other processes go nowhere" in caplog.text
    finally:
        await serving.stop()


# failing silently

PUBLISH: dict[str, Callable[..., object]] = {
    "publish": lambda **options: realtime.publish("news", 1, **options),
    "publish_many": lambda **options: realtime.publish_many([("news", 1)], **options),
    "broadcast": lambda **options: realtime.broadcast(["news"], 1, **options),
    "apublish": lambda **options: asyncio.run(realtime.apublish("news", 1, **options)),
    "apublish_many": lambda **options: asyncio.run(
        realtime.apublish_many([("news", 1)], **options)
    ),
    "abroadcast": lambda **options: asyncio.run(realtime.abroadcast(["news"], 1, **options)),
}


class Failing:
    """A publisher whose Redis is away."""

    def send(self, publications: Publications) -> Outcomes:
        raise EngineUnavailable("away")

    async def asend(self, publications: Publications) -> Outcomes:
        raise EngineUnavailable("away")


@pytest.mark.parametrize("publish", PUBLISH.values(), ids=PUBLISH)
def test_publication_that_reaches_nobody_is_dropped_on_request(
    publish: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotServing):
        publish()
    publish(fail_silently=True)

    monkeypatch.setattr(serving, "publisher", Failing())
    with pytest.raises(EngineUnavailable):
        publish()
    publish(fail_silently=True)


def test_mistake_is_raised_also_then() -> None:
    with pytest.raises(NamespaceNotFound):
        realtime.publish("nowhere:news", 1, fail_silently=True)
    with pytest.raises(TypeError):
        realtime.publish("news", object(), fail_silently=True)


@pytest.mark.django_db(transaction=True)
def test_publication_after_a_commit_fails_silently_too(caplog: pytest.LogCaptureFixture) -> None:
    with transaction.atomic():
        realtime.publish("news", 1, fail_silently=True)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_outbox_captures_what_fails_silently(realtime_outbox: Any) -> None:
    realtime.publish("news", 1, fail_silently=True)
    assert realtime_outbox == [("news", 1)]
