"""Where the publications of operators are: by their position, the history names who published."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from pytest_django import Settings

from admin_panel import audit
from admin_panel.models import Published
from admin_panel.publishing.positions import is_own, publishers, record
from admin_panel.service import Position

pytestmark = pytest.mark.django_db


def entry(name: str, *channels: str) -> LogEntry:
    """An entry of an operator who published the same as all others."""
    user, _is_new = User.objects.get_or_create(username=name)
    return audit.record(user.pk, audit.PUBLISH, channels or ["chat"], "1")


def test_publisher_is_found_by_channel_epoch_and_offset_alone() -> None:
    record(entry("ada", "chat", "news"), [("chat", Position(3, "e1")), ("news", Position(1, "e1"))])
    record(entry("eve"), [("chat", Position(4, "e1")), ("kept nowhere", None)])
    assert publishers("chat", "e1", [2, 3, 4, 5]) == {3: "ada", 4: "eve"}
    assert publishers("news", "e1", [1, 3]) == {1: "ada"}
    assert publishers("chat", "e2", [3, 4]) == {}
    assert publishers("chate", "1", [3, 4]) == {}


def test_first_one_published_what_two_entries_name() -> None:
    for name in ("ada", "eve"):
        record(entry(name), [("chat", Position(3, "e1"))])
    assert publishers("chat", "e1", [3]) == {3: "ada"}


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 2**64])
def test_offset_that_no_database_stores_has_no_publisher(offset: int) -> None:
    record(entry("ada"), [("chat", Position(offset, "e1"))])
    assert publishers("chat", "e1", [offset]) == ({offset: "ada"} if offset < 2**63 else {})


def test_names_of_any_length_and_kind_are_kept_apart() -> None:
    record(entry("ada", "x" * 5000), [("x" * 5000, Position(1, "\0\udc80"))])
    assert publishers("x" * 5000, "\0\udc80", [1]) == {1: "ada"}
    assert publishers("x" * 4999, "x\0\udc80", [1]) == {}


def test_position_goes_with_its_entry() -> None:
    kept = entry("ada")
    record(kept, [("chat", Position(3, "e1"))])
    LogEntry.objects.all().delete()
    assert not Published.objects.exists()


def test_log_that_another_program_emptied_leaves_nothing_that_names_a_publisher() -> None:
    kept = entry("ada")
    record(kept, [("chat", Position(3, "e1"))])
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {LogEntry._meta.db_table}")
    connection.check_constraints()

    assert publishers("chat", "e1", [3]) == {}

    other = entry("eve", "news")
    LogEntry.objects.filter(id=other.pk).update(id=kept.pk)  # its keys begin anew
    assert publishers("chat", "e1", [3]) == {}


class Router:
    """One that keeps what is of the panel in another database, as far as it is asked."""

    def db_for_write(self, model: type[Model], **hints: object) -> str | None:
        return "another" if model._meta.app_label == "realtime_admin" else None

    db_for_read = db_for_write


def test_positions_are_with_the_log_whatever_a_router_says(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [Router()]
    record(entry("ada"), [("chat", Position(3, "e1"))])
    assert publishers("chat", "e1", [3]) == {3: "ada"}


def test_without_its_table_publications_are_logged_without_a_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = entry("ada")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {Published._meta.db_table}")
    record(kept, [("chat", Position(3, "e1"))])
    assert "has `migrate` run?" in caplog.text
    assert publishers("chat", "e1", [3]) == {}
    assert list(LogEntry.objects.all()) == [kept]


@pytest.mark.parametrize(
    ("position", "before", "own"),
    [
        (Position(4, "e"), None, True),
        (Position(4, "e"), Position(3, "e"), True),
        (Position(3, "e"), Position(3, "e"), False),
        (Position(2, "e"), Position(3, "e"), False),
        (Position(1, "f"), Position(3, "e"), True),
    ],
)
def test_publication_is_own_if_it_was_not_there_before(
    position: Position, before: Position | None, *, own: bool
) -> None:
    assert is_own(position, before) is own
