"""What operators do, as entries of the admin's log."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

import realtime
from admin_panel import audit
from admin_panel.answering import Unavailable, answering
from admin_panel.operators import UserOperator
from realtime.errors import EngineUnavailable, NoReply
from tests.panel.paths import page_path

KINDS = [
    (audit.PUBLISH, "publication", ADDITION),
    (audit.DISCONNECT, "connection", DELETION),
    (audit.UNSUBSCRIBE, "connection", DELETION),
    (audit.REMOVE_HISTORY, "channel", DELETION),
    (audit.RETRY, "channel", ADDITION),
    (audit.DROP, "channel", DELETION),
]


@pytest.fixture
def operator(admin_user: User) -> UserOperator:
    """An operator who is signed in."""
    return UserOperator(admin_user)


@pytest.mark.parametrize(
    ("kind", "model", "flag"),
    KINDS,
    ids=["publish", "disconnect", "unsubscribe", "history", "retry", "drop"],
)
def test_entry_tells_who_did_what_to_whom(
    operator: UserOperator, admin_user: User, kind: audit.ActionKind, model: str, flag: int
) -> None:
    with operator.logged(kind, "the target"):
        pass

    entry = LogEntry.objects.get()
    assert entry.user == admin_user
    assert (entry.object_id, entry.object_repr) == ("the target", "the target")
    assert entry.content_type
    assert (entry.content_type.app_label, entry.content_type.model) == ("realtime_admin", model)
    assert entry.action_flag == flag
    assert entry.get_change_message() == str(kind.words)


NAMES = [
    ["one"],
    ["one", "two"],
    ["a b", '"q', "x"],
    ["line\nbreak"],
    ["line\nbreak", "other"],
    ["c" * 255],
]


@pytest.mark.parametrize("names", NAMES, ids=repr)
def test_act_is_one_entry_with_all_its_targets(operator: UserOperator, names: list[str]) -> None:
    with operator.logged(audit.PUBLISH, *names, detail="1"):
        pass
    [entry] = audit.entries(audit.PUBLISH)
    assert (audit.targets_of(entry), audit.detail_of(entry)) == (names, "1")
    assert audit.kind_of(entry) is audit.PUBLISH
    for name in names:
        assert audit.Filter(target=name).newest(2) == [entry]


def test_entry_keeps_only_what_the_act_has_reached(operator: UserOperator) -> None:
    entry = operator.log(audit.PUBLISH, ["a", "b", "c"])
    gone = operator.log(audit.PUBLISH, ["d"])
    audit.narrow(entry, ["a", "c"])
    audit.narrow(gone, [])
    [left] = LogEntry.objects.all()
    assert (audit.targets_of(left), left.object_repr) == (["a", "c"], "a, c")


@pytest.mark.parametrize("kind", audit.kinds(), ids=lambda kind: kind.code)
def test_kind_is_known_whatever_the_language_of_the_operator(
    operator: UserOperator, kind: audit.ActionKind
) -> None:
    with translation.override("de"):
        entry = operator.log(kind, ["target"], "detail")
    assert audit.kind_of(entry) is kind
    assert list(audit.entries(kind)) == [entry]
    assert [each for each in audit.kinds() if list(audit.entries(each))] == [kind]


ENTRIES_OF = {
    "target": ({"target": "chat:a"}, ["a", "ab"]),
    "no part of a name": ({"target": "chat"}, []),
    "text in the data": ({"text": "NEEDLE"}, ["b"]),
    "text in a name": ({"text": "17"}, ["user"]),
    "a wildcard is text": ({"text": "%"}, []),
    "operator": ({"operator": "OTH"}, ["user"]),
    "kind": ({"kind": audit.PUBLISH}, ["a", "ab", "b"]),
    "two at once": ({"kind": audit.DISCONNECT, "operator": "admin"}, []),
}
"""A filter, and the entries that pass, oldest first."""


@pytest.mark.parametrize(("fields", "found"), ENTRIES_OF.values(), ids=ENTRIES_OF)
def test_filter_finds_entries(
    operator: UserOperator, fields: dict[str, Any], found: list[str]
) -> None:
    other = UserOperator(User.objects.create_user("other"))
    entries = {
        "a": operator.log(audit.PUBLISH, ["chat:a"], "1"),
        "ab": operator.log(audit.PUBLISH, ["chat:b", "chat:a"], "1"),
        "b": operator.log(audit.PUBLISH, ["chat:b"], '"a needle"'),
        "user": other.log(audit.DISCONNECT, ["17"]),
    }

    passed = audit.Filter(**fields).newest(10)

    assert [name for name, entry in entries.items() if entry in passed] == found
    assert len(passed) == len(found)


def test_nothing_is_logged_when_it_failed(operator: UserOperator) -> None:
    with pytest.raises(RuntimeError), operator.logged(audit.DISCONNECT, "17"):
        raise RuntimeError
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("detail", ['[{"added": {}}]', '{"a": ": "}', "x: y", "1"])
@pytest.mark.django_db
def test_detail_is_read_back_as_it_was(operator: UserOperator, detail: str) -> None:
    operator.log(audit.PUBLISH, ["news"], detail)
    entry = LogEntry.objects.get()
    assert audit.detail_of(entry) == detail
    assert entry.get_change_message() == f"{audit.PUBLISH.words}: {detail}"


def test_long_detail_is_cut(operator: UserOperator) -> None:
    operator.log(audit.PUBLISH, ["news"], "x" * (audit.DETAIL_MAX_LENGTH + 1))
    detail = audit.detail_of(LogEntry.objects.get())
    assert detail == "x" * audit.DETAIL_MAX_LENGTH + "…"


@pytest.mark.parametrize(("error", "kept"), [(NoReply, ["17"]), (EngineUnavailable, [])])
def test_act_that_may_be_done_without_an_answer_is_logged(
    operator: UserOperator, error: type[EngineUnavailable], kept: list[str]
) -> None:
    with (
        pytest.raises(Unavailable),
        operator.logged(audit.DISCONNECT, "17"),
        answering(),
    ):
        raise error("late")
    assert [entry.object_id for entry in LogEntry.objects.all()] == kept


@pytest.mark.parametrize(("error", "kept"), [(NoReply, ["a"]), (EngineUnavailable, [])])
def test_publication_that_may_be_out_is_logged_and_not_called_refused(
    admin_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    error: type[EngineUnavailable],
    kept: list[str],
) -> None:
    def late(*arguments: object, **named: object) -> None:
        raise error("late")

    monkeypatch.setattr(realtime, "publish", late)
    form = {"channel": "a b", "data": "1", "confirmed": "1"}

    html = admin_client.post(page_path("publication"), form).content.decode()

    assert ("It may have been published." in html) is bool(kept)
    assert ("Nothing was published." in html) is not bool(kept)
    assert [entry.object_id for entry in LogEntry.objects.all()] == kept
