"""Session login: a client without a token is who its Django session says."""

from __future__ import annotations

import pytest

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import ELSEWHERE, Visitor, create_user
from tests.server import Server

REFUSED = (3003, '{"reason":"bad request","reconnect":false}')


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site with a login."""
    return site()


async def refused(connect: Connect, server: Server, headers: dict[str, str]) -> bool:
    """Whether a client with these headers is told that nobody knows it."""
    client = await connect(server, user=None, connected=False, additional_headers=headers)
    await client.send("connect")
    return bool(await client.closed() == REFUSED)


async def test_client_is_who_its_session_says(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    username, pk = create_user(server, unique)
    visitor = Visitor(server, username)
    client = await connect(server, user=None, connected=False, additional_headers=visitor.headers)

    result = await client.result("connect")

    # the server looks at the session again: the client is told of no expiry
    assert "expires" not in result
    assert "ttl" not in result
    await client.result("subscribe", {"channel": f"room:{unique}"})
    presence = await client.result("presence", {"channel": f"room:{unique}"})
    assert presence["presence"][result["client"]] == {
        "user": pk,
        "client": result["client"],
        "conn_info": {"name": username},  # of the info hook
        "chan_info": {"staff": False},
    }


async def test_handshake_without_an_origin_is_accepted(
    server: Server, connect: Connect, unique: str
) -> None:
    """It does not come from a page, so nobody else's page can have made it."""
    username, pk = create_user(server)
    headers = {"Cookie": Visitor(server, username).headers["Cookie"]}
    client = await connect(server, user=None, additional_headers=headers)
    assert await client.result("subscribe", {"channel": f"{unique}#{pk}"}) == {}


async def test_session_of_a_page_of_another_origin_is_not_believed(
    server: Server, connect: Connect
) -> None:
    username, _ = create_user(server)
    headers = Visitor(server, username).headers | {"Origin": ELSEWHERE}
    assert await refused(connect, server, headers)


async def test_session_of_an_allowed_origin_is_believed(
    site: Serve, connect: Connect, unique: str
) -> None:
    server = site(allowed_origins=["https://*.example"])
    username, pk = create_user(server)
    headers = Visitor(server, username).headers | {"Origin": ELSEWHERE}
    client = await connect(server, user=None, additional_headers=headers)
    assert await client.result("subscribe", {"channel": f"{unique}#{pk}"}) == {}


COOKIES = {
    "none": None,
    "empty": "sessionid=",
    "unknown": "sessionid=abcdefghijklmnopqrstuvwxyz012345",
    "short": "sessionid=a",
    "garbage": 'sessionid="%00;;=;==,',
    "long": f"sessionid={'x' * 4000}",
    "path": "sessionid=../../../../etc/passwd",
    "another name": "session={key}",
    "upper case": "SESSIONID={key}",
}


@pytest.mark.parametrize("cookie", COOKIES.values(), ids=COOKIES)
async def test_client_without_a_session_is_refused(
    server: Server, connect: Connect, cookie: str | None
) -> None:
    username, _ = create_user(server)
    key = Visitor(server, username).session_key
    headers = {} if cookie is None else {"Cookie": cookie.replace("{key}", key)}
    assert await refused(connect, server, headers)


async def test_session_is_found_among_odd_cookies(server: Server, connect: Connect) -> None:
    """Python's own parser gives up at the first of these; Django's does not."""
    username, _ = create_user(server)
    key = Visitor(server, username).session_key
    headers = {"Cookie": f'a[b]=1; json={{"x":1}}; =3; sessionid={key}; last'}
    await connect(server, user=None, additional_headers=headers)


async def test_session_of_nobody_is_refused(server: Server, connect: Connect) -> None:
    username, _ = create_user(server)
    visitor = Visitor(server, username)
    headers = visitor.headers
    visitor.log_out()
    assert await refused(connect, server, headers)


async def test_token_wins_over_the_session(server: Server, connect: Connect, unique: str) -> None:
    username, pk = create_user(server)
    visitor = Visitor(server, username)
    token = connection_token(unique)
    client = await connect(server, user=None, token=token, additional_headers=visitor.headers)

    assert await client.result("subscribe", {"channel": f"a#{unique}"}) == {}
    assert (await client.error("subscribe", {"channel": f"a#{pk}"}))["code"] == 103

    # and the end of the session is none of its business
    visitor.log_out()
    await client.quiet()


async def test_invalid_token_is_not_made_good_by_the_session(
    server: Server, connect: Connect
) -> None:
    username, _ = create_user(server)
    headers = Visitor(server, username).headers
    client = await connect(server, user=None, connected=False, additional_headers=headers)
    await client.send("connect", {"token": "no token"})
    assert await client.closed() == (3002, '{"reason":"invalid token","reconnect":false}')


async def test_connect_hook_wins_over_the_session(server: Server, connect: Connect) -> None:
    username, _ = create_user(server)
    headers = Visitor(server, username).headers
    client = await connect(server, user=None, connected=False, additional_headers=headers)
    await client.result("connect", {"data": {"key": "0123"}})
    assert await client.result("subscribe", {"channel": "a#device-0123"}) == {}


async def test_session_is_not_believed_where_the_option_is_off(
    site: Serve, connect: Connect
) -> None:
    server = site(session_authentication=False)
    username, _ = create_user(server)
    assert await refused(connect, server, Visitor(server, username).headers)
