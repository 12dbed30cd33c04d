"""The published JavaScript client: private channels and their tokens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import connection_token, subscription_token
from tests.js_builds import over_both_formats, over_websocket
from tests.js_client import SOON, NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


async def test_private_channel_opens_with_a_token_for_client_and_channel(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"$chat:{unique}"
    client = await connect_js()

    await client.call("subscribe", channel=channel)

    question = await client.grant()
    assert question.data == {"client": client.id, "channels": [channel]}
    await client.event("subscribe", channel)
    server.publish(channel, "secret")
    assert await client.publication(channel) == "secret"


async def test_token_info_shows_as_channel_info(connect_js: NewClient, unique: str) -> None:
    channel = f"$chat:{unique}"
    client = await connect_js(user="ann", info={"name": "Ann"})
    await client.subscribe(channel, info={"role": "host"})

    result = await client.call("presence", channel=channel)

    assert result["presence"][client.id] == {
        "user": "ann",
        "client": client.id,
        "conn_info": {"name": "Ann"},
        "chan_info": {"role": "host"},
    }


def not_a_token(client: str, channel: str) -> str:
    return "not.a.token"


def token_of_another_client(client: str, channel: str) -> str:
    return subscription_token("another client", channel)


def token_for_another_channel(client: str, channel: str) -> str:
    return subscription_token(client, channel + "x")


def connection_token_instead(client: str, channel: str) -> str:
    return connection_token("17")


@pytest.mark.parametrize(
    "wrong",
    [not_a_token, token_of_another_client, token_for_another_channel, connection_token_instead],
)
async def test_wrong_private_token_is_error_103_and_no_disconnect(
    connect_js: NewClient, unique: str, wrong: Callable[[str, str], str]
) -> None:
    channel = f"${unique}"
    client = await connect_js()
    await client.call("subscribe", channel=channel)

    token = wrong(client.id, channel)
    await (await client.question("private")).answer(
        {"channels": [{"channel": channel, "token": token}]}
    )

    error = await client.event("error", channel)
    assert (error["code"], error["message"]) == (103, "permission denied")
    await client.settle()
    assert client.unread("disconnect") == []


async def test_expired_private_token_is_error_109(connect_js: NewClient, unique: str) -> None:
    client = await connect_js()
    await client.call("subscribe", channel=f"${unique}")

    await client.grant(ttl=-10)

    error = await client.event("error", f"${unique}")
    assert (error["code"], error["message"]) == (109, "token expired")


@over_websocket
async def test_private_channels_batched_are_asked_for_and_subscribed_together(
    connect_js: NewClient, unique: str
) -> None:
    channels = [f"${unique}-a", f"${unique}-b", f"${unique}-c"]
    client = await connect_js()
    before = (await client.call("socket"))["sent"]

    await client.call("startSubscribeBatching")
    for channel in channels:
        await client.call("subscribe", channel=channel)
    await client.call("stopSubscribeBatching")

    question = await client.grant()
    assert question.data["channels"] == channels
    for channel in channels:
        await client.event("subscribe", channel)
    assert (await client.call("socket"))["sent"] == before + 1


@over_both_formats
async def test_expiring_subscription_asks_for_a_token_each_time_it_expires(
    connect_js: NewClient, unique: str
) -> None:
    channel = f"${unique}"
    client = await connect_js()
    await client.subscribe(channel, ttl=SOON)

    for ttl in (SOON, 300):
        question = await client.grant(ttl=ttl)
        assert question.data == {"client": client.id, "channels": [channel]}

    await client.settle()
    assert client.unread("disconnect") == []


@over_both_formats
async def test_refreshed_subscription_outlives_one_that_is_not(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"${unique}"
    refreshed, forgotten = await connect_js(), await connect_js()
    await forgotten.subscribe(channel, ttl=SOON)
    await refreshed.subscribe(channel, ttl=SOON)

    await refreshed.grant(ttl=300)

    expected = {"reason": "subscription expired", "reconnect": True}
    assert await forgotten.event("disconnect") == expected
    server.publish(channel, "still here")
    assert await refreshed.publication(channel) == "still here"
    assert refreshed.unread("disconnect") == []


@over_both_formats
async def test_kept_subscription_does_not_expire_with_its_token(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    """The claim `eto`: the other client shows that the time has passed."""
    channel = f"${unique}"
    kept, forgotten = await connect_js(), await connect_js()
    await kept.subscribe(channel, ttl=SOON, keep_subscription=True)
    await forgotten.subscribe(channel, ttl=SOON)

    await forgotten.event("disconnect")

    server.publish(channel, "still here")
    assert await kept.publication(channel) == "still here"
    assert kept.questions == []


async def test_private_channel_is_asked_for_again_after_a_reconnect(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    """The new connection has a new ID, which the old token does not name."""
    channel = f"$rec:{unique}"
    client = await connect_js(through=proxy)
    await client.subscribe(channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1
    old_id = client.id

    async with client.away(proxy):
        server.publish(channel, 2)
    question = await client.grant()
    assert question.data == {"client": client.id, "channels": [channel]}
    assert client.id != old_id
    await client.recovered(channel)
    assert await client.publication(channel) == 2
