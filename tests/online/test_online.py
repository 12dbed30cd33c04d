"""Who is online, with the memory engine: QuerySets of users, signals, the template tag."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext

import realtime
from realtime.errors import NotServing
from realtime.online import (
    aamong,
    ais_online,
    among,
    ausers,
    is_online,
    querysets,
    users,
)
from realtime.serving import serving
from realtime.signals import user_offline, user_online
from realtime.testing import TestService

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(settings: Any) -> Iterator[TestService]:
    settings.REALTIME = {
        "token_hmac_secret_key": "a secret of at least thirty-two bytes",
        "namespaces": [
            {"name": "room", "presence": True},
            {"name": "people", "presence": True, "join_leave": "user"},
        ],
    }
    with TestService() as service:
        yield service


@pytest.fixture
def people() -> list[User]:
    return [User.objects.create(username=f"user{number}") for number in range(3)]


def test_users_are_online_while_they_have_a_connection(
    service: TestService, people: list[User]
) -> None:
    ann, bob, _ = people
    with service.client(ann), service.client(ann), service.client(bob):
        assert set(users()) == {ann, bob}
        assert set(users().filter(username="user1")) == {bob}
        assert is_online(ann)
        assert is_online(str(bob.pk))
        assert not is_online(people[2])
        assert set(among(User.objects.exclude(pk=bob.pk))) == {ann}
    with service.client(bob):
        assert list(users()) == [bob]


def test_nobody_is_online_at_first(service: TestService, people: list[User]) -> None:
    assert list(users()) == []
    assert list(among(User.objects.all())) == []
    with service.client(""):  # anonymous
        assert list(users()) == []
        assert not is_online("")


async def test_coroutines_have_functions_of_their_own(
    service: TestService, people: list[User]
) -> None:
    async with service.client(people[0]):
        assert [user async for user in await ausers()] == [people[0]]
        assert [user async for user in await aamong(User.objects.all())] == [people[0]]
        assert await ais_online(people[0])
        with pytest.raises(RuntimeError, match=r"await realtime.online.ausers"):
            users()


def test_among_keeps_what_the_queryset_has(service: TestService, people: list[User]) -> None:
    with service.client(people[0]), service.client(people[2]):
        found = among(User.objects.order_by("-username").only("username"))
        assert [user.username for user in found] == ["user2", "user0"]


def test_among_takes_users_and_no_slice(service: TestService, people: list[User]) -> None:
    with pytest.raises(TypeError, match="a QuerySet of users expected, not of Group"):
        among(Group.objects.all())
    with pytest.raises(TypeError):
        among(User.objects.order_by("pk")[:2])


def test_only_the_exact_text_of_a_primary_key_is_its_user(
    service: TestService, people: list[User]
) -> None:
    key = people[0].pk
    strange = [f"0{key}", f" {key}", f"{key}.0", f"+{key}", "\u0661", "\0", "x" * 300, str(2**70)]
    for name in strange:
        with service.client(name):
            assert list(users()) == []
            assert list(among(User.objects.all())) == []


def test_users_with_very_long_ids_are_not_online(service: TestService) -> None:
    with service.client("x" * 255), service.client("x" * 256):
        assert is_online("x" * 255)
        assert not is_online("x" * 256)


def test_queryset_of_many_users_is_one_query_with_one_parameter(people: list[User]) -> None:
    names = [str(number) for number in range(100_000)]
    with CaptureQueriesContext(connection) as queries:
        assert set(querysets.with_ids(names)) == set(people)
    assert len(queries) == 1


def test_present_users_of_a_channel(service: TestService, people: list[User]) -> None:
    with service.client(people[0]) as one, service.client(people[1]) as two:
        one.subscribe("room:1")
        two.subscribe("room:2")
        present = realtime.presence("room:1")
        assert list(present.users()) == [people[0]]
        assert present.clients == present
        assert [info["user"] for info in present.values()] == [str(people[0].pk)]


def test_users_of_a_channel_need_the_app(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "online", None)
    with pytest.raises(ImproperlyConfigured, match=r'add "realtime.online" to INSTALLED_APPS'):
        realtime.presence("room:1").users()


def test_signals_tell_of_users_and_not_of_connections(service: TestService) -> None:
    told: list[tuple[str, str, object]] = []

    def online(user: str, **_: Any) -> None:
        told.append(("online", user, None))

    def offline(user: str, certain: bool, **_: Any) -> None:
        told.append(("offline", user, certain))

    user_online.connect(online)
    user_offline.connect(offline)
    try:
        with service.client("7"), service.client("7"), service.client(""):
            assert told == [("online", "7", None)]
        assert told == [("online", "7", None), ("offline", "7", True)]
    finally:
        user_online.disconnect(online)
        user_offline.disconnect(offline)


def test_subscribers_hear_of_people_and_not_of_their_tabs(service: TestService) -> None:
    with service.client("watcher") as watcher:
        watcher.subscribe("people:1")
        assert watcher.expect_join("people:1")["user"] == "watcher"
        with service.client("7") as one:
            one.subscribe("people:1")
            with service.client("7") as other:
                other.subscribe("people:1")
                assert watcher.expect_join("people:1") == {"user": "7", "client": one.id}
            watcher.expect_nothing("people:1")
        assert watcher.expect_leave("people:1") == {"user": "7", "client": ""}
        watcher.expect_nothing("people:1")


def test_online_count_is_the_number_of_users_in_a_channel(service: TestService) -> None:
    template = Template('{% load realtime_online %}{% online_count "room:1" %}')
    assert template.render(Context()) == "0"
    with service.client("7") as one, service.client("7") as tab, service.client("8") as two:
        for client in (one, tab, two):
            client.subscribe("room:1")
        assert template.render(Context()) == "2"


def test_process_that_serves_no_clients_says_so() -> None:
    with pytest.raises(NotServing):
        users()


def test_last_seen_is_now_for_those_who_are_online(
    service: TestService, people: list[User]
) -> None:
    from realtime.online import last_seen
    from realtime.online.seen import models

    before = datetime.now(UTC)
    models.write({str(people[1].pk): 1_700_000_000_123})

    with service.client(people[0]):
        now = last_seen(people[0])

    assert now is not None
    assert timedelta() <= now - before < timedelta(minutes=5)
    assert last_seen(people[1]) == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)
    assert last_seen(people[2]) is None
    assert last_seen("x" * 1000) is None
