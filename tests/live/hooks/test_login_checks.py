"""Sessions are looked at again from time to time, and with every engine logout is heard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.configurations import FORCED, Connect, Serve
from tests.live.hooks_site import Visitor, create_user, do
from tests.server import Server, wait_until

EXPIRED = (3005, '{"reason":"expired","reconnect":true}')
REFUSED = (3003, '{"reason":"bad request","reconnect":false}')
CHECK_INTERVAL = 0.5

Join = Callable[..., Any]


@pytest.fixture(params=["db", "cached_db", "cache", "file", "signed_cookies"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each of Django's session engines."""
    name: str = request.param
    return name


@pytest.fixture
def server(site: Serve, engine: str) -> Server:
    """The site with this engine; sessions are looked at again soon."""
    variables = {"TEST_SESSIONS": engine, "TEST_CHECK_INTERVAL": str(CHECK_INTERVAL)}
    return site("hooks", variables)


@pytest.fixture
def join(connect: Connect, server: Server) -> Join:
    """Connect with a visitor's session: `await join(visitor)`."""

    async def join(visitor: Visitor) -> Any:
        return await connect(server, user=None, additional_headers=visitor.headers)

    return join


async def test_session_is_believed_time_and_again(server: Server, join: Join) -> None:
    (username, _), (other, _) = create_user(server), create_user(server)
    client = await join(Visitor(server, username))

    # two intervals, told by what happens at their ends
    for _ in range(2):
        somebody = await join(Visitor(server, other))
        do(server, "deactivate_by_query", username=other)
        assert await somebody.closed() == EXPIRED
        other, _ = create_user(server)

    await client.quiet()


async def test_change_that_nothing_announces_is_seen_within_the_interval(
    server: Server, join: Join
) -> None:
    username, _ = create_user(server)
    client = await join(Visitor(server, username))
    do(server, "deactivate_by_query", username=username)
    began = time.monotonic()
    assert await client.closed() == EXPIRED
    # the rest is for a busy machine
    assert time.monotonic() - began < CHECK_INTERVAL + 10


async def test_logout_is_heard_at_once(server: Server, join: Join) -> None:
    username, _ = create_user(server)
    visitor = Visitor(server, username)
    client, on_the_phone = await join(visitor), await join(Visitor(server, username))
    visitor.log_out()
    assert await client.closed() == FORCED
    await on_the_phone.quiet()


async def test_logout_is_heard_after_the_session_changed(server: Server, join: Join) -> None:
    """With signed cookies the cookie is another one then."""
    username, _ = create_user(server)
    visitor = Visitor(server, username)
    client = await join(visitor)
    visitor.http.get("/touch")
    visitor.log_out()
    assert await client.closed() == FORCED


async def test_password_change_is_heard(server: Server, join: Join) -> None:
    username, _ = create_user(server)
    client = await join(Visitor(server, username))
    do(server, "change_password", username=username)
    assert await client.closed() == EXPIRED


@pytest.mark.parametrize("engine", ["db"], indirect=True)
async def test_expired_session_ends_its_connections(server: Server, join: Join) -> None:
    username, _ = create_user(server)
    visitor = Visitor(server, username)
    client = await join(visitor)
    do(server, "expire_session", key=visitor.session_key)
    assert await client.closed() == EXPIRED


@pytest.mark.parametrize("engine", ["db"], indirect=True)
async def test_expired_session_lets_nobody_in(server: Server, connect: Connect) -> None:
    username, _ = create_user(server)
    visitor = Visitor(server, username)
    do(server, "expire_session", key=visitor.session_key)
    headers = visitor.headers
    client = await connect(server, user=None, connected=False, additional_headers=headers)
    await client.send("connect")
    assert await client.closed() == REFUSED


@pytest.fixture
def slow(site: Serve) -> Server:
    """The site whose info hook takes as long as the user's first name says."""
    return site("strange")


@pytest.mark.parametrize("action", ["logout", "deactivate", "delete_sessions_of", "delete"])
async def test_login_that_ends_while_its_client_is_identified_ends_that_too(
    slow: Server, connect: Connect, action: str
) -> None:
    """Its next check is a minute away."""
    username, _ = create_user(slow, first_name="0.6")
    visitor = Visitor(slow, username)
    headers = visitor.headers
    client = await connect(slow, user=None, connected=False, additional_headers=headers)
    await client.send("connect")
    asked = f"describing {username}"
    await asyncio.to_thread(wait_until, lambda: asked in slow.log, 10, "the hook")

    if action == "logout":
        await asyncio.to_thread(visitor.log_out)
    else:
        await asyncio.to_thread(do, slow, action, username=username)

    # refused while it is identified, or closed when it was known already
    assert await client.closed() in (REFUSED, FORCED, EXPIRED)


async def test_info_hook_may_refuse(slow: Server, connect: Connect) -> None:
    username, _ = create_user(slow, last_name="refused")
    headers = Visitor(slow, username).headers
    client = await connect(slow, user=None, connected=False, additional_headers=headers)
    await client.send("connect")
    assert await client.closed() == (4060, '{"reason":"not you","reconnect":false}')
