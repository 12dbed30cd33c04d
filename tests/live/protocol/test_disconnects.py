"""Disconnects and unsubscribes that the server decides on. docs/protocol.md, 5.3 and 6.4.

Disconnects that answer a command (3002, 3003, 3005 to 3007, 3013, 1009) are tested with that
command.
"""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from tests.conftest import connection_token
from tests.live.configurations import (
    FORCED,
    MAIN,
    SHUTDOWN,
    Connect,
    Serve,
    info_of,
)
from tests.server import Server, wait_until

SLOW = (3008, '{"reason":"slow","reconnect":true}')

FLOODED = (3008, '{"reason":"too many requests","reconnect":true}')
TOO_MANY_REQUESTS = {"code": 111, "message": "too many requests"}
AT_ONCE = 30
"""Commands that a client may send at once; connect is one of them."""

SERVERS = pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])


# shutdown


@SERVERS
async def test_clients_of_a_server_that_stops_are_told_to_come_back(
    own_server: Serve, connect: Connect, unique: str, server_name: str
) -> None:
    server = own_server(server=server_name, **MAIN)
    subscribed = await connect(server)
    await subscribed.result("subscribe", {"channel": f"joined:{unique}"})
    protobuf = await connect(server, format_name="protobuf")
    not_connected = await connect(server, connected=False)
    stopped = asyncio.create_task(asyncio.to_thread(server.terminate))
    for client in (subscribed, protobuf, not_connected):
        assert await client.closed() == SHUTDOWN
    await stopped
    assert "Traceback" not in server.log


# slow


@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
async def test_client_that_does_not_read_is_disconnected_and_holds_up_nobody(
    serve: Serve, connect: Connect, unique: str, format_name: str, server_name: str
) -> None:
    server = serve(server=server_name, client_queue_max_size=200_000)
    reader = await connect(server)
    # A small window, and a library that stops reading after one frame.
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    small.setblocking(False)
    address = urlsplit(server.socket)
    await asyncio.get_running_loop().sock_connect(small, (address.hostname, address.port))
    slow = await connect(server, user=unique, sock=small, max_queue=1)
    for client in (reader, slow):
        await client.result("subscribe", {"channel": unique})
    line = f"Disconnecting client {slow.client} of user {unique!r} at 127.0.0.1: 3008: slow"

    published = 0
    while line not in server.log:
        assert published < 1000, "the server buffers without bound"
        await asyncio.to_thread(server.publish, unique, f"{published}:" + "x" * 60_000)
        data = (await reader.publication())["data"]
        assert data.startswith(f"{published}:")
        published += 1

    assert await slow.closed() == SLOW
    received = [push["data"]["data"].partition(":")[0] for push in slow.pushes]
    assert received == [str(number) for number in range(len(received))]
    await reader.result("ping")


@SERVERS
async def test_client_that_reads_late_but_within_the_bound_gets_everything(
    serve: Serve, connect: Connect, unique: str, server_name: str
) -> None:
    server = serve(server=server_name, **MAIN)
    late = await connect(server, max_queue=1)
    await late.result("subscribe", {"channel": unique})
    # 6 MB are more than the sockets hold and less than client_queue_max_size
    for number in range(100):
        await asyncio.to_thread(server.publish, unique, f"{number}:" + "x" * 60_000)
    for number in range(100):
        assert (await late.publication())["data"].startswith(f"{number}:")


# disconnect by the server API


async def test_disconnect_closes_all_connections_of_the_user_and_no_others(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    connections = [await connect(server, user=unique) for _ in range(3)]
    other = await connect(server, user=f"{unique}x")
    assert server.api("disconnect", user=unique) == {"result": {}}
    for client in connections:
        assert await client.closed() == FORCED
    await other.result("ping")


async def test_own_leave_comes_before_the_close_frame(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"joined:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})
    await client.push()
    server.api("disconnect", user=unique)
    assert await client.closed() == FORCED
    info = info_of(client, unique)
    assert list(client.pushes) == [{"type": 2, "channel": channel, "data": {"info": info}}]


# unsubscribe by the server API


def unsub(channel: str) -> dict[str, object]:
    return {"type": 3, "channel": channel, "data": {}}


async def test_unsubscribe_tells_all_connections_of_the_user_also_those_not_subscribed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    subscribed, not_subscribed = [await connect(server, user=unique) for _ in range(2)]
    other = await connect(server, user=f"{unique}x")
    for client in (subscribed, other):
        await client.result("subscribe", {"channel": unique})

    assert server.api("unsubscribe", user=unique, channel=unique) == {"result": {}}

    assert await subscribed.push() == unsub(unique)
    assert await not_subscribed.push() == unsub(unique)
    server.publish(unique, 1)
    assert await other.publication() == {"data": 1}
    await subscribed.quiet()
    await not_subscribed.quiet()


async def test_unsubscribe_publishes_the_leave_and_removes_the_presence(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"joined:{unique}"
    client, watcher = await connect(server, user=unique), await connect(server)
    await client.result("subscribe", {"channel": channel})
    await client.push()
    await watcher.result("subscribe", {"channel": channel})
    await watcher.push()

    server.api("unsubscribe", user=unique, channel=channel)

    leave = {"type": 2, "channel": channel, "data": {"info": info_of(client, unique)}}
    assert await watcher.push() == leave
    await client.push()  # the join of the watcher
    assert [await client.push(), await client.push()] == [leave, unsub(channel)]
    presence = server.api("presence", channel=channel)["result"]["presence"]
    assert list(presence) == [watcher.client]


async def test_unsubscribe_without_channel_ends_all_subscriptions_of_the_user(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    names = {f"{unique}a", f"ns:{unique}b", f"joined:{unique}c"}
    client = await connect(server, token=connection_token(unique, channels=[f"joined:{unique}c"]))
    assert (await client.push())["type"] == 1
    for channel in names - {f"joined:{unique}c"}:
        await client.result("subscribe", {"channel": channel})
    idle = await connect(server, user=unique)

    assert server.api("unsubscribe", user=unique) == {"result": {}}

    pushes = [await client.push() for _ in range(len(names) + 1)]
    unsubs = [push for push in pushes if push["type"] == 3]
    assert sorted(unsubs, key=str) == sorted(map(unsub, names), key=str)
    assert not names & set(server.api("channels")["result"]["channels"])
    await client.quiet()
    await idle.quiet()


# a client that never reads its close frame


async def test_client_that_does_not_answer_the_close_frame_is_dropped(
    serve: Serve, connect: Connect, unique: str
) -> None:
    server: Server = serve(**MAIN)
    client = await connect(server, user=unique, max_queue=1, close_timeout=0.1)
    client.socket.transport.pause_reading()

    def clients() -> int:
        count: int = server.api("info")["result"]["nodes"][0]["num_clients"]
        return count

    wait_until(lambda: clients() == 1, what="the end of the clients of other tests")
    server.api("disconnect", user=unique)
    wait_until(lambda: clients() == 0, what="the end of the connection")
    await client.abort()


# too many requests


async def test_client_that_was_closed_for_flooding_comes_back_without_a_burst(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN, client_command_rates=f"* 1/h burst {AT_ONCE}")
    floods = [("rpc", {"method": "none"})] * (3 * AT_ONCE)
    served: list[int] = []
    for _ in range(3):
        client = await connect(server, user=unique)
        await client.send_together(*floods)
        assert await client.closed() == FLOODED
        errors = [reply["error"] for reply in client.received if "error" in reply]
        served.append(len(errors) - errors.count(TOO_MANY_REQUESTS))
    assert served == [AT_ONCE - 1, 0, 0]
