"""The site whose pages get tokens from views, as a server: its options, its requests."""

from __future__ import annotations

from typing import Any

import httpx
import jwt

from tests.live.hooks_site import Visitor, create_user
from tests.server import SECRET, Server

OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "client_expired_close_delay": 2,
    "publish": True,
    "namespaces": [
        {"name": "lounge", "presence": True, "join_leave": True},
        {"name": "open", "anonymous": True},
        {"name": "closed", "server_side": True},
        {"name": "odd", "presence": True},
    ],
}
ANONYMOUS = OPTIONS | {"client_anonymous": True, "allowed_origins": ["https://*.example"]}

HEADERS = {"Content-Type": "application/json", "X-Requested-With": "XMLHttpRequest"}
"""What client libraries send along."""


def log_in(server: Server, *groups: str) -> tuple[Visitor, str]:
    """A new user's browser, logged in, and the user ID."""
    username, pk = create_user(server, *groups)
    return Visitor(server, username), pk


def post(
    server: Server,
    path: str,
    body: Any = b"{}",
    *,
    visitor: Visitor | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Ask a view as a page of the site does; `body` is JSON if it is no bytes.

    `visitor`: None for one who is not logged in. `headers` replaces all of `HEADERS`.
    """
    send = httpx.post if visitor is None else visitor.http.post
    return send(
        f"{server.address}/centrifuge/{path}",
        timeout=20,
        headers=HEADERS if headers is None else headers,
        **{"content" if isinstance(body, bytes) else "json": body},
    )


def subscribe(
    server: Server, *channels: str, visitor: Visitor | None = None, client: str = "C"
) -> dict[str, dict[str, Any]]:
    """Ask for subscription tokens; returns the claims of those that came, by channel."""
    response = post(server, "subscribe", {"client": client, "channels": channels}, visitor=visitor)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer.keys() == {"channels"}
    assert all(each.keys() == {"channel", "token"} for each in answer["channels"])
    return {each["channel"]: claims(each["token"]) for each in answer["channels"]}


def claims(token: str) -> dict[str, Any]:
    """The claims of a token, which must be signed with the key of the servers."""
    verified: dict[str, Any] = jwt.decode(token, SECRET, algorithms=["HS256"])
    return verified
