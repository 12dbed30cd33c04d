"""presence, presence_stats, history; ping, send, rpc. docs/protocol.md, 3.16 to 3.19."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    MAIN,
    OFFSET,
    UNRECOVERABLE_POSITION,
    Connect,
    Options,
    Serve,
    info_of,
)

VARIANTS = pytest.mark.parametrize("options", [MAIN, OFFSET], ids=["seq", "offset"])


# presence


async def test_presence_holds_every_subscriber_with_the_infos_it_has(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"$present:{unique}"
    first = await connect(server, token=connection_token("17", info={"name": "A"}))
    second = await connect(server, user="18")
    token = subscription_token(first.client, channel, info={"role": "host"})
    await first.result("subscribe", {"channel": channel, "token": token})
    token = subscription_token(second.client, channel)
    await second.result("subscribe", {"channel": channel, "token": token})

    result = await second.result("presence", {"channel": channel})

    infos = {"conn_info": {"name": "A"}, "chan_info": {"role": "host"}}
    assert result == {
        "presence": {
            first.client: info_of(first) | infos,
            second.client: info_of(second, "18"),
        }
    }


async def test_presence_is_the_same_for_the_server_api(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"present:{unique}"
    client = await connect(server, token=connection_token("17", info=[1]))
    await client.result("subscribe", {"channel": channel})
    result = await client.result("presence", {"channel": channel})
    assert server.api("presence", channel=channel) == {"result": result}


async def test_presence_stats_count_clients_and_distinct_users(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"anonymous:{unique}"
    clients = [await connect(server, user=user) for user in ("17", "17", "18", "", "")]
    for client in clients:
        await client.result("subscribe", {"channel": channel})
    result = await clients[0].result("presence_stats", {"channel": channel})
    assert result == {"num_clients": 5, "num_users": 3}


# history


async def test_history_is_read_in_parts_in_json(
    serve: Serve, connect: Connect, unique: str
) -> None:
    """As the client of the package asks for them; Centrifugo 2 gives all."""
    server, channel = serve(**MAIN), f"recover:{unique}"
    client = await connect(server)
    position = await client.result("subscribe", {"channel": channel})
    for number in (1, 2, 3):
        server.publish(channel, number)
    since = {"offset": 1, "epoch": position["epoch"]}

    async def data(**part: Any) -> list[Any]:
        result = await client.result("history", {"channel": channel, "part": part})
        return [entry["data"] for entry in result["publications"]]

    assert await data(limit=2) == [1, 2]
    assert await data(limit=1, reverse=True) == [3]
    assert await data(since=since) == [2, 3]
    lost = {"channel": channel, "part": {"since": since | {"epoch": "other"}}}
    assert await client.error("history", lost) == UNRECOVERABLE_POSITION


@VARIANTS
@pytest.mark.parametrize("namespace", ["kept", "recover"])
async def test_history_holds_what_is_kept_oldest_first_with_uid_and_position(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    options: Options,
    namespace: str,
) -> None:
    server, channel = serve(**options), f"{namespace}:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    for number in range(1, 5):
        server.publish(channel, number)
    await client.result("publish", {"channel": channel, "data": 5})

    entries = (await client.result("history", {"channel": channel}))["publications"]

    uids = [entry.pop("uid") for entry in entries]
    assert all(uids)
    assert len(set(uids)) == 3
    seqs = [{"seq": n} if options is MAIN else {} for n in (3, 4, 5)]
    assert entries == [
        {"data": 3, "offset": 3} | seqs[0],
        {"data": 4, "offset": 4} | seqs[1],
        {"data": 5, "offset": 5, "info": info_of(client)} | seqs[2],
    ]


async def test_uids_of_history_do_not_change_and_are_those_of_the_server_api(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"kept:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    for _ in range(3):
        server.publish(channel, "the same")

    def uids(result: dict[str, Any]) -> list[str]:
        return [entry["uid"] for entry in result["publications"]]

    first = uids(await client.result("history", {"channel": channel}))
    assert uids(await client.result("history", {"channel": channel})) == first
    assert uids(server.api("history", channel=channel)["result"]) == first


# ping, send, rpc


async def test_send_gets_no_reply(serve: Serve, connect: Connect, format_name: str) -> None:
    client = await connect(serve(**MAIN))
    client.received.clear()
    await client.send("send", {"data": {"anything": 1}})
    ping = await client.send("ping")
    await client.reply(ping)
    assert [message["id"] for message in client.received] == [ping]
