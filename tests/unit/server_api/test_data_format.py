"""`publication_data_format: json_object` at every door of the site."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import realtime
from realtime import hooks
from realtime.cluster.member import Member
from realtime.errors import BadRequest
from realtime.hooks.registry import registry
from realtime.server_api import methods, methods_v2
from realtime.serving import serving
from realtime.testing import TestService

OBJECTS, ANY = "objects:a", "any:a"
HISTORY = {"history_size": 10, "history_lifetime": 60, "publish": True}


@pytest.fixture(autouse=True)
def options(settings: Any) -> None:
    """Channels of objects, and others."""
    settings.REALTIME = {
        "namespaces": [
            {"name": "objects", "publication_data_format": "json_object", **HISTORY},
            {"name": "any", **HISTORY},
        ]
    }


@pytest.fixture
def service() -> Iterator[None]:
    """Serve with the options."""
    with TestService():
        yield


def over_http(run: Callable[[Member, bytes], Any], **params: object) -> None:
    """Run a method of the HTTP API; raises what it is answered with."""
    serving.call(lambda member: run(member, msgspec.json.encode(params)))


async def first_publish(member: Member, params: bytes) -> None:
    await methods.run(member, methods.PUBLISH, params)


async def second_publish(member: Member, params: bytes) -> None:
    await methods_v2.run(member, "publish", params)


DOORS: dict[str, Callable[[object], object]] = {
    "publish": lambda data: realtime.publish(OBJECTS, data),
    "apublish": lambda data: asyncio.run(realtime.apublish(OBJECTS, data)),
    "broadcast": lambda data: realtime.broadcast([OBJECTS], data),
    "abroadcast": lambda data: asyncio.run(realtime.abroadcast([OBJECTS], data)),
    "publish_many": lambda data: realtime.publish_many([(ANY, 1), (OBJECTS, data)]),
    "apublish_many": lambda data: asyncio.run(realtime.apublish_many([(ANY, 1), (OBJECTS, data)])),
    "first HTTP API": lambda data: over_http(first_publish, channel=OBJECTS, data=data),
    "second HTTP API": lambda data: over_http(second_publish, channel=OBJECTS, data=data),
}


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("data", [1, [], "{", None], ids=repr)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_site_publishes_nothing_but_objects(door: Callable[[object], object], data: object) -> None:
    with pytest.raises(BadRequest) as refused:
        door(data)
    assert refused.value.code == 107
    assert isinstance(refused.value, ValueError)
    assert realtime.history(OBJECTS) == realtime.history(ANY) == []


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_site_publishes_objects(door: Callable[[object], object]) -> None:
    door({"a": 1})
    assert [each["data"] for each in realtime.history(OBJECTS)] == [{"a": 1}]


@pytest.mark.usefixtures("service")
def test_broadcast_over_http_refuses_each_channel_of_objects() -> None:
    async def broadcast(member: Member) -> Any:
        params = msgspec.json.encode({"channels": [OBJECTS, ANY], "data": 1})
        return msgspec.json.decode(await methods_v2.run(member, "broadcast", params))

    refused, sent = serving.call(broadcast)["responses"]

    assert refused["error"]["code"] == 107
    assert "error" not in sent
    assert realtime.history(OBJECTS) == []


@pytest.mark.parametrize(("answer", "code"), [([], 100), ({"b": 1}, None)], ids=repr)
def test_hook_answers_with_nothing_but_objects(
    monkeypatch: pytest.MonkeyPatch, answer: object, code: int | None
) -> None:
    monkeypatch.setattr(registry, "publish", [])
    hooks.publish("objects:*")(lambda request: answer)

    refused = None
    with TestService() as service, service.client("17") as client:
        try:
            client.publish(OBJECTS, {"a": 1})
        except realtime.Error as error:
            refused = error.code
        kept = [each["data"] for each in realtime.history(OBJECTS)]

    assert refused == code
    assert kept == ([] if code else [answer])
