"""Signing in to the panel with the shared password: attempts, sessions, the page that follows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from http.cookies import Morsel
from typing import Any

import pytest
from django.core.signing import Signer
from django.test import Client
from pytest_django import Settings

from admin_panel.standalone import signin
from realtime.config.reader import load
from tests.panel.standalone_parts import (
    ADMIN_SECRET,
    CONFIG,
    COOKIE,
    ON,
    PASSWORD,
    SIGN_IN,
    SIGN_OUT,
    begin_counting,
    is_open,
    new_address,
)

pytestmark = pytest.mark.django_db

HOUR = 3600
DAY = 86400


@pytest.fixture(autouse=True)
def _panel(settings: Settings) -> None:
    settings.REALTIME = ON


def visitor(address: str = "", cookie: str = "") -> Client:
    """A browser from an address of its own, with a cookie of the panel."""
    client = Client(headers={"X-Forwarded-For": address or new_address()})
    if cookie:
        client.cookies[COOKIE] = cookie
    return client


def sign_in(client: Client, password: str = PASSWORD, **fields: str) -> Any:
    return client.post(SIGN_IN, {"password": password, **fields})


def cookie_in(response: Any) -> Morsel[str]:
    """The session that a response sets."""
    morsel: Morsel[str] = response.cookies[COOKIE]
    return morsel


# with the password, and without


def test_password_opens_the_panel() -> None:
    client = visitor()
    assert not is_open(client)
    response = sign_in(client)
    assert (response.status_code, response["Location"]) == (302, "/")
    assert is_open(client)


OTHERS = [PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1], "\u00fc", "0", PASSWORD * 50_000]


@pytest.mark.parametrize("given", OTHERS, ids=lambda given: ascii(given)[:30])
def test_another_password_does_not(given: str) -> None:
    client = visitor()
    response = sign_in(client, given)
    text = response.content.decode()
    assert response.status_code == 200
    assert "Wrong password." in text
    assert given not in re.sub(r"<[^>]*csrf[^>]*>", "", text) or given == "0"
    assert COOKIE not in client.cookies
    assert not is_open(client)


@pytest.mark.parametrize("method", ["get", "head"])
def test_password_in_an_address_signs_nobody_in(method: str) -> None:
    client = visitor()
    response = getattr(client, method)(SIGN_IN, {"password": PASSWORD})
    assert response.status_code == 200
    assert PASSWORD not in response.content.decode()
    assert not is_open(client)


def test_no_password_is_no_attempt() -> None:
    client = visitor()
    for _ in range(12):
        assert b"This field is required." in sign_in(client, "").content
    sign_in(client)
    assert is_open(client)


def test_too_many_attempts_must_wait_and_learn_nothing() -> None:
    begin_counting()
    address = new_address()
    client = visitor(f"192.0.2.1, {address}")
    wrong = [sign_in(client, "wrong").status_code for _ in range(10)]
    answers = [sign_in(client, given) for given in ("wrong", PASSWORD)]

    assert wrong == [200] * 10
    assert [answer.status_code for answer in answers] == [429, 429]
    texts = {re.sub(r'value="\w{64}"', "", answer.content.decode()) for answer in answers}
    notes = {re.findall(r'id="error"[^>]*>([^<]*)<', text)[0] for text in texts}
    assert all(re.match(r"Too many attempts\. Try again in \d+ (min|sec)", n) for n in notes)
    assert COOKIE not in client.cookies
    # a /64 is one address, and the endpoint for tools is no way around
    other = visitor(address.replace("::1", "::2"))
    answers += [sign_in(other), *(attempt_of_tool(other, given) for given in ("no", PASSWORD))]
    assert [answer.status_code for answer in answers[2:]] == [429] * 3
    assert answers[3].content == answers[4].content
    assert all(0 < int(answer["Retry-After"]) <= 600 for answer in answers)
    elsewhere = visitor()
    sign_in(elsewhere)
    assert is_open(elsewhere)


def attempt_of_tool(client: Client, password: str) -> Any:
    return client.post("/admin/auth", {"password": password})


# the page that follows


@pytest.mark.parametrize("path", ["/", "/channels/?q=a%26b", "/publication/", "/overview/data/"])
def test_page_that_was_asked_for_is_shown_after_signing_in(path: str) -> None:
    client = visitor()
    asked = client.get(path, follow=True)
    (target,) = re.findall(r'name="next" value="([^"]*)"', asked.content.decode())
    assert asked.request["PATH_INFO"] == SIGN_IN
    assert sign_in(client, next=target)["Location"] == path


ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example",
    r"/\evil.example",
    r"\\evil.example",
    "/\t/evil.example",
    "javascript:alert(1)",
    "http:evil.example",
    "evil.example",
    "",
    "\x00/",
]


@pytest.mark.parametrize("target", ELSEWHERE)
def test_signing_in_leads_to_no_other_site(target: str) -> None:
    client = visitor()
    answers = [sign_in(client, next=target), client.get(SIGN_IN, {"next": target})]
    assert [(each.status_code, each["Location"]) for each in answers] == [(302, "/")] * 2


# the cookie


@pytest.mark.parametrize("secure", [False, True])
def test_cookie_is_for_the_panel_alone(secure: bool) -> None:
    response = visitor().post(SIGN_IN, {"password": PASSWORD}, secure=secure, headers=OWN_PAGE)
    cookie = cookie_in(response)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert int(cookie["max-age"]) == 12 * HOUR
    assert not cookie["domain"]
    assert bool(cookie["secure"]) is secure


OWN_PAGE = {"Referer": "https://testserver/sign-in/"}


def test_every_sign_in_begins_a_session_that_nobody_could_know() -> None:
    attacker = visitor()
    planted = cookie_in(sign_in(attacker)).value
    planted_id = id_of(planted)
    victim = visitor(cookie=planted)
    assert id_of(cookie_in(sign_in(victim)).value) != planted_id
    assert is_open(victim)
    assert not is_open(attacker), "the session before the sign-in goes on"


def id_of(value: str) -> str:
    """The ID of the session in a cookie."""
    session = signin.read(CONFIG, value, time.time())
    assert session is not None
    return session.id


def changed(**options: object) -> Callable[[float], str]:
    """The cookie of an installation with other options."""
    return lambda now: signin.seal(load(ON | options), signin.begin(now))


def aged(*, since: float, seen: float) -> Callable[[float], str]:
    """A cookie of these ages in seconds."""
    return lambda now: signin.seal(
        CONFIG, signin.OperatorSession("x", int(now - since), int(now - seen))
    )


FORGED: Mapping[str, Callable[[float], str]] = {
    "another signature": lambda now: signin.seal(CONFIG, signin.begin(now))[:-1] + "_",
    "another beginning": lambda now: "A" + signin.seal(CONFIG, signin.begin(now)),
    "no signature": lambda now: signin.seal(CONFIG, signin.begin(now)).partition(":")[0],
    "empty signature": lambda now: signin.seal(CONFIG, signin.begin(now)).partition(":")[0] + ":",
    "a token for tools": lambda now: signin.issue_token(CONFIG, now),
    "signed with the secret alone": lambda now: Signer(
        key=ADMIN_SECRET, salt="realtime_admin.session"
    ).sign_object(["x", int(now), int(now)]),
    "signed by another secret": changed(admin_secret="another one that is as long as it"),
    "of the password before": changed(admin_password="the one before this one"),
    "not used for 12 hours": aged(since=12 * HOUR, seen=12 * HOUR),
    "30 days old": aged(since=30 * DAY, seen=10),
    "nonsense": lambda now: "nonsense",
    "no text": lambda now: "%00%ff:",
}


@pytest.mark.parametrize("case", FORGED)
def test_cookie_that_is_forged_or_over_opens_nothing(case: str) -> None:
    value = FORGED[case](time.time())
    client = visitor(cookie=value)
    assert not is_open(client)
    assert client.get("/channels/", headers={"Authorization": f"token {value}"}).status_code == 302


GOOD = {
    "new": aged(since=0, seen=0),
    "used almost 12 hours ago": aged(since=DAY, seen=12 * HOUR - 60),
    "almost 30 days old": aged(since=30 * DAY - 60, seen=10),
}


@pytest.mark.parametrize("case", GOOD)
def test_cookie_in_its_time_opens_the_panel(case: str) -> None:
    assert is_open(visitor(cookie=GOOD[case](time.time())))


@pytest.mark.parametrize(
    ("since", "seen", "left"),
    [
        pytest.param(DAY, 11 * HOUR, 12 * HOUR, id="12 hours from now"),
        pytest.param(30 * DAY - HOUR, 11 * HOUR, HOUR, id="not beyond the 30 days"),
    ],
)
def test_session_that_is_used_is_prolonged(since: int, seen: int, left: int) -> None:
    client = visitor(cookie=aged(since=since, seen=seen)(time.time()))
    cookie = cookie_in(client.get("/channels/"))
    assert left - 60 <= int(cookie["max-age"]) <= left


def test_cookie_is_not_sent_anew_with_every_request() -> None:
    client = visitor()
    sign_in(client)
    assert COOKIE not in client.get("/channels/").cookies


# signing out


def test_signing_out_ends_the_session_for_every_copy_of_the_cookie() -> None:
    client = visitor()
    copy = cookie_in(sign_in(client)).value
    assert client.get(SIGN_OUT).status_code == 405
    assert is_open(client)

    response = client.post(SIGN_OUT, follow=True)

    assert response.request["PATH_INFO"] == SIGN_IN
    assert b"You are signed out." in response.content
    assert not client.cookies[COOKIE].value
    assert not is_open(visitor(cookie=copy))
