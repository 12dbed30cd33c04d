"""Typed channels on the publish page: their types, and what is refused or worth a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

import realtime
from realtime.config import sources
from realtime.testing import TestService
from realtime.typed.declarations import declarations
from tests.unit.typed.shop import Changed, Comment, Rating

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/admin/realtime_admin/publication/"
OPTIONS = {"namespaces": [{"name": "orders", "history_size": 5, "history_lifetime": 60}]}
MISFIT = (
    "Not of the type declared for orders:1: Changed: Expected `int`, got `str` - at `$.lines`;"
    " Comment: Object missing required field `text`."
)


@pytest.fixture(autouse=True)
def site(settings: Settings) -> Iterator[None]:
    """A site with a typed channel, and a service."""
    before = declarations.all
    declarations.replace([])
    realtime.channel("orders:{pk}", sends=Changed, accepts=Comment)
    settings.REALTIME = OPTIONS
    yield
    declarations.replace(before)
    sources.configuration.declare(declarations if before else None)


@pytest.fixture
def operator(site: None) -> Client:
    """A browser with a superuser signed in."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def publish(operator: Client, data: object, channel: str = "orders:1", **more: str) -> str:
    """The page that follows."""
    form = {"channel": channel, "data": json.dumps(data), **more}
    return unescape(operator.post(PAGE, form, follow=True).content.decode())


def types_of(html: str) -> list[str]:
    return re.findall(r"<summary><code>(.*?)</code>", html)


def examples_of(html: str) -> list[Any]:
    return [
        json.loads(unescape(text))
        for text in re.findall(r"data-example[^>]*>(.*?)</pre>", html, re.S)
    ]


def test_types_are_shown_with_examples_that_fit(operator: Client) -> None:
    with TestService():
        html = publish(operator, {}, "orders:1 news orders:2", check="1")
        for example in examples_of(html):
            realtime.publish("orders:1", example)
    assert html.count("Types declared for <code>orders:{pk}</code>") == 1
    assert types_of(html) == ["Changed", "Comment"]
    assert examples_of(html) == [{"type": "Changed", "lines": 0}, {"text": "text", "stars": 0}]
    assert '"description": "An order has other lines."' in html


def test_other_channels_show_nothing(operator: Client) -> None:
    with TestService():
        html = publish(operator, {}, "news", check="1")
    assert "Types declared" not in html


def test_script_gets_the_types_with_the_reach(operator: Client) -> None:
    with TestService():
        answer = operator.post("/admin/realtime_admin/publication/reach/", {"channel": "orders:1"})
    assert types_of(answer.json()["types"]) == ["Changed", "Comment"]


def test_data_of_another_type_are_refused(operator: Client) -> None:
    with TestService():
        html = publish(operator, {"type": "Changed", "lines": "1"})
        kept = realtime.history("orders:1")
    assert MISFIT in html
    assert "Nothing was published." in html
    assert kept == []
    assert LogEntry.objects.count() == 0


def test_data_of_the_type_are_published(operator: Client) -> None:
    with TestService():
        html = publish(operator, {"type": "Changed", "lines": 1})
        kept = realtime.history("orders:1")
    assert "Published into orders:1." in html
    assert [each["data"] for each in kept] == [{"type": "Changed", "lines": 1}]


@pytest.mark.parametrize(("mode", "warns"), [("log", True), ("off", False)])
def test_option_lets_them_through_with_a_warning_or_without(
    operator: Client, settings: Settings, mode: str, warns: bool
) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": mode}
    with TestService():
        html = publish(operator, {"type": "Changed", "lines": "1"})
        kept = realtime.history("orders:1")
    assert "Published into orders:1." in html
    assert (MISFIT in html) is warns
    assert len(kept) == 1


def test_type_that_cannot_be_used_is_no_failure_of_the_page(operator: Client) -> None:
    declarations.replace([])
    realtime.channel("orders:{pk}", sends=object)
    realtime.channel("news", sends=Rating)
    with TestService():
        html = publish(operator, {"stars": 3}, "orders:1 news", check="1")
    assert types_of(html) == ["Rating"]
