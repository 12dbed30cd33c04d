"""subscribe and unsubscribe: what other subscribers see, and when.

docs/protocol.md, 3.6, 3.10 and 3.14. Refusals: test_refusals.
"""

from __future__ import annotations

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    MAIN,
    Connect,
    Serve,
    info_of,
)


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


async def test_unsubscribe_without_a_subscription_succeeds_silently(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"joined:{unique}"
    watcher, client = await connect(server), await connect(server)
    await watcher.result("subscribe", {"channel": channel})
    await watcher.push()
    assert await client.result("unsubscribe", {"channel": channel}) == {}
    await watcher.quiet()
