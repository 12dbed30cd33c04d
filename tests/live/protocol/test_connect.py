"""connect: the order of checks, the reply, anonymous and insecure servers.

docs/protocol.md, 3.1, 3.3 and 3.13.
"""

from __future__ import annotations

import re

import pytest

import realtime
from tests.conftest import connection_token
from tests.live.configurations import (
    CONNECTION_LIMIT,
    INSECURE,
    LIMITED,
    MAIN,
    NAMESPACE_NOT_FOUND,
    PERMISSION_DENIED,
    PERSONAL_AT_TOP,
    Connect,
    Serve,
    info_of,
)

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

# the reply


async def test_reply_holds_a_client_id_and_the_version(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    result = await client.result("connect", {"token": connection_token("17")})
    assert set(result) == {"client", "version"}
    assert UUID4.fullmatch(result["client"])
    assert result["version"] == realtime.__version__


async def test_reply_holds_the_server_side_subscriptions(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    plain, recoverable = unique, f"recover:{unique}"
    token = connection_token("17", channels=[recoverable, plain, plain])
    subs = (await client.result("connect", {"token": token}))["subs"]
    epoch = subs[recoverable].pop("epoch")
    assert epoch
    assert subs == {plain: {}, recoverable: {"recoverable": True}}


async def test_joins_in_server_side_channels_follow_the_connect_reply(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"joined:{unique}"
    client = await connect(serve(**MAIN), token=connection_token("17", channels=[channel]))
    push = {"type": 1, "channel": channel, "data": {"info": info_of(client)}}
    assert await client.push() == push
    assert client.received[1:] == [{"result": push}]


async def test_server_side_subscription_can_be_ended_and_then_follows_the_rules_for_clients(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"server_side:{unique}"
    client = await connect(serve(**MAIN), token=connection_token("17", channels=[channel]))
    again = await client.error("subscribe", {"channel": channel})
    assert again == {"code": 105, "message": "already subscribed"}
    assert await client.result("unsubscribe", {"channel": channel}) == {}
    assert await client.error("subscribe", {"channel": channel}) == PERMISSION_DENIED


@pytest.mark.parametrize("channel", ["$p", "a#18", "server_side:a", "$ns:a#18"])
async def test_server_side_subscription_is_not_bound_to_the_rules_for_clients(
    serve: Serve, connect: Connect, unique: str, format_name: str, channel: str
) -> None:
    server = serve(**MAIN)
    channel = channel.replace("a", f"{unique}a") if "a#" in channel else channel + unique
    token = connection_token("17", channels=[channel])
    client = await connect(server, token=token)
    server.publish(channel, 1)
    assert await client.push() == {"channel": channel, "data": {"data": 1}}


# table 3.1, in order


async def test_server_side_channels_are_checked_before_the_connection_limit(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**LIMITED)
    for _ in range(2):
        await connect(server, user=unique)
    client = await connect(server, connected=False)
    token = connection_token(unique, channels=["nope:a"])
    assert await client.error("connect", {"token": token}) == NAMESPACE_NOT_FOUND


# client_user_connection_limit


async def test_connection_beyond_the_limit_of_a_user_is_closed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**LIMITED)
    first, second = [await connect(server, user=unique) for _ in range(2)]
    third = await connect(server, connected=False)
    await third.send("connect", {"token": connection_token(unique)})
    assert await third.closed() == CONNECTION_LIMIT
    # anonymous clients are no user
    anonymous = [await connect(server, user="") for _ in range(4)]
    for client in (first, second, *anonymous):
        await client.result("ping")


# client_anonymous and client_insecure


async def test_client_without_token_is_anonymous_where_that_is_allowed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**PERSONAL_AT_TOP), user=None)
    await client.result("subscribe", {"channel": unique})
    result = await client.result("presence", {"channel": unique})
    assert result == {"presence": {client.client: info_of(client, user="")}}


async def test_insecure_server_opens_publish_and_anonymous_access(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**INSECURE), user=None)
    assert await client.result("subscribe", {"channel": unique}) == {}
    assert await client.result("publish", {"channel": unique, "data": 1}) == {}
    assert await client.publication() == {"data": 1, "info": info_of(client, user="")}
