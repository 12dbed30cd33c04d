"""Requests to the panel that no page of it makes: without a CSRF token, with odd methods.

And what every answer is sent with. No client is served in this process; pages say so.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django import Settings

from tests.panel.standalone_parts import COOKIE
from tests.panel.urls import ASKED_BY_SCRIPTS, NAMES, OPTIONS, WITHOUT_SERVICE, url
from tests.panel.urls import signed_in as sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured")]

UNSAFE = ("post", "put", "patch", "delete")


# forms of other sites


TOKENS = {
    "no token": {},
    "an empty token": {"csrfmiddlewaretoken": ""},
    "another token": {"csrfmiddlewaretoken": "a" * 64},
    "a token that is none": {"csrfmiddlewaretoken": "<script>"},
}


def is_refused(response: Any) -> bool:
    """Whether a form lacks the token of its page."""
    return response.status_code == 403 and b"CSRF" in response.content


@pytest.mark.parametrize("has_middleware", [True, False], ids=["middleware", "no middleware"])
def test_every_form_needs_the_token_of_its_page(
    settings: Settings, home: str, has_middleware: bool
) -> None:
    if not has_middleware:  # a site may have chosen to protect its views one by one
        settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "Csrf" not in each]
    client = sign_in(superuser=True, enforce_csrf_checks=True)
    client.get(url(home, "publish"))
    assert "csrftoken" in client.cookies
    forms = [*((name, "another token") for name in NAMES), *(("publish", case) for case in TOKENS)]

    taken = [
        (name, case)
        for name, case in forms
        if not is_refused(client.post(url(home, name), TOKENS[case] | {"confirmed": "x"}))
    ]

    assert taken == []


def test_token_of_a_page_is_accepted_from_its_own_site_only(home: str) -> None:
    client = sign_in(superuser=True, enforce_csrf_checks=True)
    client.get(url(home, "publish"))
    fields = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}

    refused = {
        origin: [
            name
            for name in NAMES
            if is_refused(client.post(url(home, name), fields, headers={"Origin": origin}))
        ]
        for origin in ("https://evil.example", "http://testserver")
    }

    assert refused == {"https://evil.example": NAMES, "http://testserver": []}


@pytest.mark.parametrize(
    "referer",
    [{}, {"Referer": "https://evil.example/"}, {"Referer": "http://testserver/"}],
    ids=["none", "another site", "not encrypted"],
)
def test_encrypted_form_needs_a_referer_of_its_own_site(home: str, referer: dict[str, str]) -> None:
    client = sign_in(superuser=True, enforce_csrf_checks=True)
    client.get(url(home, "publish"), secure=True)
    fields = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    response = client.post(url(home, "publish"), fields, secure=True, headers=referer)
    assert response.status_code == 403


ALLOWED = {"/sign-in/": "GET, HEAD, POST", "/sign-out/": "POST"}


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("has_middleware", [True, False], ids=["middleware", "no middleware"])
def test_ways_in_and_out_need_a_token_too(
    settings: Settings, path: str, method: str, has_middleware: bool
) -> None:
    if not has_middleware:
        settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "Csrf" not in each]
    client = sign_in(superuser=True, enforce_csrf_checks=True)

    response = getattr(client, method)(path, {"password": OPTIONS["admin_password"]})

    if has_middleware or method == "post":
        assert response.status_code == 403
    else:
        assert (response.status_code, response["Allow"]) == (405, ALLOWED[path])
    assert COOKIE not in client.cookies
    assert "_auth_user_id" in client.session


# methods


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_method_that_no_page_uses_is_refused(home: str, method: str) -> None:
    client = sign_in(superuser=True)
    for name in NAMES:
        response = getattr(client, method)(url(home, name))
        assert (name, response.status_code) == (name, 405)
        assert response["Allow"], name
        assert_protected(response)


@pytest.mark.parametrize("name", sorted(ASKED_BY_SCRIPTS))
def test_part_that_takes_a_form_is_not_read(home: str, name: str) -> None:
    response = sign_in(superuser=True).get(url(home, name))
    assert (response.status_code, response["Allow"]) == (405, "POST")


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
@pytest.mark.parametrize(
    "name", ["user_disconnect", "user_unsubscribe", "channel_remove", "publish", "console"]
)
def test_reading_stays_reading_whatever_a_header_or_field_says(
    home: str, name: str, header: str
) -> None:
    client = sign_in(superuser=True)
    fields = {"_method": "POST", "method": "disconnect", "params": '{"user": "42"}', "data": "1"}
    asked = client.get(url(home, name), headers={header: "POST"})
    said = client.get(url(home, name, **fields), headers={header: "POST"})
    assert (asked.status_code, said.status_code) == (WITHOUT_SERVICE[name],) * 2
    assert b"was run" not in said.content
    assert not LogEntry.objects.exists()


# what every answer is sent with


POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self' ws://testserver",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


def assert_protected(response: Any) -> None:
    """No other site shows it, nothing but our files runs in it, nobody keeps it."""
    asked = f"{response.request['REQUEST_METHOD']} {response.request['PATH_INFO']}"
    assert set(response["Content-Security-Policy"].split("; ")) == POLICY, asked
    assert response["X-Frame-Options"] == "DENY", asked
    assert response["X-Content-Type-Options"] == "nosniff", asked
    assert response["Referrer-Policy"] == "same-origin", asked
    assert "no-store" in response["Cache-Control"], asked
    assert "private" in response["Cache-Control"], asked


@pytest.mark.parametrize("codename", ["view", "publish"])
def test_every_answer_is_protected_those_that_refuse_too(home: str, codename: str) -> None:
    client = sign_in(codename)
    for name in NAMES:
        assert_protected(client.get(url(home, name)))
        assert_protected(client.post(url(home, name)))


@pytest.mark.parametrize("path", ["/", "/sign-in/", "/channels/?q=a", "/channel/token/?channel=a"])
def test_what_a_visitor_gets_is_protected(path: str) -> None:
    assert_protected(Client().get(path, headers={"X-Forwarded-For": "192.0.2.1"}))


@pytest.mark.parametrize("path", ["/sign-in/", "/sign-out/"])
@pytest.mark.parametrize("password", [OPTIONS["admin_password"], "wrong"])
def test_answer_to_signing_in_and_out_is_protected(path: str, password: str) -> None:
    client = Client(headers={"X-Forwarded-For": "192.0.2.2"})
    assert_protected(client.post(path, {"password": password}))


@pytest.mark.parametrize("path", ["/admin/auth", "/admin/api"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_endpoints_for_tools_are_not_kept_and_not_sniffed(path: str, method: str) -> None:
    response = getattr(Client(), method)(path)
    assert "no-store" in response["Cache-Control"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert not response.cookies


# hosts


def test_no_header_makes_a_page_name_another_host(home: str) -> None:
    client = sign_in(superuser=True)
    headers = {
        "X-Forwarded-Host": "evil.example",
        "X-Host": "evil.example",
        "Forwarded": "host=evil.example",
        "X-Forwarded-Server": "evil.example",
        "X-Original-URL": "//evil.example/",
        "X-Rewrite-URL": "//evil.example/",
        "Referer": "https://evil.example/",
    }

    for name in NAMES:
        ask = client.post if name in ASKED_BY_SCRIPTS else client.get
        response = ask(url(home, name), headers=headers)

        assert b"evil" not in response.content, name
        assert "evil" not in str(response.headers), name


LEADS_TO = {"user_unsubscribe": "user", "user_disconnect": "user", "channel_data": "channel"}
"""Part that redirects where its query is wrong → the page it leads to."""


@pytest.mark.parametrize("name", LEADS_TO)
def test_script_part_of_an_action_leads_to_no_other_site(home: str, name: str) -> None:
    client = sign_in(superuser=True)
    elsewhere = {"next": "//evil.example/", "url": "//evil.example/", "back": "//evil.example/"}
    query = elsewhere | {"user": "", "channel": "//evil.example/", "offset": "x"}
    response = client.post(url(home, name, **query), headers={"Referer": "//evil.example/"})
    assert response.status_code == 302
    assert response["Location"].startswith(url(home, LEADS_TO[name]).partition("?")[0])
