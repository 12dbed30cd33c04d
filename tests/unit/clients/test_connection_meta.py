"""The claim `meta`, which hooks can read, and connection tokens without a user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest

from realtime.config.reader import load
from realtime.engine.memory import MemoryEngine
from realtime.hooks import Connected
from realtime.hooks.registry import Registry
from realtime.hooks.requests import PublishRequest
from realtime.hooks.site import SiteHooks
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.server import SECRET
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, turns

OPTIONS: dict[str, Any] = {
    "token_hmac_secret_key": SECRET,
    "disallow_anonymous_connection_tokens": True,
    "client_anonymous": True,
    "publish": True,
}


class Site:
    """Hooks that write down the meta of connections."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.registry = Registry()
        self.registry.add_pattern(self.registry.publish, "*", self.publish)
        self.registry.add_single("connect", self.connect)

    async def publish(self, request: PublishRequest) -> None:
        self.seen.append(request.meta)

    async def connect(self, request: Any) -> Connected:
        return Connected(user="18", meta=["from the hook"])


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def node(clock: Clock, site: Site) -> AsyncIterator[Node]:
    engine = MemoryEngine(Timers(asyncio.get_running_loop()))
    config = load(OPTIONS)
    node = Node(config, engine, hooks=SiteHooks(config, site.registry))
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)


def token(**claims: Any) -> str:
    return jwt.encode(claims, SECRET, algorithm="HS256")


@pytest.mark.parametrize("meta", [{"plan": "gold"}, ["a"], 0, "text", None], ids=str)
async def test_hooks_read_the_meta_of_the_token_and_no_client_sees_it(
    node: Node, site: Site, meta: Any
) -> None:
    connection = SecondConnection(node)
    result = await connection.call("connect", token=token(sub="17", meta=meta))
    await connection.call("publish", channel="a", data=1)
    assert site.seen == [meta]
    assert "meta" not in result


async def test_new_token_replaces_the_meta_if_it_has_one(node: Node, site: Site) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=token(sub="17", meta="old"))
    for claims in ({}, {"meta": "new"}):
        await connection.call("refresh", token=token(sub="17", **claims))
        await connection.call("publish", channel="a", data=1)
    assert site.seen == ["old", "new"]


async def test_connect_hook_may_give_meta(node: Node, site: Site) -> None:
    connection = SecondConnection(node)
    await connection.call("connect")
    await connection.call("publish", channel="a", data=1)
    assert site.seen == [["from the hook"]]


@pytest.mark.parametrize("claims", [{}, {"sub": ""}, {"sub": None}], ids=str)
@pytest.mark.parametrize("kind", [Connection, SecondConnection])
async def test_connection_token_without_a_user_may_be_refused(
    node: Node, kind: type[Connection], claims: dict[str, Any]
) -> None:
    connection = kind(node)
    if isinstance(connection, SecondConnection):
        await connection.call("connect", token=token(**claims))
    else:
        await connection.say(1, 0, token=token(**claims))
    await turns()
    assert connection.closes == [3507 if isinstance(connection, SecondConnection) else 3003]
