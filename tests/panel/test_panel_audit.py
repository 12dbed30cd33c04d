"""What operators do, as entries of the admin's log."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.models import User

from admin_panel import audit
from admin_panel.operators import UserOperator

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
    operator: UserOperator, admin_user: User, kind: audit.Kind, model: str, flag: int
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


def test_each_target_has_an_entry(operator: UserOperator) -> None:
    with operator.logged(audit.PUBLISH, "one", "two", detail="1"):
        pass

    found = audit.entries(audit.PUBLISH)
    assert {entry.object_id: audit.detail_of(entry) for entry in found} == {"one": "1", "two": "1"}


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


def test_longest_channel_is_logged_whole(operator: UserOperator) -> None:
    operator.log(audit.REMOVE_HISTORY, ["c" * 255])

    assert LogEntry.objects.get().object_id == "c" * 255
