"""refresh: the site says whether a connection goes on; its client need not do anything."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

EXPIRED = (3005, '{"reason":"expired","reconnect":true}')


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site whose hooks do what users are called; a failed hook is asked again soon."""
    return site("strange", {"TEST_REFRESH_RETRY": "0.2"})


async def connect_for(connect: Connect, server: Server, user: str, ttl: float = 0.2) -> Any:
    """A client whose connection expires soon."""
    client = await connect(server, user=None, connected=False)
    data = {"answer": "all", "user": user, "channel": user, "ttl": ttl}
    result = await client.result("connect", {"data": data})
    # as with a refresh proxy: the client is not told of an expiry that does not concern it
    assert "expires" not in result
    assert "ttl" not in result
    return client


def channel_of(user: str) -> str:
    """A channel in which the user may do everything."""
    return "ask:none-" + user.replace("-", "_")


async def conn_info(client: Any, user: str) -> dict[str, Any]:
    """The connection info that others see, at this moment."""
    await client.result("publish", {"channel": channel_of(user), "data": {"answer": "none"}})
    publication = await client.publication()
    info: dict[str, Any] = publication["info"]["conn_info"]
    return info


async def subscribe(client: Any, user: str) -> None:
    await client.result("subscribe", {"channel": channel_of(user)})
    await client.push()  # its own join


async def until_asked(client: Any, user: str, times: int) -> None:
    """Wait until the hook was asked so often, as the connection info tells."""
    deadline = time.monotonic() + 10
    while (await conn_info(client, user)).get("asked", 0) < times:
        assert time.monotonic() < deadline, f"the hook was not asked {times} times"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("answer", ["stays", "same"])
async def test_connection_is_renewed_time_and_again_and_gets_new_info(
    server: Server, connect: Connect, unique: str, format_name: str, answer: str
) -> None:
    user = f"{answer}-{unique}"
    client = await connect_for(connect, server, user)
    await subscribe(client, user)
    assert await conn_info(client, user) == {"name": "Ann"}
    await until_asked(client, user, 2)


@pytest.mark.parametrize("answer", ["none", "past", "error", "another"])
async def test_connection_that_may_not_go_on_has_expired(
    server: Server, connect: Connect, unique: str, answer: str
) -> None:
    client = await connect_for(connect, server, f"{answer}-{unique}")
    assert await client.closed() == EXPIRED


async def test_connection_is_closed_with_the_code_of_the_hook(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect_for(connect, server, f"disconnect-{unique}")
    assert await client.closed() == (4011, '{"reason":"enough","reconnect":true}')


@pytest.mark.parametrize("answer", ["fails", "text", "yes"])
async def test_connection_goes_on_while_the_hook_fails_and_the_hook_is_asked_again(
    server: Server, connect: Connect, unique: str, answer: str
) -> None:
    client = await connect_for(connect, server, f"{answer}-{unique}")
    why = {
        "fails": "LookupError: the hook is broken",
        "text": "gave an answer that cannot be used: a number of seconds expected, not str",
        "yes": "gave an answer that cannot be used: a number of seconds expected, not bool",
    }[answer]

    await asyncio.to_thread(wait_until, lambda: why in server.log, 10, "the reason")

    await client.call("ping")
    # it fails twice, and then has nothing to say
    assert await client.closed() == EXPIRED


async def test_moment_in_unix_seconds_is_an_expiry(
    server: Server, connect: Connect, unique: str
) -> None:
    renewed = await connect_for(connect, server, f"moment-{unique}")
    other = await connect_for(connect, server, f"none-{unique}")
    # both expire at the same time
    assert await other.closed() == EXPIRED
    await renewed.quiet()


async def test_client_must_not_refresh_what_the_site_renews(
    server: Server, connect: Connect, unique: str
) -> None:
    client = await connect_for(connect, server, f"stays-{unique}", ttl=60)
    await client.send("refresh", {"token": connection_token(unique)})
    assert await client.closed() == (3003, '{"reason":"bad request","reconnect":false}')


async def test_connection_with_a_token_is_refreshed_by_its_client(
    newcomer: ProtocolClient, unique: str
) -> None:
    result = await newcomer.result("connect", {"token": connection_token(unique, ttl=60)})
    assert result["expires"] is True
    assert 0 < result["ttl"] <= 60
    refreshed = await newcomer.result("refresh", {"token": connection_token(unique, ttl=600)})
    assert 60 < refreshed["ttl"] <= 600
