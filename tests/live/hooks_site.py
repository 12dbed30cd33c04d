"""The site with hooks and a login, as a server: its options, its database, its visitors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import new_word
from tests.processes import run_python
from tests.server import ROOT, Server

PASSWORD = "long enough for a test"

ROOM = {"presence": True, "join_leave": True, "publish": True}
OPTIONS: dict[str, Any] = {
    "session_authentication": True,
    "namespaces": [
        {"name": "room", **ROOM},
        {"name": "stock"},
        {"name": "device", "presence": True},
        {"name": "ask", "anonymous": True, **ROOM},
        {"name": "slow"},
        {"name": "closed", "server_side": True},
        {"name": "members"},
    ],
    "client_anonymous": False,
    "presence": True,
}

_databases: dict[Path, dict[str, str]] = {}

ELSEWHERE = "https://elsewhere.example"


def environment(tmp_path_factory: pytest.TempPathFactory, site: str = "hooks") -> dict[str, str]:
    """What a server process of a site needs; all of them use one database, made once."""
    base = tmp_path_factory.getbasetemp()
    if base not in _databases:
        database = tmp_path_factory.mktemp("database") / "db.sqlite3"
        made = {
            "DJANGO_SETTINGS_MODULE": "tests.site.settings_hooks",
            "TEST_DATABASE": str(database),
        }
        run_python(
            ["-m", "django", "migrate", "--verbosity", "0"], ROOT, os.environ | made
        ).check_returncode()
        _databases[base] = made
    return _databases[base] | {"DJANGO_SETTINGS_MODULE": f"tests.site.settings_{site}"}


class Visitor:
    """A browser without JavaScript at one server, logged in as a user."""

    def __init__(self, server: Server, username: str, password: str = PASSWORD) -> None:
        self.username = username
        # nothing stays open, so nothing has to be closed
        limits = httpx.Limits(max_keepalive_connections=0)
        self.http = httpx.Client(
            base_url=server.address, follow_redirects=True, timeout=20, limits=limits
        )
        self.send("/login", username=username, password=password)
        assert self.who() == username

    @property
    def session_key(self) -> str:
        return self.http.cookies["sessionid"]

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a WebSocket handshake: those of a page of the site."""
        origin = str(self.http.base_url).rstrip("/")
        return {"Cookie": f"sessionid={self.session_key}", "Origin": origin}

    def send(self, path: str, **fields: str) -> httpx.Response:
        """Fill in a form, as the page that shows it does."""
        if "csrftoken" not in self.http.cookies:
            self.http.get("/login")
        fields["csrfmiddlewaretoken"] = self.http.cookies["csrftoken"]
        response = self.http.post(path, data=fields)
        assert response.status_code == 200, response.text
        return response

    def log_out(self) -> None:
        self.send("/logout")
        assert self.who() == ""

    def who(self) -> str:
        """Who Django says this is; "" for nobody."""
        username: str = self.http.get("/who").json()["user"]
        return username


def do(server: Server, action: str, **arguments: Any) -> Any:
    """Have the site do something to users or sessions; see tests/site/chat/views.py."""
    response = httpx.post(f"{server.address}/do/{action}", json=arguments, timeout=20)
    assert response.status_code == 200, response.text
    return response.json()["result"]


def create_user(server: Server, *groups: str, **fields: Any) -> tuple[str, str]:
    """A new user who is a member of these groups: username and user ID."""
    username = new_word()
    pk = do(server, "create", username=username, password=PASSWORD, groups=groups, **fields)
    return username, str(pk)
