"""Secrets stay out of pages, logs and reports of errors, in a process that serves no clients."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.views.debug import ExceptionReporter
from pytest_django import Settings

from admin_panel import people
from admin_panel.people import Question
from admin_panel.standalone import panel, signin
from realtime.auth import issue, verifier
from realtime.config.reader import load
from tests.panel.standalone_parts import (
    ADMIN_SECRET,
    CONFIG,
    COOKIE,
    PASSWORD,
    SIGN_IN,
    new_address,
)
from tests.panel.urls import NAMES, WITHOUT_SERVICE, configure, url
from tests.panel.urls import signed_in as sign_in


@pytest.fixture
def _redis_is_away(settings: Settings) -> None:
    configure(settings, redis_url="redis://me:hush-hush@127.0.0.1:1/0")
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://me:hush-hush@127.0.0.1:1/0",
        }
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("_redis_is_away")
@pytest.mark.parametrize("name", NAMES)
def test_password_of_redis_is_not_shown_while_redis_is_away(
    home: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = sign_in("view", "publish", "disconnect")
    with caplog.at_level(logging.DEBUG):
        response = client.get(url(home, name))
    may = name not in ("channel_remove", "user_block")
    asks_redis = name == "overview_data" or (WITHOUT_SERVICE[name] == 503 and may)
    assert (b"<h2>Redis cannot be reached</h2>" in response.content) is asks_redis
    assert b"hush-hush" not in response.content
    assert "hush-hush" not in caplog.text


@pytest.mark.usefixtures("_redis_is_away")
def test_password_of_redis_is_not_logged_when_the_cache_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        Client(headers={"X-Forwarded-For": new_address()}).post(SIGN_IN, {"password": "wrong"})
    assert "The Redis does not answer" in caplog.text
    assert "hush-hush" not in caplog.text


def report(act: Callable[[HttpRequest], object]) -> str:
    """What an e-mail about an exception would say in production."""
    request = RequestFactory().post(SIGN_IN, headers={"Authorization": f"token {TOKEN}"})
    request.COOKIES[COOKIE] = SESSION
    try:
        act(request)
    except Exception:  # whichever it is: the report of it is what counts
        kind, error, trace = sys.exc_info()
        reporter = ExceptionReporter(request, kind, error, trace, is_email=True)
        return reporter.get_traceback_text() + reporter.get_traceback_html()
    raise AssertionError("nothing was raised")


WRONG_TIME: Any = "no time"
SESSION = signin.seal(CONFIG, signin.OperatorSession("x", 1, 1))
TOKEN = signin.issue_token(CONFIG, 1)
PASTED = Question(user="17", channel="$a", action="subscribe", token=TOKEN)
NO_REPORTS: Any = None
NO_CHANNEL: Any = None
CRASHES: dict[str, Callable[[HttpRequest], object]] = {
    "password": lambda _: signin.try_password(CONFIG, PASSWORD, "192.0.2.1", WRONG_TIME),
    "session": lambda _: signin.read(CONFIG, SESSION, WRONG_TIME),
    "token": lambda _: signin.is_token(CONFIG, TOKEN, WRONG_TIME),
    "cookie": panel.session_of,
    "pasted token, judged": lambda _: people.judge(PASTED, NO_REPORTS),
    "pasted token, explained": lambda _: people.explain(
        Question(user="17", channel=NO_CHANNEL, action="subscribe", token=TOKEN)
    ),
}
"""Credential, and a crash while it is looked at."""


@pytest.mark.parametrize("what", CRASHES)
def test_report_of_a_crash_holds_no_credential(settings: Settings, what: str) -> None:
    settings.DEBUG = False
    settings.REALTIME = {"no_such_option": 1}  # which is what the last one trips over
    text = report(CRASHES[what])
    assert "TypeError" in text or "InvalidOptions" in text
    for secret in (SESSION, TOKEN, PASSWORD, ADMIN_SECRET):
        assert secret not in text


SUBSCRIPTION_TOKEN = issue.user_subscription_token(
    load({"token_hmac_secret_key": ADMIN_SECRET}), "17", "$a", ttl=600
)


@pytest.mark.parametrize(
    "verify",
    [
        lambda _: people.inspect(SUBSCRIPTION_TOKEN),
        lambda _: people.judge(
            Question(user="17", channel="$a", action="subscribe", token=SUBSCRIPTION_TOKEN), []
        ),
    ],
    ids=["inspect", "judge"],
)
def test_report_of_a_crash_in_the_verifier_holds_no_pasted_token(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, verify: Callable[[HttpRequest], object]
) -> None:
    settings.DEBUG = False
    configure(settings, token_hmac_secret_key=ADMIN_SECRET)
    monkeypatch.setattr(verifier._Signers, "verified", None)
    text = report(verify)
    assert "TypeError" in text
    assert SUBSCRIPTION_TOKEN not in text
