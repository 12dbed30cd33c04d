"""What the own tests of the published libraries ask of a server: docs/clients.md has the table.

Each test runs with centrifuge-js, centrifuge-python and centrifuge-go, in both formats.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.js_builds import BUILDS
from tests.js_client import open_driver
from tests.live.api_methods import result
from tests.live.second.conftest import KEPT
from tests.live.second.sdk import START, Refused, Sdk
from tests.live.second.sdks import open_go_sdk, open_js, open_python
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

OpenSdk = Callable[[str], Awaitable[Sdk]]


@pytest.fixture(params=["js", "python", "go"])
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[False, True], ids=["json", "protobuf"])
def protobuf(request: pytest.FixtureRequest) -> bool:
    asked: bool = request.param
    return asked


@pytest.fixture
async def open_sdk(
    request: pytest.FixtureRequest, library: str, proxy: TcpProxy, protobuf: bool
) -> AsyncIterator[OpenSdk]:
    """Make a client behind the proxy, that is not connected: `await open_sdk(token)`."""
    find = {"js": "node_process", "go": "go_program"}.get(library)
    part: Any = request.getfixturevalue(find) if find else None
    async with AsyncExitStack() as stack:

        async def open_sdk(token: str) -> Sdk:
            if library == "js":
                driver = await stack.enter_async_context(open_driver(part(BUILDS[0])))
                return await open_js(driver, proxy.url, token, protobuf=protobuf)
            opened = (
                open_python(proxy.url, token, protobuf=protobuf)
                if library == "python"
                else open_go_sdk(part, proxy.url, token, protobuf=protobuf)
            )
            return await stack.enter_async_context(opened)

        yield open_sdk


@pytest.fixture
async def sdk(open_sdk: OpenSdk) -> Sdk:
    """A client of user 17, that begins to connect."""
    opened = await open_sdk(connection_token("17"))
    await opened.connect()
    return opened


async def test_subscribes_publishes_and_asks(sdk: Sdk, unique: str) -> None:
    channel = f"chat:{unique}"
    me = await sdk.connected()
    await sdk.subscribe(channel)
    assert await sdk.subscribed(channel) == (False, False)
    assert await sdk.joined(channel) == me

    await sdk.publish(channel, {"text": "hi"})
    assert await sdk.values(channel, 1) == [{"text": "hi"}]
    assert await sdk.presence(channel) == {me: "17"}
    assert await sdk.present(channel) == (1, 1)
    assert (await sdk.history(channel, -1)).values == [{"text": "hi"}]
    with pytest.raises(Refused, match="108"):
        await sdk.rpc()


async def test_what_a_channel_has_not_is_refused(sdk: Sdk, unique: str) -> None:
    channel = f"plain:{unique}"
    for asked in (sdk.presence(channel), sdk.present(channel), sdk.history(channel, 10)):
        with pytest.raises(Refused, match="108"):
            await asked
    with pytest.raises(Refused, match="103"):
        await sdk.publish(channel, 1)
    await sdk.subscribe("nowhere:a")
    assert await sdk.unsubscribed("nowhere:a") == 102


async def test_connects_and_subscribes_again_and_again(sdk: Sdk, unique: str) -> None:
    first, second = f"chat:{unique}", f"plain:{unique}"
    await sdk.connected()
    await sdk.subscribe(first)
    await sdk.subscribe(second)
    for _ in range(3):
        await sdk.subscribed(first)
        await sdk.subscribed(second)
        await sdk.unsubscribe(first)
        assert await sdk.unsubscribed(first) == 0
        await sdk.subscribe_again(first)
        await sdk.subscribed(first)
        await sdk.disconnect()
        assert await sdk.disconnected() == 0
        await sdk.connect()
        await sdk.connected()


async def test_history_has_pages(sdk: Sdk, server: Server, unique: str) -> None:
    channel = f"chat:{unique}"
    await sdk.subscribe(channel)
    await sdk.subscribed(channel)
    for value in range(1, 6):
        server.publish(channel, value)

    assert (await sdk.history(channel, -1)).values == [1, 2, 3, 4, 5]
    page = await sdk.history(channel, 2)
    assert page.values == [1, 2]
    since = page.position | {"offset": 2}
    assert (await sdk.history(channel, 2, since=since)).values == [3, 4]
    assert (await sdk.history(channel, -1, reverse=True)).values == [5, 4, 3, 2, 1]


async def test_recovers_what_it_missed(
    sdk: Sdk, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"chat:{unique}"
    await sdk.subscribe(channel)
    await sdk.subscribed(channel)
    server.publish(channel, 1)
    assert await sdk.values(channel, 1) == [1]

    proxy.refuse()
    for value in (2, 3, 4):
        server.publish(channel, value)
    proxy.allow()
    assert await sdk.subscribed(channel) == (True, True)
    server.publish(channel, 5)
    assert await sdk.values(channel, 4) == [2, 3, 4, 5]


async def test_subscription_that_ended_recovers_if_history_reaches_back(
    sdk: Sdk, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    await sdk.subscribe(channel)
    await sdk.subscribed(channel)
    server.publish(channel, 1)
    assert await sdk.values(channel, 1) == [1]

    await sdk.unsubscribe(channel)
    server.publish(channel, 2)
    server.publish(channel, 3)
    await sdk.subscribe_again(channel)
    assert await sdk.subscribed(channel) == (True, True)
    assert await sdk.values(channel, 2) == [2, 3]

    await sdk.unsubscribe(channel)
    for value in range(KEPT + 1):
        server.publish(channel, value)
    await sdk.subscribe_again(channel)
    assert await sdk.subscribed(channel) == (True, False)
    server.publish(channel, "live")
    values = await sdk.values(channel, 1)
    assert values == ["live"]


async def test_state_is_asked_for_first_and_where_the_position_is_lost(
    sdk: Sdk, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"chat:{unique}"
    for value in (1, 2, 3):
        server.publish(channel, value)
    await sdk.subscribe(channel, asks_state=True)
    await sdk.give_state(START)
    assert await sdk.subscribed(channel) == (True, True)
    assert await sdk.values(channel, 3) == [1, 2, 3]

    proxy.refuse()
    server.publish(channel, 4)
    proxy.allow()
    assert await sdk.subscribed(channel) == (True, True)
    assert await sdk.values(channel, 1) == [4]
    assert not sdk.asks_state()

    proxy.refuse()
    for value in range(KEPT + 1):
        server.publish(channel, value)
    proxy.allow()
    history = result(server, "history", channel=channel)
    await sdk.give_state({name: history[name] for name in ("offset", "epoch")})
    assert await sdk.subscribed(channel) == (True, True)
    server.publish(channel, "live")
    assert await sdk.values(channel, 1) == ["live"]
    assert not sdk.asks_state()


async def test_state_of_a_channel_without_publications(
    sdk: Sdk, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    await sdk.subscribe(channel, asks_state=True)
    await sdk.give_state(START)
    await sdk.subscribed(channel)
    server.publish(channel, 1)
    assert await sdk.values(channel, 1) == [1]


async def test_filter_by_tags_holds_and_recovers(
    sdk: Sdk, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"tags:{unique}"

    def publish(*values: int) -> None:
        for value in values:
            team = {0: "blue", 1: "red", 2: "pink"}[value % 3]
            result(server, "publish", channel=channel, data=value, tags={"team": team})

    await sdk.subscribe(channel, teams=["red", "pink"])
    await sdk.subscribed(channel)
    publish(3, 4, 5, 6)
    assert await sdk.values(channel, 2) == [4, 5]

    proxy.refuse()
    publish(9, 10)
    proxy.allow()
    assert await sdk.subscribed(channel) == (True, True)
    publish(12, 14)
    assert await sdk.values(channel, 2) == [10, 14]


async def test_server_subscribes_and_the_subscription_recovers(
    open_sdk: OpenSdk, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"chat:{unique}"
    sdk = await open_sdk(connection_token("17", channels=[channel]))
    await sdk.connect()
    me = await sdk.connected()
    await sdk.subscribed(channel)
    assert await sdk.joined(channel) == me
    await sdk.publish(channel, 1)
    assert await sdk.values(channel, 1) == [1]

    proxy.refuse()
    server.publish(channel, 2)
    proxy.allow()
    assert await sdk.subscribed(channel) == (True, True)
    assert await sdk.values(channel, 1) == [2]


async def test_wrong_tokens_end_what_they_are_for(open_sdk: OpenSdk, unique: str) -> None:
    stranger = await open_sdk("x.y.z")
    await stranger.connect()
    assert await stranger.disconnected() == 3500

    sdk = await open_sdk(connection_token("17"))
    await sdk.connect()
    channel = f"$chat:{unique}"
    await sdk.subscribe(channel, token="x.y.z")
    assert await sdk.unsubscribed(channel) == 103
    await sdk.subscribe(f"chat:{unique}")
    await sdk.subscribed(f"chat:{unique}")
