"""Signing in to the panel with the shared password: attempts, sessions, where one gets to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from django.core.signing import Signer

from admin_panel.standalone import signin
from realtime.config.reader import load
from tests.live.standalone_site import cookie_of, is_open, send, serve_panel, sign_in, visitor
from tests.panel.standalone_parts import (
    ADMIN_SECRET,
    CONFIG,
    COOKIE,
    PASSWORD,
    SIGN_IN,
    SIGN_OUT,
    begin_counting,
    new_address,
)
from tests.redis_server import RedisServer
from tests.server import Server

HOUR = 3600
DAY = 86400

Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The ready site with its panel."""
    return serve_panel(serve, tmp_path_factory)


@pytest.fixture
def browser(server: Server) -> Iterator[httpx.Client]:
    """A browser without JavaScript that was never here."""
    with visitor(server) as browser:
        yield browser


def set_cookies(response: httpx.Response) -> list[str]:
    """The Set-Cookie headers that are about the session."""
    headers = response.headers.get_list("Set-Cookie")
    return [header for header in headers if header.startswith(f"{COOKIE}=")]


def attributes(header: str) -> dict[str, str]:
    """What a Set-Cookie header says beside the value; names are lower case."""
    pairs = (part.strip().partition("=") for part in header.split(";")[1:])
    return {name.lower(): value for name, _, value in pairs}


# with the password, and without


def test_password_opens_the_panel(browser: httpx.Client) -> None:
    assert not is_open(browser)
    response = sign_in(browser)
    assert response.history[0].status_code == 302
    assert (response.status_code, response.url.path) == (200, "/")
    assert is_open(browser)


@pytest.mark.parametrize("given", [PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1], "\u00fc", "0"])
def test_another_password_does_not(browser: httpx.Client, given: str) -> None:
    response = sign_in(browser, given)
    assert response.status_code == 200
    assert "Wrong password." in response.text
    assert given not in re.sub(r"<[^>]*csrf[^>]*>", "", response.text) or given == "0"
    assert COOKIE not in browser.cookies
    assert not is_open(browser)


def test_no_password_is_no_attempt(server: Server) -> None:
    with visitor(server) as browser:
        for _ in range(12):
            assert "This field is required." in sign_in(browser, "").text
        sign_in(browser)
        assert is_open(browser)


def test_passwords_are_not_logged(server: Server, browser: httpx.Client) -> None:
    sign_in(browser, "a wrong one, not to be logged")
    sign_in(browser)
    assert "not to be logged" not in server.log
    assert PASSWORD not in server.log
    assert cookie_of(browser) not in server.log


def test_sign_in_page_runs_our_own_files_only_and_is_in_no_frame(browser: httpx.Client) -> None:
    response = browser.get(SIGN_IN)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in response.headers["Cache-Control"]
    assert not re.search(r"<style|<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=", response.text)


# attempts


def test_too_many_attempts_must_wait_and_learn_nothing(server: Server) -> None:
    begin_counting()
    address = new_address()
    with visitor(server, address) as browser:
        wrong = [sign_in(browser, "wrong").status_code for _ in range(10)]
        answers = [sign_in(browser, given) for given in ("wrong", PASSWORD)]

        assert wrong == [200] * 10
        assert [answer.status_code for answer in answers] == [429, 429]
        texts = {re.sub(r'value="\w{64}"', "", answer.text) for answer in answers}
        notes = {re.findall(r'id="error"[^>]*>([^<]*)<', text)[0] for text in texts}
        assert all(re.match(r"Too many attempts\. Try again in \d+ (min|sec)", n) for n in notes)
        assert all(0 < int(answer.headers["Retry-After"]) <= 600 for answer in answers)
        assert COOKIE not in browser.cookies
    # a /64 is one address, and the endpoint for tools is no way around
    with visitor(server, address.replace("::1", "::2")) as browser:
        assert sign_in(browser).status_code == 429
        assert browser.post("/admin/auth", data={"password": PASSWORD}).status_code == 429


def test_others_may_sign_in_meanwhile(server: Server) -> None:
    begin_counting()
    with visitor(server) as browser:
        while sign_in(browser, "wrong").status_code != 429:
            pass
    with visitor(server) as browser:
        sign_in(browser)
        assert is_open(browser)


def test_address_is_the_one_that_our_proxy_saw(server: Server) -> None:
    begin_counting()
    address = new_address()
    statuses = []
    for number in range(11):
        with visitor(server, f"192.0.2.{number}, {address}") as browser:
            statuses.append(sign_in(browser, "wrong").status_code)
    assert statuses == [200] * 10 + [429]


# where one gets to


@pytest.mark.parametrize("path", ["/", "/channels/?q=a%26b", "/publication/", "/overview/data/"])
def test_page_that_was_asked_for_is_shown_after_signing_in(
    browser: httpx.Client, path: str
) -> None:
    asked = browser.get(path)
    (target,) = re.findall(r'name="next" value="([^"]*)"', asked.text)
    response = sign_in(browser, next=target)
    assert asked.url.path == SIGN_IN
    assert response.url.raw_path.decode() == path


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
def test_signing_in_leads_to_no_other_site(server: Server, target: str) -> None:
    with visitor(server, follow=False) as browser:
        response = sign_in(browser, next=target)
    assert (response.status_code, response.headers["Location"]) == (302, "/")


@pytest.mark.parametrize("target", ELSEWHERE[:6])
def test_whoever_is_signed_in_is_led_to_no_other_site(server: Server, target: str) -> None:
    with visitor(server, follow=False) as browser:
        sign_in(browser)
        response = browser.get(SIGN_IN, params={"next": target})
    assert (response.status_code, response.headers["Location"]) == (302, "/")


def test_host_that_is_not_ours_is_refused(browser: httpx.Client) -> None:
    assert browser.get(SIGN_IN, headers={"Host": "evil.example"}).status_code == 400


# the cookie


def test_cookie_is_for_the_panel_alone(server: Server) -> None:
    with visitor(server, follow=False) as browser:
        (header,) = set_cookies(sign_in(browser))

    found = attributes(header)
    assert "httponly" in found
    assert found["samesite"] == "Strict"
    assert found["path"] == "/"
    assert int(found["max-age"]) == 12 * HOUR
    assert "domain" not in found
    assert "secure" not in found


def test_cookie_is_secure_under_tls(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = serve_panel(serve, tmp_path_factory, server="daphne-tls")
    with visitor(server, follow=False) as browser:
        (header,) = set_cookies(sign_in(browser))
        assert "secure" in attributes(header)
        assert is_open(browser)


def test_every_sign_in_begins_a_session_that_nobody_could_know(server: Server) -> None:
    with visitor(server) as attacker, visitor(server) as victim:
        sign_in(attacker)
        planted = cookie_of(attacker)
        victim.cookies.set(COOKIE, planted, domain="127.0.0.1")
        sign_in(victim)
        assert id_of(cookie_of(victim)) != id_of(planted)
        assert is_open(victim)
        assert not is_open(attacker), "the session before the sign-in goes on"


def id_of(value: str) -> str:
    """The ID of the session in a cookie."""
    session = signin.read(CONFIG, value, time.time())
    assert session is not None
    return session.id


def changed(**options: object) -> Callable[[float], str]:
    """The cookie of an installation with other options."""
    config = load(
        {"admin": True, "admin_password": PASSWORD, "admin_secret": ADMIN_SECRET} | options
    )
    return lambda now: signin.seal(config, signin.begin(now))


def aged(*, since: float, seen: float) -> Callable[[float], str]:
    """A cookie of these ages in seconds."""
    return lambda now: signin.seal(
        CONFIG, signin.OperatorSession("x", int(now - since), int(now - seen))
    )


FORGED: dict[str, Callable[[float], str]] = {
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
def test_cookie_that_is_forged_or_over_opens_nothing(server: Server, case: str) -> None:
    with visitor(server, cookies={COOKIE: FORGED[case](time.time())}) as browser:
        assert not is_open(browser)


GOOD = {
    "new": aged(since=0, seen=0),
    "used almost 12 hours ago": aged(since=DAY, seen=12 * HOUR - 60),
    "almost 30 days old": aged(since=30 * DAY - 60, seen=10),
}


@pytest.mark.parametrize("case", GOOD)
def test_cookie_in_its_time_opens_the_panel(server: Server, case: str) -> None:
    with visitor(server, cookies={COOKIE: GOOD[case](time.time())}) as browser:
        assert is_open(browser)


@pytest.mark.parametrize(
    ("since", "seen", "left"),
    [
        pytest.param(DAY, 11 * HOUR, 12 * HOUR, id="12 hours from now"),
        pytest.param(30 * DAY - HOUR, 11 * HOUR, HOUR, id="not beyond the 30 days"),
    ],
)
def test_session_that_is_used_is_prolonged(
    server: Server, since: int, seen: int, left: int
) -> None:
    with visitor(server, cookies={COOKIE: aged(since=since, seen=seen)(time.time())}) as browser:
        (header,) = set_cookies(browser.get("/channels/"))
    assert left - 60 <= int(attributes(header)["max-age"]) <= left


def test_cookie_is_not_sent_anew_with_every_request(browser: httpx.Client) -> None:
    sign_in(browser)
    assert set_cookies(browser.get("/channels/")) == []


# signing out


def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(server: Server) -> None:
    with visitor(server) as browser:
        sign_in(browser)
        copy = cookie_of(browser)

        response = send(browser, SIGN_OUT)

        assert response.url.path == SIGN_IN
        assert "You are signed out." in response.text
        assert COOKIE not in browser.cookies
    with visitor(server, cookies={COOKIE: copy}) as thief:
        assert not is_open(thief)


def test_signing_out_takes_a_form_of_our_own(browser: httpx.Client) -> None:
    sign_in(browser)
    assert browser.get(SIGN_OUT).status_code == 405
    assert browser.post(SIGN_OUT).status_code == 403
    assert is_open(browser)


def test_processes_with_one_redis_share_sessions_that_ended_and_attempts(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> None:
    one, other = (
        serve_panel(serve, tmp_path_factory, SERVICE_REDIS_URL=redis_server.url, SERVICE_NAME=name)
        for name in ("one", "other")
    )
    address = new_address()
    with visitor(one, address) as browser:
        sign_in(browser)
        copy = cookie_of(browser)
        with visitor(other, cookies={COOKIE: copy}) as elsewhere:
            assert is_open(elsewhere)
            send(browser, SIGN_OUT)
            assert not is_open(elsewhere)
        begin_counting()
        for _ in range(10):
            sign_in(browser, "wrong")
    with visitor(other, address) as browser:
        assert sign_in(browser).status_code == 429
