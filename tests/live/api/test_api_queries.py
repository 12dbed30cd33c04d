"""presence, presence_stats, history, history_remove, channels and info of the server API."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

import realtime
from tests.conftest import connection_token, subscription_token
from tests.live.api_client import BOTH, OPTIONS, SHELLS, line, post, start, subscribe
from tests.live.configurations import Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until


def presence(server: Server, channel: str) -> dict[str, Any]:
    result: dict[str, Any] = server.api("presence", channel=channel)["result"]["presence"]
    return result


def publications(server: Server, channel: str) -> list[Any]:
    result: list[Any] = server.api("history", channel=channel)["result"]["publications"]
    return result


# presence


async def test_presence_has_user_and_client_under_the_client_id(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"kept:{unique}"
    clients = [await connect(server, user=user) for user in (unique, unique, f"{unique}b", "")]
    for client in clients[:3]:
        await subscribe(client, channel)

    assert presence(server, channel) == {
        clients[0].client: {"user": unique, "client": clients[0].client},
        clients[1].client: {"user": unique, "client": clients[1].client},
        clients[2].client: {"user": f"{unique}b", "client": clients[2].client},
    }
    assert server.api("presence_stats", channel=channel) == {
        "result": {"num_clients": 3, "num_users": 2}
    }


async def test_presence_has_the_infos_of_both_tokens(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"$kept:{unique}"
    client = await connect(server, token=connection_token(unique, info={"name": "<A>"}))
    token = subscription_token(client.client, channel, info={"role": "editor"})
    await client.result("subscribe", {"channel": channel, "token": token})

    answer = post(server, line("presence", {"channel": channel}))

    # the key order is that of the schema, and text is escaped
    assert answer.body.decode() == (
        f'{{"result":{{"presence":{{"{client.client}":{{"user":"{unique}",'
        f'"client":"{client.client}","conn_info":{{"name":"\\u003cA\\u003e"}},'
        f'"chan_info":{{"role":"editor"}}}}}}}}}}\n'
    )


async def test_presence_is_sorted_and_ends_with_the_subscription_and_with_the_connection(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    clients = [await connect(server) for _ in range(8)]
    for client in clients:
        await subscribe(client, channel)
    assert list(presence(server, channel)) == sorted(client.client for client in clients)

    for client in clients[1:]:
        await client.result("unsubscribe", {"channel": channel})
    assert list(presence(server, channel)) == [clients[0].client]
    await clients[0].socket.close()

    wait_until(lambda: presence(server, channel) == {}, what="empty presence")
    assert server.api("presence_stats", channel=channel) == {
        "result": {"num_clients": 0, "num_users": 0}
    }


async def test_options_that_hide_from_clients_do_not_hide_from_the_api(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channel = f"hidden:{unique}"
    await subscribe(client, channel)
    server.publish(channel, 1)
    assert list(presence(server, channel)) == [client.client]
    assert server.api("presence_stats", channel=channel)["result"]["num_clients"] == 1
    assert [publication["data"] for publication in publications(server, channel)] == [1]
    assert server.api("history_remove", channel=channel) == {"result": {}}


# history


def test_history_is_oldest_first_and_bounded_with_a_unique_uid_each(
    server: Server, unique: str
) -> None:
    channels = [f"kept:{unique}", f"kept:{unique}b"]
    for n in range(8):
        server.api("broadcast", channels=channels, data={"n": n})

    kept, others = (publications(server, channel) for channel in channels)

    assert [publication["data"] for publication in kept] == [{"n": n} for n in range(3, 8)]
    assert [set(publication) for publication in kept] == [{"data", "uid"}] * 5
    assert len({publication["uid"] for publication in (*kept, *others)}) == 10
    assert publications(server, channels[0]) == kept
    # what newer clients ask for is ignored
    newer = {"limit": 1, "reverse": True, "since": {"offset": 1}}
    again = server.api("history", channel=channels[0], **newer)
    assert again["result"]["publications"] == kept


async def test_history_has_info_only_where_a_client_published(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server, token=connection_token(unique, info={"name": "A"}))
    server.publish(channel, 1)
    await client.result("publish", {"channel": channel, "data": 2})

    by_api, by_client = publications(server, channel)

    assert "info" not in by_api
    assert by_client["data"] == 2
    assert by_client["info"] == {
        "user": unique,
        "client": client.client,
        "conn_info": {"name": "A"},
    }


async def test_history_remove_forgets_the_publications_and_counts_on(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    other = f"kept:{unique}b"
    await subscribe(client, channel)
    server.api("broadcast", channels=[channel, other], data=1)
    server.publish(channel, 2)

    assert server.api("history_remove", channel=channel) == {"result": {}}

    assert publications(server, channel) == []
    assert len(publications(server, other)) == 1
    server.publish(channel, 3)
    assert [kept["data"] for kept in publications(server, channel)] == [3]
    assert [(await client.publication())["seq"] for _ in range(3)] == [1, 2, 3]


async def test_channels_lists_what_has_a_subscriber(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channels = {unique, f"kept:{unique}", f"off:{unique}"}
    await subscribe(client, *channels)
    server.publish(f"kept:{unique}silent", 1)

    def ours() -> list[str]:
        listed: list[str] = server.api("channels")["result"]["channels"]
        return [name for name in listed if unique in name]

    assert len(ours()) == 3
    assert set(ours()) == channels
    await client.result("unsubscribe", {"channel": unique})
    wait_until(lambda: set(ours()) == channels - {unique}, what="one channel less")


@pytest.mark.parametrize("shell", BOTH)
def test_channels_of_an_idle_server_is_an_empty_array(own_server: Serve, shell: str) -> None:
    assert post(start(own_server, shell), line("channels")).body == b'{"result":{"channels":[]}}\n'


# info

NODE_KEYS = [
    "uid",
    "name",
    "version",
    "num_clients",
    "num_users",
    "num_channels",
    "uptime",
    "metrics",
]


@pytest.mark.parametrize("shell", SHELLS)
def test_info_has_one_node_with_the_documented_fields_in_order(serve: Serve, shell: str) -> None:
    body = post(start(serve, shell), line("info", {})).body

    (node,) = json.loads(body)["result"]["nodes"]
    assert list(node) == NODE_KEYS
    assert str(uuid.UUID(node["uid"])) == node["uid"]
    assert node["version"] == realtime.__version__
    assert isinstance(node["name"], str)
    assert node["name"]
    for name in ("num_clients", "num_users", "num_channels", "uptime"):
        assert type(node[name]) is int
    assert node["metrics"] is None or set(node["metrics"]) == {"interval", "items"}


async def test_info_counts_clients_users_and_channels(
    own_server: Serve, connect: Connect, unique: str
) -> None:
    server = own_server(**OPTIONS, name="the <node>", client_anonymous=True)

    def node() -> dict[str, Any]:
        found: dict[str, Any] = server.api("info")["result"]["nodes"][0]
        return found

    empty = node()
    assert [empty[name] for name in NODE_KEYS[3:6]] == [0, 0, 0]
    assert empty["name"] == "the <node>"
    clients = [await connect(server, user=user) for user in ("1", "1", "2", None, None)]
    await connect(server, connected=False)
    await subscribe(clients[0], f"{unique}a", f"{unique}b")
    await subscribe(clients[1], f"{unique}a")

    # five connected clients; users "1", "2" and ""; two channels
    assert [node()[name] for name in NODE_KEYS[3:6]] == [5, 3, 2]
    assert node()["uid"] == empty["uid"]
    wait_until(lambda: node()["uptime"] > empty["uptime"], what="a later uptime")


def test_info_has_another_uid_for_every_process(serve: Serve, own_server: Serve) -> None:
    uids = {
        start(starter, "asgi").api("info")["result"]["nodes"][0]["uid"]
        for starter in (serve, own_server)
    }
    assert len(uids) == 2
