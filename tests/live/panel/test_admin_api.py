"""/admin/auth and /admin/api, as tools of the reference server use them (docs/protocol.md, 9)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from admin_panel.standalone import signin
from realtime.config.options import Config
from realtime.config.reader import load
from tests.live.configurations import Connect
from tests.panel.standalone_parts import ADMIN_SECRET, CONFIG, PASSWORD, new_address
from tests.server import Server

AUTH = "/admin/auth"
API = "/admin/api"
MONTH = 30 * 86400

Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(server: Server) -> Ask:
    """Send a request from an address of the test's own, without cookies."""
    address = new_address()

    def ask(
        path: str, method: str = "POST", *, headers: Mapping[str, str] | None = None, **rest: Any
    ) -> httpx.Response:
        headers = {"X-Forwarded-For": address, **(headers or {})}
        return httpx.request(method, server.address + path, headers=headers, timeout=30, **rest)

    return ask


@pytest.fixture
def token(ask: Ask) -> str:
    """A token that the service gave."""
    found: str = ask(AUTH, data={"password": PASSWORD}).json()["token"]
    return found


def run(ask: Ask, token: str, *commands: object) -> list[dict[str, Any]]:
    """Run commands as the reference server's web panel does; returns the replies."""
    response = ask(
        API,
        content="\n".join(map(json.dumps, commands)),
        headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
    )
    assert response.status_code == 200
    return [json.loads(line) for line in response.text.splitlines()]


# auth


WAYS: dict[str, dict[str, Any]] = {
    "form": {"data": {"password": PASSWORD}},
    "query": {"params": {"password": PASSWORD}},
    "multipart form": {"files": {"password": (None, PASSWORD)}},
    "query beside a JSON body": {"params": {"password": PASSWORD}, "json": {}},
}


@pytest.mark.parametrize("way", WAYS)
def test_password_gives_a_token(ask: Ask, way: str) -> None:
    response = ask(AUTH, **WAYS[way])
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.text.endswith("}\n")
    assert set(response.json()) == {"token"}
    assert "Set-Cookie" not in response.headers
    (reply,) = run(ask, response.json()["token"], {"method": "channels"})
    assert "result" in reply


REFUSED: dict[str, dict[str, Any]] = {
    "wrong password": {"data": {"password": PASSWORD + "!"}},
    "beginning of the password": {"data": {"password": PASSWORD[:-1]}},
    "JSON instead of a form": {"json": {"password": PASSWORD}},
    "no password": {},
    "empty password": {"data": {"password": ""}},
    "first value is wrong": {"data": {"password": ["no", PASSWORD]}},
    "form comes before the query": {
        "data": {"password": "no"},
        "params": {"password": PASSWORD},
    },
    "form that is not UTF-8": {
        "content": b"password=x",
        "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=latin-1"},
    },
    "too many fields": {"data": {f"f{number}": "" for number in range(1001)}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_password_is_a_bad_request(ask: Ask, case: str) -> None:
    response = ask(AUTH, **REFUSED[case])
    assert (response.status_code, response.text) == (400, "Bad Request\n")
    assert response.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", [AUTH, API])
def test_other_methods_are_refused_with_an_empty_body(ask: Ask, path: str, method: str) -> None:
    response = ask(path, method, params={"password": PASSWORD})
    assert (response.status_code, response.content) == (405, b"")


def test_tokens_differ_and_right_passwords_are_not_counted(ask: Ask) -> None:
    tokens = {ask(AUTH, data={"password": PASSWORD}).json()["token"] for _ in range(12)}
    assert len(tokens) == 12
    assert not any(set(token) & set(" \t,;\"'") for token in tokens)


# api


@pytest.mark.parametrize("scheme", ["token", "Token", "TOKEN"])
def test_scheme_is_in_any_case(ask: Ask, token: str, scheme: str) -> None:
    response = ask(
        API, content='{"method":"info"}', headers={"Authorization": f"{scheme}  {token}"}
    )
    assert response.status_code == 200


def other_config(**options: object) -> Config:
    return load(
        {"admin": True, "admin_password": PASSWORD, "admin_secret": ADMIN_SECRET, **options}
    )


def sealed_session(now: float) -> str:
    return signin.seal(CONFIG, signin.begin(now))


REFUSED_HEADERS: dict[str, Callable[[float], str | None]] = {
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
    "session of a browser": lambda now: f"token {sealed_session(now)}",
}


@pytest.mark.parametrize("case", REFUSED_HEADERS)
def test_commands_without_a_valid_token_are_refused(ask: Ask, case: str) -> None:
    value = REFUSED_HEADERS[case](time.time())
    headers = {} if value is None else {"Authorization": value.encode("latin-1")}
    response = ask(API, content='{"method":"info"}', headers=headers)
    assert (response.status_code, response.content) == (401, b"")


def test_token_is_valid_for_30_days(ask: Ask) -> None:
    old = signin.issue_token(CONFIG, time.time() - MONTH + 60)
    (reply,) = run(ask, old, {"method": "channels"})
    assert "result" in reply


async def test_actions_of_the_reference_panel_do_their_work(
    ask: Ask, token: str, server: Server, connect: Connect, unique: str
) -> None:
    channel = f"demo:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})
    data = {"n": 1}
    place = {"channel": channel}

    replies = run(
        ask,
        token,
        {"method": "publish", "params": {**place, "data": data}},
        {"method": "broadcast", "params": {"channels": [channel, f"{channel}-b"], "data": data}},
        {"method": "presence_stats", "params": place},
        {"method": "presence", "params": place},
        {"method": "history", "params": place},
        {"method": "channels", "params": {}},
        {"method": "history_remove", "params": place},
        {"method": "history", "params": place},
        {"method": "unsubscribe", "params": {"user": unique, **place}},
        {"method": "disconnect", "params": {"user": unique}},
    )

    assert not [reply for reply in replies if "error" in reply]
    results = [reply["result"] for reply in replies]
    assert results[0] == results[1] == results[6] == results[8] == results[9] == {}
    assert results[2] == {"num_clients": 1, "num_users": 1}
    assert [info["user"] for info in results[3]["presence"].values()] == [unique]
    assert [kept["data"] for kept in results[4]["publications"]] == [data, data]
    assert channel in results[5]["channels"]
    assert results[7] == {"publications": []}
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')


def test_bodies_and_statuses_are_those_of_the_server_api(ask: Ask, token: str) -> None:
    headers = {"Authorization": f"token {token}", "Content-Type": "text/special"}
    empty = ask(API, content=b"", headers=headers)
    broken = ask(API, content=b"{", headers=headers)
    good = ask(API, content=b'{"id":3,"method":"presence","params":{}}', headers=headers)
    assert [(r.status_code, r.text) for r in (empty, broken)] == [(400, "Bad Request\n")] * 2
    assert good.headers["Content-Type"] == "text/special"
    assert good.json() == {"id": 3, "error": {"code": 107, "message": "bad request"}}


def test_body_beyond_the_limit_is_refused(ask: Ask, token: str) -> None:
    headers = {"Authorization": f"token {token}"}
    response = ask(API, content=b" " * 3_000_000, headers=headers)
    assert response.status_code == 413
