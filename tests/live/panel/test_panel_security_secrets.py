"""Secrets stay where they belong: out of pages, addresses, logs and reports of errors.

And what opens one door opens no other: tokens of observers, sessions, tokens for tools.
"""

from __future__ import annotations

import re
from contextlib import closing
from urllib.parse import quote

import httpx
import pytest

from tests.live.configurations import Connect
from tests.live.standalone_site import (
    cookie_of,
    data_directory,
    is_open,
    send,
    sign_in,
    visitor,
)
from tests.panel.standalone_parts import (
    ADMIN_SECRET,
    COOKIE,
    PASSWORD,
)
from tests.panel.urls import NAMES, url
from tests.server import API_KEY, SECRET, Server, wait_until


@pytest.fixture
def secrets(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All secrets of that site."""
    key = (data_directory(tmp_path_factory) / "django_secret_key").read_text().strip()
    return [PASSWORD, ADMIN_SECRET, API_KEY, SECRET, key]


# pages and logs


@pytest.mark.urls("messaging_project.urls")
@pytest.mark.parametrize("name", NAMES)
def test_no_page_and_no_line_of_the_log_holds_a_secret(
    server: Server,
    browser: httpx.Client,
    secrets: list[str],
    unique: str,
    name: str,
) -> None:
    token = browser.get("/channel/token/", params={"channel": unique}).json()["token"]
    response = browser.get(url("standalone", name))
    held = (*secrets, browser.cookies[COOKIE], token)
    assert response.status_code < 500
    assert [secret for secret in held if secret in response.text] == []
    assert [secret for secret in held if quote(secret) in str(response.url)] == []
    assert [secret for secret in held if secret in server.log] == []


def test_token_for_tools_and_password_are_not_logged(server: Server) -> None:
    with visitor(server) as tool:
        token = tool.post("/admin/auth", params={"password": PASSWORD}).json()["token"]
        reply = tool.post(
            "/admin/api", content='{"method":"info"}', headers={"Authorization": f"token {token}"}
        )

    assert reply.status_code == 200
    assert token not in server.log
    # a password in an address is the tool's choice (protocol reference, 9); the body is not shown
    assert f"password={PASSWORD}" not in server.log


@pytest.mark.parametrize(
    "path", ["/nothing/", "/channels/nothing/", "/sign-in/x", "/static/../settings.py"]
)
def test_missing_page_tells_nothing_of_the_site(
    server: Server, secrets: list[str], path: str
) -> None:
    with visitor(server) as browser:
        response = browser.get(path)
    assert response.status_code == 404
    assert not any(secret in response.text for secret in secrets)
    assert "urlpatterns" not in response.text
    assert "Traceback" not in response.text


# what opens what


async def test_token_of_an_observer_opens_nothing_else(
    server: Server, browser: httpx.Client, connect: Connect, unique: str
) -> None:
    token = browser.get("/channel/token/", params={"channel": unique}).json()["token"]
    body = '{"method":"publish","params":{"channel":"a","data":1}}'

    with visitor(server, cookies={COOKIE: token, "sessionid": token}) as thief:
        assert not is_open(thief)
        for path, scheme in (("/admin/api", "token"), ("/api", "apikey")):
            headers = {"Authorization": f"{scheme} {token}"}
            assert thief.post(path, content=body, headers=headers).status_code == 401
        assert thief.post(f"/api?api_key={token}", content=body).status_code == 401
    with visitor(server) as thief:
        assert "Wrong password." in sign_in(thief, token).text
    # and it does watch, so it is a good one
    client = await connect(server, token=token)
    server.publish(unique, 1)
    assert await client.publication() == {"data": 1}


def test_session_of_the_panel_opens_nothing_else(server: Server, browser: httpx.Client) -> None:
    session = cookie_of(browser)

    with visitor(server) as thief:
        for scheme in ("token", "apikey"):
            headers = {"Authorization": f"{scheme} {session}"}
            for path in ("/admin/api", "/api"):
                answer = thief.post(path, content='{"method":"info"}', headers=headers)
                assert answer.status_code == 401
    admin = browser.get("/admin/")
    assert admin.url.path == "/admin/login/"
    assert browser.post("/admin/api", content='{"method":"info"}').status_code == 401


# lines of the log


FORGED = "\n2026-01-01 00:00:00,000 INFO realtime.admin_panel: FORGED"


def test_nothing_of_a_request_begins_a_line_of_the_log(
    server: Server, browser: httpx.Client, unique: str
) -> None:
    with visitor(server, FORGED.strip()) as stranger:
        sign_in(stranger, FORGED)
        stranger.get(f"/nothing/{quote(FORGED)}")
        stranger.post(f"/channels/{quote(FORGED)}")
    for path in ("/user/", "/channel/", "/channels/", "/user/disconnect/"):
        browser.get(path, params={"user": FORGED, "channel": FORGED, "q": FORGED})
    send(browser, f"/user/disconnect/?user={quote(unique + FORGED)}")
    send(browser, f"/channel/remove/?channel={quote('demo:' + unique + FORGED)}")
    send(browser, "/publication/", channel=f'"demo:{unique}\\nFORGED"', data='"\\nFORGED"')
    with closing(httpx.Client(base_url=server.address, timeout=20)) as last:
        last.get(f"/{unique}-is-the-last-request")
    wait_until(lambda: f"{unique}-is-the-last-request" in server.log, 10, "the last line")

    for line in re.split("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", server.log):
        assert not line.startswith(("FORGED", FORGED[1:])), line
