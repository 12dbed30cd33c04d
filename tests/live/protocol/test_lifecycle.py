"""A connection that ends leaves nothing behind. docs/protocol.md, 2.10 and 3.16."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import MAIN, NAMESPACES, Connect, Options, Serve, info_of
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

COUNTED: Options = {"namespaces": NAMESPACES, "name": "counted"}
"""A server whose clients are counted; every test here leaves none."""


def counts(server: Server) -> tuple[int, int, int]:
    """Return the numbers of clients, users and channels in `info`."""
    [node] = server.api("info")["result"]["nodes"]
    return node["num_clients"], node["num_users"], node["num_channels"]


def is_empty(server: Server) -> bool:
    return counts(server) == (0, 0, 0)


async def end_by_cut(client: ProtocolClient, server: Server, user: str) -> None:
    await client.abort()


async def end_by_close(client: ProtocolClient, server: Server, user: str) -> None:
    await client.socket.close()


async def end_by_bad_request(client: ProtocolClient, server: Server, user: str) -> None:
    await client.send_params("subscribe", b"5")


async def end_by_api(client: ProtocolClient, server: Server, user: str) -> None:
    server.api("disconnect", user=user)


ENDS = pytest.mark.parametrize(
    "end",
    [end_by_cut, end_by_close, end_by_bad_request, end_by_api],
    ids=["cut", "close", "bad request", "disconnect"],
)


@ENDS
@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
async def test_subscriptions_presence_and_channels_end_with_the_connection(
    serve: Serve, connect: Connect, unique: str, format_name: str, end: Any, server_name: str
) -> None:
    server, channel = serve(server=server_name, **MAIN), f"joined:{unique}"
    watcher = await connect(server)
    await watcher.result("subscribe", {"channel": channel})
    await watcher.push()
    token = connection_token(unique, channels=[f"{unique}server"])
    client = await connect(server, token=token)
    await client.result("subscribe", {"channel": channel})
    await client.result("subscribe", {"channel": f"present:{unique}"})
    await watcher.push()

    await end(client, server, unique)

    leave = {"type": 2, "channel": channel, "data": {"info": info_of(client, unique)}}
    assert await watcher.push() == leave
    presence = server.api("presence", channel=channel)["result"]["presence"]
    assert list(presence) == [watcher.client]
    wait_until(
        lambda: (
            [name for name in server.api("channels")["result"]["channels"] if unique in name]
            == [channel]
        )
    )
    assert server.api("presence", channel=f"present:{unique}") == {"result": {"presence": {}}}


async def test_several_connections_of_one_user_live_and_end_on_their_own(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"present:{unique}"
    first, second = [await connect(server, user=unique) for _ in range(2)]
    for client in (first, second):
        await client.result("subscribe", {"channel": channel})
    stats = await first.result("presence_stats", {"channel": channel})
    assert stats == {"num_clients": 2, "num_users": 1}

    await first.abort()

    wait_until(
        lambda: (
            list(server.api("presence", channel=channel)["result"]["presence"]) == [second.client]
        )
    )
    server.publish(channel, 1)
    assert await second.publication() == {"data": 1}


async def test_info_counts_clients_users_and_channels(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**COUNTED)
    wait_until(lambda: is_empty(server), what="an empty server")
    users = ["1", "1", "2", "", ""]
    clients = [await connect(server, user=unique + user if user else "") for user in users]
    await connect(server, connected=False)
    for client in clients[:3]:
        await client.result("subscribe", {"channel": unique})
    await clients[0].result("subscribe", {"channel": f"ns:{unique}"})

    assert counts(server) == (5, 3, 2)
    channels = server.api("channels")["result"]["channels"]
    assert sorted(channels) == sorted([unique, f"ns:{unique}"])

    for client in clients:
        await client.socket.close()
    wait_until(lambda: is_empty(server), what="an empty server")
    assert server.api("channels") == {"result": {"channels": []}}


async def test_churn_returns_to_the_beginning(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**COUNTED)
    wait_until(lambda: is_empty(server), what="an empty server")

    async def visit(number: int) -> None:
        token = connection_token(f"{unique}{number % 7}", channels=[f"recover:{unique}"])
        client = await connect(server, token=token)
        await client.send_together(
            ("subscribe", {"channel": f"joined:{unique}{number % 5}"}),
            ("subscribe", {"channel": f"recover:{unique}{number}"}),
            ("publish", {"channel": f"open:{unique}", "data": number}),
            ("unsubscribe", {"channel": f"joined:{unique}{number % 5}"}),
            ("subscribe", {"channel": f"present:{unique}{number % 5}"}),
        )
        match number % 3:
            case 0:
                await client.abort()
            case 1:
                await client.socket.close()
            case 2:
                await client.send_raw("")
                await client.closed()

    for start in range(0, 200, 20):
        await asyncio.gather(*(visit(number) for number in range(start, start + 20)))

    wait_until(lambda: is_empty(server), what="an empty server")
    assert server.api("channels") == {"result": {"channels": []}}
    for number in range(5):
        for namespace in ("joined", "present"):
            reply = server.api("presence", channel=f"{namespace}:{unique}{number}")
            assert reply == {"result": {"presence": {}}}
    assert "Traceback" not in server.log
