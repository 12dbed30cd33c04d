"""Publishing in transactions of several databases: after all commits, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections, transaction

import realtime
from tests.unit.server_api.transaction_parts import Sent, record, rolled_back

ALIASES = ("one", "other")

each_order = pytest.mark.parametrize(
    ("outer", "inner"), [ALIASES, ALIASES[::-1]], ids=["one in other", "other in one"]
)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What goes out, at the moment it does."""
    return record(monkeypatch)


@pytest.fixture(autouse=True)
def databases(django_db_blocker: Any) -> Iterator[None]:
    """Two databases besides the default one."""
    made = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    settings = connections.configure_settings({"default": {}} | dict.fromkeys(ALIASES, made))
    for alias in ALIASES:
        connections.settings[alias] = settings[alias] | {"TEST": {}}
    with django_db_blocker.unblock():
        yield
        for alias in ALIASES:
            connections[alias].close()
            del connections[alias]
            del connections.settings[alias]


@pytest.mark.parametrize("alias", ALIASES)
def test_publication_waits_for_the_commit_of_whichever_database(sent: Sent, alias: str) -> None:
    with transaction.atomic(using=alias):
        realtime.publish("news", 1)
        assert sent == []
    assert sent == [("news", b"1")]


@each_order
def test_publication_waits_for_all_commits(sent: Sent, outer: str, inner: str) -> None:
    with transaction.atomic(using=outer):
        with transaction.atomic(using=inner):
            realtime.publish("news", 1)
        assert sent == []
    assert sent == [("news", b"1")]


@each_order
@pytest.mark.parametrize("undone", ["outer", "inner"])
def test_publication_goes_out_only_when_none_is_rolled_back(
    sent: Sent, outer: str, inner: str, undone: str
) -> None:
    with transaction.atomic(using=outer):
        with transaction.atomic(using=inner):
            realtime.publish("news", 1)
            transaction.set_rollback(undone == "inner", using=inner)
        transaction.set_rollback(undone == "outer", using=outer)

    assert sent == []


@each_order
def test_publication_goes_nowhere_when_a_savepoint_of_one_is_rolled_back(
    sent: Sent, outer: str, inner: str
) -> None:
    with transaction.atomic(using=outer), transaction.atomic(using=inner), rolled_back(outer):
        realtime.publish("news", 1)
    assert sent == []


@each_order
def test_order_is_kept_over_databases(sent: Sent, outer: str, inner: str) -> None:
    with transaction.atomic(using=outer):
        with transaction.atomic(using=inner):
            realtime.publish("news", 1)
        realtime.publish("news", 2)
    assert sent == [("news", b"1"), ("news", b"2")]
