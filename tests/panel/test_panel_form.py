"""The form of the publish page: what it refuses, and where it says the mistake is.

In this process no client is served, so nothing can be published from here.
"""

from __future__ import annotations

from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from admin_panel.publishing.forms import PublishForm
from tests.panel.publish_parts import BROKEN

PAGE = "/admin/realtime_admin/publication/"


@pytest.mark.parametrize(
    ("text", "line", "column"), BROKEN, ids=[repr(text) for text, _, _ in BROKEN]
)
def test_error_names_line_and_column(text: str, line: int, column: int) -> None:
    form = PublishForm({"channel": "a", "data": text})
    [error] = form.errors["data"]
    assert f"line {line}, column {column}:" in error


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, null]}', "null", "0", '""', " [] ", "1e400", "9" * 5000, '"\\ud800"', '"NaN"'],
    ids=["object", "null", "zero", "empty", "spaces", "large", "digits", "surrogate", "word"],
)
def test_json_value_of_any_kind_is_kept_as_typed(text: str) -> None:
    form = PublishForm({"channel": "a", "data": text})
    assert form.errors == {}
    assert form.cleaned_data["data"] == text


@pytest.mark.parametrize("field", ["channel", "data"])
def test_both_fields_are_required(field: str) -> None:
    form = PublishForm({"channel": "a", "data": "1"} | {field: ""})
    assert list(form.errors) == [field]


def test_deep_nesting_is_an_error_of_the_form() -> None:
    form = PublishForm({"channel": "a", "data": "[" * 100_000 + "]" * 100_000})
    assert form.errors["data"] == ["Nested too deeply."]


@pytest.fixture
def operator(db: None) -> Client:
    """A browser with a superuser signed in."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def test_broken_json_stays_in_the_field(operator: Client) -> None:
    response = operator.post(PAGE, {"channel": "a", "data": '{"text": <hi>'})
    page = response.content.decode()
    textarea = page.partition('<textarea name="data"')[2].partition("</textarea>")[0]
    assert unescape(textarea.partition(">")[2]).strip() == '{"text": <hi>'
    assert "line 1, column 10" in page


def test_process_without_clients_says_so_and_logs_nothing(operator: Client) -> None:
    response = operator.post(PAGE, {"channel": "a", "data": "1"})
    assert response.status_code == 200
    assert "This process serves no clients" in response.content.decode()
    assert LogEntry.objects.count() == 0


@pytest.mark.parametrize("page", [PAGE, "/admin/realtime_admin/channel/?channel=nope/a"])
def test_help_names_the_boundary_that_is_configured(
    operator: Client, settings: Settings, page: str
) -> None:
    settings.REALTIME = {"channel_namespace_boundary": "/"}
    assert "The text before <code>/</code>" in operator.get(page).content.decode()


# tags, version and more


def extras(**fields: str) -> PublishForm:
    return PublishForm({"channel": "a", "data": "1"} | fields)


def test_what_is_rarely_needed_is_read() -> None:
    form = extras(
        tags=" team=red\n\nformula=a=b\r\nempty=",
        once=" k ",
        version="18446744073709551615",
        version_epoch="b",
    )

    assert form.errors == {}
    assert form.has_more
    assert form.extras == {
        "tags": {"team": "red", "formula": "a=b", "empty": ""},
        "once": "k",
        "version": 2**64 - 1,
        "version_epoch": "b",
    }


def test_what_is_rarely_needed_may_be_missing() -> None:
    lone, without = extras(skip_history="on"), extras()
    assert lone.errors == without.errors == {}
    assert (lone.extras, without.extras) == ({"skip_history": True}, {})
    assert (lone.has_more, without.has_more) == (True, False)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"tags": "team=red\nred"}, "tags"),
        ({"tags": "team=\ud800"}, "tags"),
        ({"tags": "team=a\0"}, "tags"),
        ({"once": "\ud800"}, "once"),
        ({"version": "0"}, "version"),
        ({"version": "18446744073709551616"}, "version"),
        ({"version": "1.5"}, "version"),
        ({"version": "2", "skip_history": "on"}, "version"),
        ({"version_epoch": "b"}, "version_epoch"),
        ({"version": "2", "version_epoch": "x" * 256}, "version_epoch"),
    ],
    ids=ascii,
)
def test_mistakes_in_it_are_said_at_their_field(fields: dict[str, str], wrong: str) -> None:
    form = extras(**fields)
    assert list(form.errors) == [wrong]
    assert form.has_more
