"""The console: the API's methods, the layout of JSON, and a process that serves no clients."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from admin_panel.pages.console import FLASH, laid_out
from admin_panel.pages.console_methods import BY_NAME, METHODS, command
from realtime.server_api import methods
from tests.panel.paths import page_path
from tests.panel.urls import signed_in

PATH = page_path("console")
RUN = page_path("console/run")


def test_every_method_of_the_api_is_offered_with_an_example_it_accepts() -> None:
    assert set(BY_NAME) == set(methods.METHOD_NUMBERS) - {"rpc"}  # only clients call it
    for row in methods.METHODS:
        if row.name in BY_NAME:
            row.decode(BY_NAME[row.name].example.encode())


LAID_OUT = [
    (b'{"a":1.50}', '{\n  "a": 1.50\n}'),
    (rb'"\ud83d"', r'"\ufffd"'),
    (b'{"a":"' + b"x" * 30_000 + b'"}', '{\n  "a": "' + "x" * 30_000 + '"\n}'),
]


@pytest.mark.parametrize(("text", "shown"), LAID_OUT, ids=["numbers", "half a pair", "long"])
def test_json_is_indented_and_nothing_else(text: bytes, shown: str) -> None:
    assert laid_out(text) == shown


def test_json_that_is_nested_deeply_is_not_blown_up() -> None:
    nested = b"[" * 500 + b"]" * 500
    text = b"[" + b",".join([nested] * 50) + b"]"
    assert len(laid_out(text)) < 2 * len(text)


def test_command_the_api_would_refuse_has_no_targets() -> None:
    assert command(BY_NAME["publish"], '{"channel": 1}').targets == []
    assert command(BY_NAME["publish"], "").targets == []


# what is offered


@pytest.mark.django_db
@pytest.mark.parametrize("method", [*BY_NAME, "nope"])
def test_page_of_a_method_has_its_example_in_the_form(admin_client: Client, method: str) -> None:
    html = admin_client.get(page_path("console", method=method)).content.decode()
    shown = BY_NAME.get(method, METHODS[0])
    assert re.search(rf'<option value="{shown.name}"[^>]* selected>', html)
    area = html.partition("<textarea")[2].partition("</textarea>")[0]
    assert shown.example in unescape(area)


OFFERED = {
    "view": set(),
    "publish": {"publish", "broadcast"},
    "publish_demo": {"publish", "broadcast"},
    "disconnect": {"disconnect"},
    "unsubscribe": {"unsubscribe"},
    "remove_history": {"history_remove"},
}


@pytest.mark.django_db
@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("codename", OFFERED)
def test_method_that_changes_something_is_offered_with_its_permission_only(codename: str) -> None:
    html = signed_in("view", codename).get(PATH).content.decode()
    changes = {method.name for method in METHODS if method.change}
    assert set(re.findall(r'<option value="(\w+)"', html)) & changes == OFFERED[codename]


# where no client is served


@pytest.mark.django_db
def test_console_says_that_the_service_is_away_and_keeps_the_form(admin_client: Client) -> None:
    fields = {"method": "history", "params": '{"channel": "kept"}'}
    page = admin_client.post(PATH, fields)
    answer = admin_client.post(RUN, fields)
    assert (page.status_code, answer.status_code) == (503, 503)
    assert "This process serves no clients" in page.content.decode()
    assert "{&quot;channel&quot;: &quot;kept&quot;}" in page.content.decode()
    assert "This process serves no clients" in answer.json()["html"]


# after an update


@pytest.mark.django_db
def test_answer_that_another_release_kept_is_not_shown(admin_client: Client) -> None:
    session = admin_client.session
    session[FLASH] = {"method": "info", "params": "", "of_old": 1}
    session.save()
    assert admin_client.get(PATH).status_code == 200
