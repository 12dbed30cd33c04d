"""subscribe and unsubscribe: the order of checks, and what other subscribers see.

docs/protocol.md, 3.6, 3.10 and 3.14. Names of channels: test_channel_names.
"""

from __future__ import annotations

import pytest

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    ALREADY_SUBSCRIBED,
    BAD_REQUEST,
    LIMIT_EXCEEDED,
    LIMITED,
    MAIN,
    NAMESPACE_NOT_FOUND,
    NOT_AVAILABLE,
    PERMISSION_DENIED,
    Connect,
    Serve,
    info_of,
)
from tests.protocol_client import ProtocolClient

# the checks of subscribe, in order


async def at_the_limit(serve: Serve, connect: Connect, unique: str) -> ProtocolClient:
    """A client that has two subscriptions, one of them `unique`, and may have no more."""
    client: ProtocolClient = await connect(serve(**LIMITED), user=unique)
    await client.result("subscribe", {"channel": unique})
    await client.result("subscribe", {"channel": f"{unique}other"})
    return client


async def test_empty_channel_is_noticed_before_the_channel_limit(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await at_the_limit(serve, connect, unique)

    await client.send("subscribe", {"channel": ""})

    assert await client.closed() == BAD_REQUEST


async def test_length_is_checked_before_the_namespace(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN))

    assert await client.error("subscribe", {"channel": "nope:" + "a" * 251}) == LIMIT_EXCEEDED


async def test_new_channel_at_the_limit_is_error_106(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await at_the_limit(serve, connect, unique)

    assert await client.error("subscribe", {"channel": f"{unique}third"}) == LIMIT_EXCEEDED


async def test_existing_channel_at_the_limit_is_error_106_and_not_105(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await at_the_limit(serve, connect, unique)

    assert await client.error("subscribe", {"channel": unique}) == LIMIT_EXCEEDED


async def test_channel_limit_is_checked_before_the_namespace(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await at_the_limit(serve, connect, unique)

    assert await client.error("subscribe", {"channel": "nope:a"}) == LIMIT_EXCEEDED


async def test_unsubscribe_makes_room_below_the_channel_limit(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await at_the_limit(serve, connect, unique)

    await client.result("unsubscribe", {"channel": unique})

    assert await client.result("subscribe", {"channel": f"{unique}third"}) == {}


async def test_channel_limit_is_128_when_the_option_is_not_set(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    calls = [("subscribe", {"channel": f"{unique}n{n}"}) for n in range(128)]
    for command_id in await client.send_together(*calls):
        assert await client.reply(command_id) == {"id": command_id, "result": {}}

    assert await client.error("subscribe", {"channel": unique}) == LIMIT_EXCEEDED


async def test_second_subscribe_to_the_same_channel_is_error_105(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": unique})

    assert await client.error("subscribe", {"channel": unique}) == ALREADY_SUBSCRIBED


async def test_existing_subscription_is_noticed_before_a_bad_token(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    token = subscription_token(client.client, f"${unique}")
    await client.result("subscribe", {"channel": f"${unique}", "token": token})

    assert await client.error("subscribe", {"channel": f"${unique}"}) == ALREADY_SUBSCRIBED


@pytest.mark.parametrize(
    ("user", "channel"),
    [("", "nope:a"), ("17", "nope:a#18"), ("17", "$nope:a")],
    ids=["anonymous user", "user-limited", "private"],
)
async def test_namespace_is_checked_before_permissions(
    serve: Serve, connect: Connect, format_name: str, user: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user=user)

    assert await client.error("subscribe", {"channel": channel}) == NAMESPACE_NOT_FOUND


@pytest.mark.parametrize(
    ("user", "channel"),
    [("17", "$server_side:a"), ("", "$ns:a"), ("17", "$a#18")],
    ids=["server_side", "anonymous user", "user-limited"],
)
async def test_permissions_are_checked_before_the_token(
    serve: Serve, connect: Connect, format_name: str, user: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user=user)
    expired = subscription_token(client.client, channel, ttl=-10)

    error = await client.error("subscribe", {"channel": channel, "token": expired})

    assert error == PERMISSION_DENIED


@pytest.mark.parametrize(
    ("user", "channel"),
    [("", "proxied:a"), ("17", "proxied:a#18")],
    ids=["anonymous user", "user-limited"],
)
async def test_permissions_are_checked_before_the_proxy(
    serve: Serve, connect: Connect, format_name: str, user: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user=user)

    assert await client.error("subscribe", {"channel": channel}) == PERMISSION_DENIED


async def test_subscribe_proxy_without_an_endpoint_is_error_108(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))

    assert await client.error("subscribe", {"channel": f"proxied:{unique}"}) == NOT_AVAILABLE


async def test_private_channel_is_not_a_matter_of_the_proxy(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"$proxied:{unique}"
    client = await connect(serve(**MAIN))
    token = subscription_token(client.client, channel)

    assert await client.result("subscribe", {"channel": channel, "token": token}) == {}


async def test_user_limited_channel_is_not_a_matter_of_the_proxy(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.result("subscribe", {"channel": f"proxied:{unique}#17"}) == {}


async def test_anonymous_user_needs_the_option_anonymous(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), user="")

    assert await client.error("subscribe", {"channel": f"ns:{unique}"}) == PERMISSION_DENIED
    assert await client.result("subscribe", {"channel": f"anonymous:{unique}"}) == {}


async def test_refused_subscribe_leaves_nothing_behind(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    client = await connect(server, user="17")
    await client.error("subscribe", {"channel": f"joined:{unique}#18"})

    assert f"joined:{unique}#18" not in server.api("channels")["result"]["channels"]
    assert server.api("presence", channel=f"joined:{unique}#18") == {"result": {"presence": {}}}


async def test_recover_in_a_channel_that_is_not_recoverable_changes_nothing(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    server.publish(f"kept:{unique}", 1)
    client = await connect(server)
    params = {"channel": f"kept:{unique}", "recover": True, "seq": 0, "epoch": "x"}

    assert await client.result("subscribe", params) == {}


# order around subscribe and unsubscribe


async def test_own_join_follows_the_subscribe_reply(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"joined:{unique}"
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": channel})

    push = {"type": 1, "channel": channel, "data": {"info": info_of(client)}}
    assert await client.push() == push

    reply, join = client.received[-2:]
    assert (reply["result"], join["result"]) == ({}, push)


async def test_presence_is_there_when_the_subscribe_reply_comes(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"present:{unique}"
    server = serve(**MAIN)
    client = await connect(server)

    await client.result("subscribe", {"channel": channel})

    presence = server.api("presence", channel=channel)["result"]["presence"]
    assert presence == {client.client: info_of(client)}


async def test_others_see_join_and_leave_with_the_infos_of_the_client(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"$joined:{unique}"
    watcher = await connect(server)
    token = subscription_token(watcher.client, channel)
    await watcher.result("subscribe", {"channel": channel, "token": token})
    await watcher.push()
    client = await connect(server, token=connection_token("18", info={"name": "B"}))
    token = subscription_token(client.client, channel, info={"role": "guest"})

    await client.result("subscribe", {"channel": channel, "token": token})
    await client.result("unsubscribe", {"channel": channel})

    info = info_of(client, "18") | {"conn_info": {"name": "B"}, "chan_info": {"role": "guest"}}
    assert [await watcher.push(), await watcher.push()] == [
        {"type": kind, "channel": channel, "data": {"info": info}} for kind in (1, 2)
    ]


async def test_own_leave_precedes_the_unsubscribe_reply(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"joined:{unique}"
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": channel})
    await client.push()

    await client.result("unsubscribe", {"channel": channel})

    leave, reply = client.received[-2:]
    assert leave["result"] == {"type": 2, "channel": channel, "data": {"info": info_of(client)}}
    assert reply["result"] == {}


async def test_no_joins_and_leaves_without_the_option(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"present:{unique}"
    watcher, client = await connect(server), await connect(server)
    await watcher.result("subscribe", {"channel": channel})

    await client.result("subscribe", {"channel": channel})
    await client.result("unsubscribe", {"channel": channel})

    await watcher.quiet()
    await client.quiet()


async def test_unsubscribed_client_receives_nothing_more(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"present:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})

    await client.result("unsubscribe", {"channel": channel})

    assert server.api("presence", channel=channel) == {"result": {"presence": {}}}
    assert channel not in server.api("channels")["result"]["channels"]
    server.publish(channel, 1)
    await client.quiet()


async def test_unsubscribe_and_subscribe_again(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    client = await connect(server)
    for number in range(3):
        assert await client.result("subscribe", {"channel": unique}) == {}
        server.publish(unique, number)
        assert await client.publication() == {"data": number}

        assert await client.result("unsubscribe", {"channel": unique}) == {}


async def test_unsubscribe_without_a_subscription_succeeds_silently(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"joined:{unique}"
    watcher, client = await connect(server), await connect(server)
    await watcher.result("subscribe", {"channel": channel})
    await watcher.push()

    assert await client.result("unsubscribe", {"channel": channel}) == {}

    await watcher.quiet()
