"""The page of the log: what operators did, found by operator, kind, target, text and day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django import Settings

from admin_panel import audit
from admin_panel.operators import UserOperator
from admin_panel.pages import log
from admin_panel.publishing.forms import TagsField
from tests.panel.urls import configure, url
from tests.panel.urls import signed_in as sign_in

pytestmark = pytest.mark.django_db

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture(autouse=True)
def _configured(settings: Settings) -> None:
    configure(settings)
    settings.TIME_ZONE = "UTC"


@pytest.fixture
def operator() -> UserOperator:
    """An operator who is not the one that looks."""
    return UserOperator(User.objects.create_user("ada"))


def rows(client: Client, home: str, **query: str) -> list[str]:
    """The rows of the page, as text in one line each."""
    response = client.get(url(home, "log", **query))
    assert response.status_code == 200
    body = response.content.decode().partition('id="log"')[2].partition("<tbody>")[2]
    found = body.partition("</tbody>")[0].split("</tr>")[:-1]
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split()) for row in found]


def at(entry: LogEntry, time: datetime) -> None:
    LogEntry.objects.filter(pk=entry.pk).update(action_time=time)


def test_entry_shows_when_who_did_what_to_which_channels(home: str, operator: UserOperator) -> None:
    entry = operator.log(audit.PUBLISH, ["demo:a", "<b>", "c", "d", "e", "f"], '{"a": 1}')
    at(entry, NOON)
    [row] = rows(sign_in("view"), home)
    assert row == f"{NOON:%Y-%m-%d} 12:00:00 ada Published demo:a <b> c d e and 1 more f" + (
        ' {"a": 1}'
    )


def test_every_kind_of_entry_is_shown_and_those_of_the_admin_itself_are_not(
    home: str, operator: UserOperator
) -> None:
    for kind in audit.kinds():
        operator.log(kind, ["target"], "detail")
    unknown = operator.log(audit.DISCONNECT, ["target"])
    LogEntry.objects.filter(pk=unknown.pk).update(change_message="Beamed up: 3", action_flag=CHANGE)
    LogEntry.objects.create(user=User.objects.get(), action_flag=CHANGE, change_message="theirs")

    found = rows(sign_in("view"), home)

    assert len(found) == len(audit.kinds()) + 1
    assert "Beamed up target 3" in found[0]
    for kind, row in zip(reversed(audit.kinds()), found[1:], strict=True):
        assert f"{kind.words} target detail" in row


def test_yesterday_is_one_link_and_its_days_are_those_of_the_time_zone(
    home: str, operator: UserOperator
) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    times = {
        "today": midnight,
        "late": midnight - timedelta(seconds=1),
        "early": midnight - timedelta(days=1),
        "before": midnight - timedelta(days=1, seconds=1),
    }
    for name, time in times.items():
        at(operator.log(audit.PUBLISH, [name]), time)
    client = sign_in("view")
    page = client.get(url(home, "log")).content.decode()
    [link] = re.findall(r'href="([^"]*)">Yesterday<', page)

    text = client.get(unescape(link)).content.decode()

    assert [name for name in times if f">{name}<" in text] == ["late", "early"]
    assert re.search(r'aria-current="true">Yesterday<', text)


def test_page_after_page_shows_each_entry_once_with_the_filter_kept(
    home: str, operator: UserOperator
) -> None:
    for number in range(log.PAGE_SIZE + 1):
        operator.log(audit.PUBLISH, [f"n{number}"])
    operator.log(audit.DISCONNECT, ["17"])
    client = sign_in("view")
    first = client.get(url(home, "log", kind="Published")).content.decode()
    [link] = re.findall(r'id="log-older" href="([^"]*)"', first)

    second = client.get(unescape(link)).content.decode()

    shown = re.findall(r"<bdi class=\"panel-name\">(n\d+|17)</bdi>", first + second)
    assert shown == [f"n{number}" for number in range(log.PAGE_SIZE, -1, -1)]
    assert "log-older" not in second


HOSTILE = [
    {"since": "2026-13-99", "until": "x"},
    {"since": "0001-01-01", "until": "9999-12-31"},
    {"before": "9" * 18},
    {"before": "9" * 5000},
    {"before": "-1"},
    {"before": "\u0663"},
    {"kind": "nothing", "operator": "%", "target": "\0", "q": "\0" * 400},
]


@pytest.mark.parametrize("query", HOSTILE, ids=repr)
def test_any_query_has_an_answer(home: str, operator: UserOperator, query: dict[str, str]) -> None:
    operator.log(audit.PUBLISH, ["demo:a"])
    assert len(rows(sign_in("view"), home, **query)) in (0, 1)


def test_publication_can_be_published_again_where_the_operator_may(
    home: str, operator: UserOperator
) -> None:
    mine = operator.log(audit.PUBLISH, ["demo:a", "chat:b"], '{"n": 1.50}')
    theirs = operator.log(audit.PUBLISH, ["chat:b"], "2")
    client = sign_in("view", "publish_demo")
    page = client.get(url(home, "log")).content.decode()

    assert re.findall(r'id="use-(\d+)"', page) == [str(mine.pk)]
    form = client.get(url(home, "publish", use=str(mine.pk))).content.decode()
    assert re.findall(r"<textarea[^>]*>\s*([^<]*)</textarea>", unescape(form))[:2] == [
        "demo:a",
        '{"n": 1.50}',
    ]
    refused = client.get(url(home, "publish", use=str(theirs.pk))).content.decode()
    assert "no longer listed" in refused
    assert "chat:b" not in refused.partition('id="publish-form"')[2]


def test_data_that_the_log_has_cut_are_not_published_again(
    home: str, operator: UserOperator
) -> None:
    entry = operator.log(audit.PUBLISH, ["demo:a"], '"' + "x" * 600 + '"')
    client = sign_in("publish")
    assert "Use the channels again" in client.get(url(home, "publish")).content.decode()
    form = client.get(url(home, "publish", use=str(entry.pk))).content.decode()
    assert re.findall(r"<textarea[^>]*>\s*([^<]*)</textarea>", form)[:2] == ["demo:a", ""]
    assert "only the beginning of the data" in form


@pytest.mark.parametrize(
    ("tags", "text"),
    [({"b": "2", "a": "x=y"}, "a=x=y\nb=2"), ({"a": "1\n2"}, ""), ({"a": "x "}, ""), ({}, "")],
    ids=repr,
)
def test_tags_are_filled_in_only_if_the_form_would_read_them_back(
    tags: dict[str, str], text: str
) -> None:
    assert TagsField.written(tags) == text


def test_page_to_publish_is_there_when_the_log_cannot_be_read(home: str) -> None:
    client = sign_in(superuser=True)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {LogEntry._meta.db_table}")
    form, again = client.get(url(home, "publish")), client.get(url(home, "publish", use="1"))
    assert (form.status_code, again.status_code) == (200, 200)
    assert "The log cannot be read" in again.content.decode()
    assert client.get(url(home, "log")).status_code == 503
