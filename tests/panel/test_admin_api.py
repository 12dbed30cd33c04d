"""/admin/auth and /admin/api: passwords, tokens and methods (docs/protocol.md, 9).

No client is served in this process: a command with a valid token is answered 503.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django import Settings

from admin_panel.standalone import signin
from realtime.config.options import Config
from realtime.config.reader import load
from tests.panel.standalone_parts import CONFIG, ON, PASSWORD, new_address

AUTH = "/admin/auth"
API = "/admin/api"
MONTH = 30 * 86400
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def tool(settings: Settings) -> Client:
    """A tool with an address of its own."""
    settings.REALTIME = ON
    return Client(headers={"X-Forwarded-For": new_address()})


def form(**fields: Any) -> dict[str, Any]:
    return {"data": urlencode(fields, doseq=True), "content_type": FORM}


QUERY = {"query_params": {"password": PASSWORD}}
JSON = {"content_type": "application/json"}

WAYS: Mapping[str, dict[str, Any]] = {
    "form": form(password=PASSWORD),
    "query": QUERY,
    "multipart form": {"data": {"password": PASSWORD}},
    "query beside a JSON body": {**QUERY, **JSON, "data": {}},
}


@pytest.mark.parametrize("way", WAYS)
def test_password_gives_a_token(tool: Client, way: str) -> None:
    response = tool.post(AUTH, **WAYS[way])
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    assert response.content.endswith(b"}\n")
    assert set(response.json()) == {"token"}
    assert not response.cookies
    assert run(tool, f"token {response.json()['token']}") == 503


REFUSED: Mapping[str, dict[str, Any]] = {
    "wrong password": form(password=PASSWORD + "!"),
    "beginning of the password": form(password=PASSWORD[:-1]),
    "JSON instead of a form": {**JSON, "data": {"password": PASSWORD}},
    "no password": {},
    "empty password": form(password=""),
    "first value is wrong": form(password=["no", PASSWORD]),
    "form comes before the query": form(password="no") | QUERY,
    "form that is not UTF-8": {"data": b"password=x", "content_type": f"{FORM}; charset=latin-1"},
    "too many fields": form(**{f"f{number}": "" for number in range(1001)}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_password_is_a_bad_request(tool: Client, case: str) -> None:
    response = tool.post(AUTH, **REFUSED[case])
    assert (response.status_code, response.content) == (400, b"Bad Request\n")
    assert response["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", [AUTH, API])
def test_other_methods_are_refused_with_an_empty_body(tool: Client, path: str, method: str) -> None:
    response = tool.generic(method, path, QUERY_STRING=urlencode({"password": PASSWORD}))
    assert (response.status_code, response.content) == (405, b"")


def test_tokens_differ_and_right_passwords_are_not_counted(tool: Client) -> None:
    tokens = {tool.post(AUTH, {"password": PASSWORD}).json()["token"] for _ in range(12)}
    assert len(tokens) == 12
    assert not any(set(token) & set(" \t,;\"'") for token in tokens)


# commands


def run(tool: Client, authorization: str | None) -> int:
    """The status of a command with that header."""
    headers = {} if authorization is None else {"Authorization": authorization}
    response = tool.post(API, '{"method":"info"}', content_type="text/plain", headers=headers)
    assert response.status_code == 503 or response.content == b""
    return response.status_code


@pytest.mark.parametrize("scheme", ["token", "Token", "TOKEN"])
def test_scheme_is_in_any_case_and_a_token_is_valid_for_30_days(tool: Client, scheme: str) -> None:
    token = signin.issue_token(CONFIG, time.time() - MONTH + 60)
    assert run(tool, f"{scheme}  {token}") == 503


def other_config(**options: object) -> Config:
    return load(ON | options)


REFUSED_HEADERS: Mapping[str, Callable[[float], str | None]] = {
    "none": lambda now: None,
    "empty": lambda now: "",
    "scheme alone": lambda now: "token",
    "token alone": lambda now: signin.issue_token(CONFIG, now),
    "other scheme": lambda now: f"apikey {signin.issue_token(CONFIG, now)}",
    "three words": lambda now: f"token {signin.issue_token(CONFIG, now)} x",
    "insecure": lambda now: "token insecure",
    "password": lambda now: f"token {PASSWORD.replace(' ', '')}",
    "changed": lambda now: f"token {signin.issue_token(CONFIG, now)}x",
    "no ASCII": lambda now: "token \xfc:\xfc",
    "signed with another secret": lambda now: (
        f"token {signin.issue_token(other_config(admin_secret='another' * 9), now)}"
    ),
    "of the password before": lambda now: (
        f"token {signin.issue_token(other_config(admin_password='the one before'), now)}"
    ),
    "30 days old": lambda now: f"token {signin.issue_token(CONFIG, now - MONTH)}",
    "session of a browser": lambda now: f"token {signin.seal(CONFIG, signin.begin(now))}",
}


@pytest.mark.parametrize("case", REFUSED_HEADERS)
def test_commands_without_a_valid_token_are_refused(tool: Client, case: str) -> None:
    assert run(tool, REFUSED_HEADERS[case](time.time())) == 401


def test_body_beyond_the_limit_is_refused(tool: Client) -> None:
    headers = {"Authorization": f"token {signin.issue_token(CONFIG, time.time())}"}
    response = tool.post(API, b" " * 3_000_000, content_type="text/plain", headers=headers)
    assert response.status_code == 413
