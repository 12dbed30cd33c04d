"""Who may read and stop an answer: the user who asked, and others by the rules of its channel."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from realtime import hooks
from realtime.answers import StopRequest, permission
from realtime.answers.models import Answer
from realtime.config import sources
from realtime.errors import InternalError, PermissionDenied
from realtime.hooks.answers import Allowed
from realtime.hooks.answers import permission as permission_of
from realtime.hooks.requests import SubscribeRequest
from realtime.hooks.runner import call
from realtime.node.hooks import Handshake, Permission
from tests.answers.installing import installed

pytestmark = pytest.mark.django_db

OWNER, FRIEND, OTHER, NOBODY = "7", "8", "9", ""

NAMESPACES: list[dict[str, Any]] = [
    {"name": "chat", "allow_user_limited_channels": True},
    {"name": "open", "anonymous": True},
    {"name": "server", "server_side": True},
    {"name": "tokens", "allow_subscribe_for_client": False},
    *({"name": name} for name in ("hooked", "awaited", "closed", "info", "brief", "broken")),
]

MAY_READ: dict[str, set[str]] = {
    "chat:1": {OWNER, FRIEND, OTHER},
    "chat:1#8": {OWNER, FRIEND},
    "open:1": {OWNER, FRIEND, OTHER, NOBODY},
    "server:1": {OWNER},
    "tokens:1": {OWNER},
    "hooked:1": {OWNER, FRIEND},
    "awaited:1": {OWNER, FRIEND},
    "closed:other": {OWNER},
    "$hooked:1": {OWNER, FRIEND},
    "$chat:1": {OWNER},
    "gone:1": {OWNER},
}
"""Channel → the users who may read an answer there that user 7 asked for."""


@pytest.fixture(autouse=True)
def site() -> Iterator[None]:
    """A site with hooks."""
    with installed():
        sources.configuration.override(namespaces=NAMESPACES)

        @hooks.subscribe("hooked:{pk}", "$hooked:{pk}", "closed:one")
        def may_read(request: SubscribeRequest) -> bool:
            assert request.params in ({"pk": "1"}, {})
            return request.user == FRIEND

        @hooks.subscribe("awaited:{pk}")
        async def may_read_later(request: SubscribeRequest) -> bool:
            return request.user == FRIEND

        hooks.subscribe("info:{pk}")(lambda request: {"name": "Ann"})
        hooks.subscribe("brief:{pk}")(lambda request: Allowed(ttl=5))

        @hooks.subscribe("broken:{pk}")
        def breaks(request: SubscribeRequest) -> bool:
            raise RuntimeError("the database is away")

        yield
    sources.configuration.override()


def asked_in(channel: str, user: str = OWNER) -> Answer:
    return Answer.objects.create(channel=channel, user=user, form="text")


def request_of(row: Answer, user: str) -> SubscribeRequest:
    return SubscribeRequest(
        client="C",
        user=user,
        handshake=Handshake({}, ""),
        channel=row.own_channel,
        params={"id": str(row.pk)},
    )


def decided(row: Answer, user: str) -> Permission:
    """What a client gets that subscribes."""
    return call(permission.decide, request_of(row, user), permission_of)


@pytest.mark.parametrize("user", [OWNER, FRIEND, OTHER, NOBODY])
@pytest.mark.parametrize("channel", MAY_READ)
def test_reading_follows_the_rules_of_the_channel(channel: str, user: str) -> None:
    row = asked_in(channel)
    found = set()
    for ask in (
        lambda: decided(row, user),
        lambda: permission.check_read(row, request_of(row, user)),
    ):
        try:
            ask()
        except (PermissionDenied, hooks.Error):
            found.add(False)
        else:
            found.add(True)
    assert found == {user in MAY_READ[channel]}


def test_answer_of_an_anonymous_visitor_belongs_to_nobody() -> None:
    row = asked_in("chat:1", NOBODY)
    with pytest.raises(PermissionDenied):
        decided(row, NOBODY)
    with pytest.raises(PermissionDenied):
        permission.check_stop(row, request_of(row, NOBODY))


@pytest.mark.parametrize("answer_id", [str(uuid.UUID(int=1)), "mcp-1", "", "\0", "7" * 4000])
def test_unknown_answer_may_not_be_read(answer_id: str) -> None:
    request = SubscribeRequest(
        client="C",
        user=OWNER,
        handshake=Handshake({}, ""),
        channel=f"answer:{answer_id}",
        params={"id": answer_id},
    )
    with pytest.raises(PermissionDenied):
        call(permission.decide, request, permission_of)


@pytest.mark.parametrize(
    ("channel", "ttl"),
    [
        *((name, permission.RECHECK) for name in ("chat:1", "hooked:1", "awaited:1", "info:1")),
        ("brief:1", 5),
    ],
)
def test_rules_are_asked_again(channel: str, ttl: float) -> None:
    assert decided(asked_in(channel), FRIEND).ttl == ttl


def test_info_of_the_hook_is_that_of_the_subscription() -> None:
    info = decided(asked_in("info:1"), FRIEND).info
    assert info is not None
    assert info.json == b'{"name":"Ann"}'


def test_hook_that_fails_lets_nobody_in() -> None:
    with pytest.raises(InternalError):
        decided(asked_in("broken:1"), FRIEND)


@pytest.mark.urls("tests.site.answers")
def test_visitor_meets_a_hook_that_fails_as_everywhere(client: Client) -> None:
    client.force_login(get_user_model().objects.create(username="reader"))
    row = asked_in("broken:1")
    hooks.answer_stop("broken:{pk}")(lambda request: 1 / 0)
    assert client.get(f"/answers/{row.pk}/events").status_code == 500
    assert client.post(f"/answers/{row.pk}/stop").status_code == 500


def test_user_who_asked_may_stop_or_whom_the_hook_allows() -> None:
    row = asked_in("chat:1")
    permission.check_stop(row, request_of(row, OWNER))
    with pytest.raises(PermissionDenied):
        permission.check_stop(row, request_of(row, FRIEND))

    @hooks.answer_stop("chat:{pk}")
    def may_stop(request: StopRequest) -> bool | None:
        assert (request.answer, request.params) == (row, {"pk": "1"})
        return True if request.user == FRIEND else None

    permission.check_stop(row, request_of(row, FRIEND))
    for user in (OWNER, NOBODY):
        with pytest.raises(PermissionDenied):
            permission.check_stop(row, request_of(row, user))
