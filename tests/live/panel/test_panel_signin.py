"""The panel by itself: TLS, hosts, processes with one Redis, what its operator publishes."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from admin_panel.standalone.shared_operator import PLACEHOLDER_NAME
from tests.live.configurations import Connect
from tests.live.standalone_site import cookie_of, is_open, send, serve_panel, sign_in, visitor
from tests.panel.standalone_parts import COOKIE, SIGN_IN, SIGN_OUT, begin_counting, new_address
from tests.redis_server import RedisServer
from tests.server import Server

Serve = Callable[..., Server]


def test_wrong_passwords_are_not_logged_and_other_hosts_are_refused(server: Server) -> None:
    with visitor(server) as browser:
        sign_in(browser, "a wrong one, not to be logged")
        assert browser.get(SIGN_IN, headers={"Host": "evil.example"}).status_code == 400
    assert "not to be logged" not in server.log


def test_cookie_is_secure_under_tls(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = serve_panel(serve, tmp_path_factory, server="daphne-tls")
    with visitor(server, follow=False) as browser:
        (header,) = [
            header
            for header in sign_in(browser).headers.get_list("Set-Cookie")
            if header.startswith(f"{COOKIE}=")
        ]
        assert "; Secure" in header
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


async def test_operator_with_the_password_publishes(
    browser: httpx.Client, server: Server, connect: Connect, unique: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": unique})
    send(browser, "/publication/", channel=unique, data='{"text":"hi"}')
    assert await client.publication() == {"data": {"text": "hi"}}
    row = browser.get("/publication/").text.partition(unique)[0].rpartition("<tr>")[2]
    assert PLACEHOLDER_NAME in row
