"""The published JavaScript client on a page of the site: it gets its tokens from the views."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.js_builds import JSON, Build
from tests.js_client import SOON, TIMEOUT, Driver, JsClient
from tests.live.hooks_site import Visitor, environment
from tests.live.lounge import OPTIONS, log_in
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with private channels."""
    return serve(environment=environment(tmp_path_factory, "lounge"), **OPTIONS)


@pytest.fixture
def build() -> Build:
    """One build: they ask the views in the same way."""
    return JSON


NewPage = Callable[..., Awaitable[JsClient]]


@pytest.fixture
def open_page(driver: Driver, build: Build) -> NewPage:
    """A page of a site in a visitor's browser: `await open_page(server, visitor, token)`.

    Its client is not connected yet; `through` is a proxy for it.
    """

    async def open_page(
        server: Server, visitor: Visitor, token: str, *, through: TcpProxy | None = None
    ) -> JsClient:
        cookie = "; ".join(f"{name}={value}" for name, value in visitor.http.cookies.items())
        page = {"origin": server.address, "cookie": cookie}
        url = server.socket if through is None else through.url
        return await driver.client(build, url, token=token, page=page)

    return open_page


async def conn_info(client: JsClient, channel: str) -> Any:
    """The connection info that others see now, by publishing something."""
    await client.publish(channel, None)
    return (await client.event("publish", channel))["info"].get("conn_info")


async def test_expiring_connection_is_refreshed_by_the_view(
    server: Server, open_page: NewPage, unique: str
) -> None:
    visitor, pk = log_in(server)
    client = await open_page(server, visitor, connection_token(pk, ttl=SOON))
    await client.connect()
    await client.subscribe(unique)
    assert await conn_info(client, unique) is None

    async with asyncio.timeout(TIMEOUT):
        while await conn_info(client, unique) is None:
            await asyncio.sleep(0.05)  # a refresh is no event, so this asks again and again

    # the token of the view has it
    assert await conn_info(client, unique) == {"name": visitor.username}
    assert client.unread("disconnect") == []
    assert (await client.call("socket"))["opened"] == 1


async def test_page_of_somebody_who_logged_out_gives_up(server: Server, open_page: NewPage) -> None:
    visitor, pk = log_in(server)
    client = await open_page(server, visitor, connection_token(pk, ttl=SOON))
    await client.connect()
    visitor.log_out()
    # what the client makes of an empty token
    assert await client.event("disconnect") == {"reason": "refresh failed", "reconnect": False}


async def test_channels_of_one_request_are_decided_one_by_one(
    server: Server, open_page: NewPage, unique: str
) -> None:
    visitor, pk = log_in(server, unique)
    allowed = [f"$lounge:{unique}", f"$later-{unique}"]
    denied = [f"$lounge:{unique}-other", "$elsewhere", "$odd:failure"]
    client = await open_page(server, visitor, connection_token(pk))
    await client.connect()

    await client.call("startSubscribeBatching")
    for channel in (*denied, *allowed):
        await client.call("subscribe", channel=channel)
    await client.call("stopSubscribeBatching")

    for channel in allowed:
        await client.event("subscribe", channel)
    for channel in denied:
        error = await client.event("error", channel)
        assert (error["code"], error["message"]) == (103, "permission denied")
