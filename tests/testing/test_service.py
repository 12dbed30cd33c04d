"""The service of a test: its options, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.test import override_settings

import realtime
from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.errors import NotServing
from realtime.testing import TestService, capture
from tests.testing.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("options")


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "realtime" in thread.name]


def test_each_service_begins_with_nothing() -> None:
    for _ in range(2):
        with TestService() as service, service.client("17") as client:
            client.subscribe("chat:lobby")
            assert client.history("chat:lobby") == []
            realtime.publish("chat:lobby", 1)


def test_nothing_is_left_when_it_has_stopped() -> None:
    with TestService() as service:
        service.client("17").connect().subscribe("chat:lobby")
    assert threads() == []
    with pytest.raises(NotServing):
        realtime.publish("news", 1)


def test_client_that_is_still_connected_when_it_stops_is_closed_with_3001() -> None:
    with TestService() as service:
        client = service.client("17").connect()
    with pytest.raises(RuntimeError, match="is not running"):
        client.subscribe("news")


def test_every_function_reaches_the_service_from_a_thread() -> None:
    with TestService() as service, service.client("17") as client:
        client.subscribe("chat:lobby")
        realtime.publish("chat:lobby", 1)
        assert [entry["data"] for entry in realtime.history("chat:lobby")] == [1]
        assert realtime.channels() == ["chat:lobby"]
        assert realtime.presence_stats("chat:lobby") == {"num_clients": 1, "num_users": 1}
        realtime.history_remove("chat:lobby")
        assert realtime.history("chat:lobby") == []


async def test_every_function_reaches_the_service_from_a_coroutine() -> None:
    async with TestService() as service, service.client("17") as client:
        await client.asubscribe("chat:lobby")
        await realtime.apublish("chat:lobby", 1)
        await client.aexpect("chat:lobby", 1)
        assert await realtime.achannels() == ["chat:lobby"]
        await realtime.adisconnect("17")
        await client.aclosed(3012)


def test_service_outlives_the_loops_of_a_test() -> None:
    with TestService() as service:

        async def first() -> None:
            await service.client("17").aconnect()

        async def second() -> None:
            assert (await realtime.ainfo())[0]["num_clients"] == 1

        asyncio.run(first())
        asyncio.run(second())


async def test_clients_wait_side_by_side() -> None:
    async with (
        TestService() as service,
        service.client("1") as alice,
        service.client("2") as bob,
    ):
        await asyncio.gather(alice.asubscribe("news"), bob.asubscribe("news"))
        waiting = asyncio.gather(alice.aexpect("news", 1), bob.aexpect("news", 1))
        await realtime.apublish("news", 1)
        await waiting


def test_server_api_reaches_the_clients(client: Any) -> None:
    with (
        override_settings(REALTIME={**OPTIONS, "api_key": "k"}),
        TestService() as service,
        service.client("17") as subscriber,
    ):
        subscriber.subscribe("news")

        answer = client.post(
            "/api",
            {"method": "publish", "params": {"channel": "news", "data": 1}},
            content_type="application/json",
            headers={"Authorization": "apikey k"},
        )

        assert answer.json() == {"result": {}}
        subscriber.expect("news", 1)


def test_changed_options_restart_the_service() -> None:
    with TestService() as service:
        client = service.client("17").connect()
        with override_settings(REALTIME={**OPTIONS, "presence": False}):
            client.closed(3001)
            with pytest.raises(realtime.Error) as error:
                realtime.presence("news")
            assert error.value.code == 108
        assert realtime.presence("news") == {}


def test_clients_that_connect_get_the_mistakes_of_the_options() -> None:
    with TestService() as service:
        with override_settings(REALTIME={"nope": 1}), pytest.raises(InvalidOptions):
            service.client("17").connect()
        service.client("17").connect()


def test_service_does_not_start_with_wrong_options(settings: Any) -> None:
    settings.REALTIME = {"nope": 1}
    with pytest.raises(InvalidOptions), TestService():
        pass
    assert threads() == []
    settings.REALTIME = OPTIONS
    with TestService():
        pass


@pytest.mark.parametrize(
    "redis",
    [
        {"redis_url": "redis://127.0.0.1:1/0"},
        {"engine": "redis"},
        {"channel_layer": "default"},
        {},
    ],
    ids=["redis_url", "engine", "channel_layer", "environment"],
)
def test_site_with_redis_is_tested_without(
    redis: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not redis:
        monkeypatch.setenv("SERVICE_REDIS_URL", "redis://127.0.0.1:1/0")
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": sources.OUR_LAYER, "CONFIG": {}}}
    settings.REALTIME = {**OPTIONS, **redis}
    with TestService() as service, service.client("17") as client:
        client.subscribe("news")
        realtime.publish("news", 1)
        client.expect("news", 1)
        assert list(realtime.presence("news")) == [client.id]
    assert sources.current().engine == redis.get("engine", "")


def test_site_without_a_key_for_tokens_has_users_all_the_same(settings: Any) -> None:
    settings.REALTIME = {"presence": True}
    with TestService() as service, service.client("17") as client:
        client.subscribe("news")
        assert realtime.presence("news")[client.id]["user"] == "17"
    assert sources.current().connection_tokens.hmac_secret_key == ""


def test_publication_goes_to_the_outbox_and_to_clients() -> None:
    with TestService() as service, service.client("17") as client, capture() as outbox:
        client.subscribe("news")
        realtime.publish("news", 1)
        client.expect("news", 1)
        client.expect_nothing()
    assert outbox == [("news", 1)]


def test_what_a_client_publishes_is_not_in_the_outbox() -> None:
    with TestService() as service, service.client("17") as client, capture() as outbox:
        client.subscribe("chat:lobby")
        client.publish("chat:lobby", 1)
        client.expect("chat:lobby", 1)
    assert outbox == []


def test_refused_publication_is_refused_with_a_service_too() -> None:
    with TestService(), capture() as outbox, pytest.raises(realtime.Error) as error:
        realtime.broadcast(["news", "nope:lobby"], 1)
    assert error.value.code == 102
    assert outbox == []
