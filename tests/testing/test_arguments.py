"""Functions of the service take users and channels in the forms in which a site has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import TextChoices

import realtime
from realtime import tokens
from realtime.errors import BadRequest, DisconnectForced, NotAvailable
from realtime.testing import TestService


class Channel(TextChoices):
    NEWS = "news", "News"


USERS = [17, "17", User(pk=17)]


@pytest.mark.parametrize("user", USERS, ids=["number", "text", "user"])
def test_user_is_found_in_every_form(service: TestService, user: Any) -> None:
    with service.client(17) as client:
        client.subscribe("news")
        assert [found.client for found in realtime.connections(user)] == [client.id]
        realtime.unsubscribe(user, Channel.NEWS)
        client.expect_unsubscribed("news")
        realtime.disconnect(user)
        with pytest.raises(DisconnectForced):
            client.subscribe("news")


@pytest.mark.parametrize("user", USERS, ids=["number", "text", "user"])
def test_user_is_blocked_in_every_form(service: TestService, user: Any) -> None:
    with service.client("17") as client:
        before = datetime.now(UTC)
        realtime.block(user, 60)
        with pytest.raises(DisconnectForced):
            client.subscribe("news")

    ends = realtime.blocked()
    with pytest.raises(DisconnectForced), service.client("17"):
        pass
    realtime.unblock(user)
    with service.client("17") as client:
        client.subscribe("news")

    assert ends.keys() == {"17"}
    assert before + timedelta(seconds=60) <= ends["17"] <= datetime.now(UTC) + timedelta(seconds=60)
    assert realtime.blocked() == {}


BLOCKS: list[tuple[Any, Any, type[Exception], str]] = [
    *(
        ("17", seconds, ValueError, "seconds must be between 0 and ten years")
        for seconds in (0, -1, float("nan"), float("inf"), 10**10)
    ),
    *(("17", seconds, TypeError, "seconds must be a number") for seconds in ("60", None, True)),
    *((user, 60, BadRequest, ".") for user in ("", AnonymousUser(), "u" * 256)),
]


@pytest.mark.parametrize(("user", "seconds", "error", "message"), BLOCKS)
def test_block_needs_a_name_and_an_end(
    service: TestService, user: Any, seconds: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        realtime.block(user, seconds)


def test_channel_may_be_a_choice(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe(Channel.NEWS)
        realtime.publish(Channel.NEWS, 1)
        client.expect("news", 1)
        assert realtime.presence(Channel.NEWS).keys() == {client.id}
        assert realtime.subscribers([Channel.NEWS]) == {"news": 1}


CALLS: dict[str, Callable[[], object]] = {
    "publish": lambda: realtime.publish(17, {}),  # type: ignore[arg-type]
    "publish_many": lambda: realtime.publish_many([("news", 1), (None, 2)]),  # type: ignore[list-item]
    "broadcast": lambda: realtime.broadcast([17], {}),  # type: ignore[list-item]
    "presence": lambda: realtime.presence(17),  # type: ignore[arg-type]
    "presence_stats": lambda: realtime.presence_stats(b"news"),  # type: ignore[arg-type]
    "history": lambda: realtime.history(None),  # type: ignore[arg-type]
    "history_remove": lambda: realtime.history_remove(17),  # type: ignore[arg-type]
    "unsubscribe": lambda: realtime.unsubscribe("17", None),  # type: ignore[arg-type]
    "subscribers": lambda: realtime.subscribers([17]),  # type: ignore[list-item]
    "observer_token": lambda: realtime.observer_token([17]),  # type: ignore[list-item]
    "subscription_token": lambda: tokens.subscription_token("client", 17),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_channel_that_is_no_text_is_a_type_error_that_says_so(
    service: TestService, call: Callable[[], object]
) -> None:
    with pytest.raises(TypeError, match=r"a channel name must be a string|a list of names"):
        call()


CALLS_ABOUT_USERS = [
    *(realtime.disconnect, realtime.unsubscribe, realtime.connections),
    *(partial(realtime.block, seconds=1), realtime.unblock),
]


@pytest.mark.parametrize("user", [None, 1.5, User(), ["17"]], ids=repr)
@pytest.mark.parametrize("call", CALLS_ABOUT_USERS)
def test_value_that_is_no_user_is_a_type_error(
    service: TestService, call: Callable[[Any], object], user: Any
) -> None:
    with pytest.raises(TypeError, match="user"):
        call(user)


ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(
        ({"tags": tags}, TypeError, "tags")
        for tags in ("k", ["k"], {"k": 1}, {1: "k"}, {"k": "\ud83d"}, {"\ud83d": "k"})
    ),
    *(({"once": key}, TypeError, "an idempotency key must be") for key in (7, b"k", "\ud83d")),
    ({"version": 0}, ValueError, "."),
    ({"version": 2**64}, ValueError, "."),
    ({"version": "2"}, TypeError, "."),
    ({"version": True}, TypeError, "."),
    ({"version": 1, "version_epoch": 5}, TypeError, "."),
    ({"version": 1, "version_epoch": "a\ud83d"}, TypeError, "."),
    ({"version": 1, "version_epoch": "x" * 256}, ValueError, "."),
    ({"version_epoch": "a"}, ValueError, "."),
    ({"version": 1, "skip_history": True}, NotAvailable, "."),
]


@pytest.mark.parametrize(("arguments", "error", "message"), ARGUMENTS, ids=ascii)
def test_arguments_that_are_wrong_are_refused_at_the_call(
    service: TestService, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        realtime.publish("chat:a", 1, **arguments)


def test_key_of_several_is_not_the_key_of_one(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")
        realtime.publish_many([("news", 1), ("news", 2)], once="k")
        realtime.publish("news", 3, once="0:k")
        realtime.publish("news", 4, once="k")
        realtime.publish_many([("news", 1), ("news", 2), ("news", 5)], once="k")
        for data in (1, 2, 3, 4, 5):
            client.expect("news", data)


def test_an_older_version_is_not_published(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("chat:a")
        first = realtime.publish("chat:a", 1, version=2, version_epoch="a")
        assert realtime.publish("chat:a", 2, version=2) == first
        realtime.publish("chat:a", 3, version=1, version_epoch="b")
        client.expect("chat:a", 1)
        client.expect("chat:a", 3)


def test_broadcast_compares_versions_in_each_channel(service: TestService) -> None:
    with service.client("17") as client:
        for channel in ("chat:a", "chat:b"):
            client.subscribe(channel)

        realtime.publish("chat:a", 1, version=5)
        first, last = realtime.broadcast(["chat:a", "chat:b"], 2, version=4)

        client.expect("chat:a", 1)
        client.expect("chat:b", 2)
        assert first is not None
        assert last is not None
        assert (first.offset, last.offset) == (1, 1)
        realtime.broadcast(["chat:a", "chat:b"], 3, version=1, version_epoch="b")
        client.expect("chat:a", 3)
    with pytest.raises(NotAvailable):
        realtime.broadcast(["chat:a", "news"], 1, version=1)
