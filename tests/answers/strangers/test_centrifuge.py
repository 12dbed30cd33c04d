"""centrifuge-js of both generations, and centrifuge-python: an answer is a channel as any other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from centrifuge import PublicationContext, SubscriptionEventHandler

from tests.conftest import connection_token
from tests.js_builds import JSON, Build
from tests.js_client import Driver, FindNode, JsClient, open_driver
from tests.js_next import JSON_5, open_next
from tests.live.python_client import python_client
from tests.server import Server, wait_until
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


@pytest.fixture
async def proxy(site: Server) -> AsyncIterator[TcpProxy]:
    """A proxy in front of the site."""
    async with TcpProxy(site.socket) as proxy:
        yield proxy


@pytest.fixture
async def driver(node_process: FindNode) -> AsyncIterator[Driver]:
    """Holds the client of this test."""
    async with open_driver(node_process(JSON)) as opened:
        yield opened


async def opened(driver: Driver, build: Build, url: str) -> JsClient:
    if build.generation == 2:
        return await open_next(driver, build, url)
    return await driver.client(build, url, token=connection_token("17"))


async def asked(http: httpx.AsyncClient, chat: str) -> str:
    """Begin an answer of three steps. Return its channel."""
    message = {"role": "user", "parts": [{"type": "text", "text": "steps"}]}
    body = {"id": chat, "messages": [message]}
    async with http.stream("POST", "/scripts/ui", json=body) as response:
        return f"answer:{response.headers['answer-id']}"


async def received(client: JsClient, channel: str, until: str) -> list[Any]:
    """The chunks of the next publications, up to one of this type."""
    chunks: list[Any] = []
    async with asyncio.timeout(60):
        while until not in [each["type"] for each in chunks]:
            chunks += await client.publication(channel)
    return chunks


@pytest.mark.parametrize("build", [JSON, JSON_5], ids=["2.8", "5.8"])
async def test_text_is_whole_for_a_client_that_was_away(
    driver: Driver, build: Build, site: Server, proxy: TcpProxy, unique: str
) -> None:
    client = await opened(driver, build, proxy.url)
    await client.connect()
    async with httpx.AsyncClient(base_url=site.address, timeout=30, trust_env=False) as http:
        channel = await asked(http, unique)
        await client.subscribe(channel)
        await http.post(f"/go/{unique}")
        chunks = await received(client, channel, "text-delta")
        async with client.away(proxy):
            await http.post(f"/go/{unique}")
            await http.post(f"/go/{unique}")
            await asyncio.to_thread(wait_until, lambda: "finish" in kinds(site, channel))
        await client.recovered(channel)
        chunks += await received(client, channel, "finish")

    await client.error("rpc", method="", data=None)  # answered after all that was sent before
    assert client.unread("publication" if build.generation == 2 else "publish", channel) == []
    assert "".join(each.get("delta", "") for each in chunks) == "one two three"
    assert [each["type"] for each in chunks][-2:] == ["text-end", "finish"]


def kinds(site: Server, channel: str) -> list[str]:
    """The types of the chunks in a channel."""
    publications = site.api("history", channel=channel)["result"]["publications"]
    return [chunk["type"] for each in publications for chunk in each["data"]]


class Chunks(SubscriptionEventHandler):
    """Keeps the chunks of an answer."""

    def __init__(self) -> None:
        self.chunks: list[Any] = []
        self.ended = asyncio.Event()

    async def on_publication(self, ctx: PublicationContext) -> None:
        data = ctx.pub.data
        self.chunks += json.loads(data) if isinstance(data, bytes) else data
        if self.chunks[-1]["type"] == "finish":
            self.ended.set()


@pytest.mark.parametrize("protobuf", [False, True], ids=["json", "protobuf"])
async def test_text_is_whole_for_the_python_client(
    site: Server, unique: str, protobuf: bool
) -> None:
    events = Chunks()
    async with (
        httpx.AsyncClient(base_url=site.address, timeout=30, trust_env=False) as http,
        python_client(site.socket, use_protobuf=protobuf) as client,
    ):
        await client.connect()
        channel = await asked(http, unique)
        subscription = client.new_subscription(channel, events=events)
        await subscription.subscribe()
        await subscription.ready()
        for _ in range(3):
            await http.post(f"/go/{unique}")
        async with asyncio.timeout(60):
            await events.ended.wait()
    assert "".join(each.get("delta", "") for each in events.chunks) == "one two three"
