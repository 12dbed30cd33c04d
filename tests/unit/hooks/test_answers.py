"""What the answers of hooks mean."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from realtime import payload
from realtime.errors import PermissionDenied
from realtime.hooks import answers
from realtime.hooks.answers import Allowed, Connected, Data, Put
from realtime.node.hooks import KeyChange, Permission

SENT = payload.check(b'{"sent": 1}')


def test_connected_carries_everything() -> None:
    connected = Connected(user="17", info={"a": 1}, channels=("x", "y"), ttl=60, data=[1])

    before = time.time()
    identity = answers.identity(connected)

    assert identity is not None
    assert identity.info is not None
    assert identity.data is not None
    assert json.loads(identity.info.raw) == {"a": 1}
    assert json.loads(identity.data.raw) == [1]
    assert identity.channels == ("x", "y")
    assert identity.expires_at is not None
    assert before + 60 <= identity.expires_at <= time.time() + 60


def test_connected_without_more_is_anonymous_for_ever() -> None:
    identity = answers.identity(Connected())
    assert identity is not None
    assert (identity.user, identity.info, identity.channels) == ("", None, ())
    assert (identity.expires_at, identity.data) == (None, None)


def test_none_is_nobody() -> None:
    assert answers.identity(None) is None


UNUSABLE: dict[str, Any] = {
    "text": "17",
    "true": True,
    "class": Connected,
    "one channel": Connected(channels="news"),
    "number as channel": Connected(channels=[1]),  # type: ignore[list-item]
    "lone surrogate in the user": Connected(user="a\ud83d"),
    "info without JSON form": Connected(info=1j),
    "data without JSON form": Connected(data=float("nan")),
    "ttl as text": Connected(ttl="60"),  # type: ignore[arg-type]
    "ttl true": Connected(ttl=True),
    "ttl without end": Connected(ttl=float("inf")),
    "ttl that is no number": Connected(ttl=float("nan")),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_answer_of_connect_is_refused(answer: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        answers.identity(answer)


@pytest.mark.parametrize("answer", [None, False])
def test_refresh_hook_lets_a_connection_expire(answer: Any) -> None:
    assert answers.refresh(answer, "17") is None


def test_refresh_hook_gives_an_expiry() -> None:
    renewal = answers.refresh(2_000_000_000, "17")
    assert renewal is not None
    assert (renewal.expires_at, renewal.info) == (2_000_000_000.0, None)


def test_refresh_hook_gives_a_ttl_and_new_info() -> None:
    before = time.time()
    renewal = answers.refresh(Connected(ttl=60, info={"a": 2}), "17")
    assert renewal is not None
    assert renewal.info is not None
    assert before + 60 <= renewal.expires_at <= time.time() + 60
    assert json.loads(renewal.info.raw) == {"a": 2}


@pytest.mark.parametrize("user", ["17", 17, ""])
def test_refresh_hook_may_name_the_user_of_the_connection(user: Any) -> None:
    assert answers.refresh(Connected(user=user, ttl=60), "17") is not None


@pytest.mark.parametrize("user", ["18", 18, AnonymousUser()])
def test_connection_does_not_become_one_of_another_user(user: Any) -> None:
    assert answers.refresh(Connected(user=user, ttl=60), "17") is None


@pytest.mark.parametrize(
    "answer", [True, "soon", Connected(), float("nan"), float("inf"), 1j], ids=repr
)
def test_unusable_answer_of_refresh_is_refused(answer: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        answers.refresh(answer, "17")


@pytest.mark.parametrize("answer", [None, True])
def test_subscribe_hook_allows_without_info(answer: Any) -> None:
    assert answers.permission(answer) == Permission()


@pytest.mark.parametrize(
    ("answer", "info"),
    [
        ({}, "{}"),
        ({"a": 1}, '{"a":1}'),
        (0, "0"),
        ("", '""'),
        ([], "[]"),
        (Data(False), "false"),
        (Data(None), "null"),
    ],
)
def test_other_answer_of_subscribe_is_channel_info(answer: Any, info: str) -> None:
    found = answers.permission(answer).info
    assert found is not None
    assert found.raw == info.encode()


def test_subscribe_hook_may_ask_to_be_asked_again() -> None:
    assert answers.permission(Allowed()) == Permission()
    assert answers.permission(Allowed(ttl=60)) == Permission(None, 60.0)
    info = answers.permission(Allowed(info={"a": 1}, ttl=0.5)).info
    assert info is not None
    assert info.raw == b'{"a":1}'


@pytest.mark.parametrize("ttl", [0, -1, True, "60", float("nan"), float("inf")], ids=repr)
def test_allowed_with_an_unusable_ttl_is_no_answer(ttl: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        answers.permission(Allowed(ttl=ttl))


@pytest.mark.parametrize("meaning", [answers.permission, lambda a: answers.published(a, SENT)])
def test_false_is_a_refusal(meaning: Callable[[Any], Any]) -> None:
    with pytest.raises(PermissionDenied):
        meaning(False)


@pytest.mark.parametrize("answer", [None, True])
def test_publish_hook_lets_the_data_through_as_they_were_sent(answer: Any) -> None:
    assert answers.published(answer, SENT) is SENT


@pytest.mark.parametrize(
    ("answer", "data"),
    [({"b": 2}, '{"b":2}'), (0, "0"), ([], "[]"), (Data(None), "null"), (Data(True), "true")],
)
def test_other_answer_of_publish_replaces_the_data(answer: Any, data: str) -> None:
    assert answers.published(answer, SENT).raw == data.encode()


PUT, REMOVAL = KeyChange("k", SENT), KeyChange("k")


@pytest.mark.parametrize(
    ("answer", "key", "data"),
    [
        (None, "k", SENT.raw),
        (True, "k", SENT.raw),
        ({"b": 2}, "k", b'{"b":2}'),
        (Data(None), "k", b"null"),
        (Put("other"), "other", SENT.raw),
        (Put("other", 5), "other", b"5"),
        (Put("other", Data(True)), "other", b"true"),
    ],
)
def test_answer_about_a_put(answer: Any, key: str, data: bytes) -> None:
    change = answers.put(answer, PUT)
    assert change.data is not None
    assert (change.key, change.data.raw) == (key, data)


@pytest.mark.parametrize("change", [PUT, REMOVAL])
@pytest.mark.parametrize("answer", [False, Put("other", False)])
def test_a_change_may_be_refused(change: KeyChange, answer: Any) -> None:
    with pytest.raises(PermissionDenied):
        answers.put(answer, change)


@pytest.mark.parametrize("key", ["", "\0", "x" * 256, "\ud800", 5])
def test_key_of_an_answer_is_checked(key: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        answers.put(Put(key), PUT)


@pytest.mark.parametrize(("answer", "key"), [(None, "k"), (True, "k"), (Put("other"), "other")])
def test_answer_about_a_removal(answer: Any, key: str) -> None:
    assert answers.put(answer, REMOVAL) == KeyChange(key)


@pytest.mark.parametrize("answer", [{"b": 2}, Put("other", 5)])
def test_a_removal_has_no_data(answer: Any) -> None:
    with pytest.raises(ValueError, match="removal"):
        answers.put(answer, REMOVAL)


@pytest.mark.parametrize("meaning", [answers.permission, lambda a: answers.published(a, SENT)])
def test_answer_without_json_form_is_refused(meaning: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        meaning(1j)
