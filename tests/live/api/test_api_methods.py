"""`POST /api/<method>`: the rows of the newer dialect, through both ways a site can serve it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, start
from tests.live.api_methods import (
    BAD_REQUEST,
    LIMIT_EXCEEDED,
    METHOD_NOT_FOUND,
    NOT_AVAILABLE,
    NOT_FOUND,
    UNRECOVERABLE,
    call,
    result,
    send,
)
from tests.live.configurations import Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param, **OPTIONS)


WITH_CHANNEL = ["publish", "subscribe", "presence", "presence_stats", "history", "history_remove"]


@pytest.mark.parametrize("name", WITH_CHANNEL)
def test_channel_is_checked(server: Server, name: str) -> None:
    assert call(server, name, data=1) == BAD_REQUEST
    assert call(server, name, channel="", data=1) == BAD_REQUEST
    assert call(server, name, channel="nope:a", data=1) == NOT_FOUND
    assert call(server, name, channel="x" * 256, data=1) == LIMIT_EXCEEDED
    assert call(server, name, channel="h\xe9", data=1) == BAD_REQUEST


NO_DATA = [{}, {"b64data": "!"}, {"b64data": "bm90IEpTT04="}, {"b64data": "/wA="}]
NO_CHANNELS: list[Any] = [None, []]
NO_DISCONNECT = [
    *({"code": 0}, {"reason": "no code"}, {"code": 1000, "reason": "x"}),
    *({"code": 2999, "reason": "x"}, {"code": 5000, "reason": "x"}),
    {"code": 4000, "reason": "x" * 124},
]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    *(("publish", {"channel": "a", **data}) for data in NO_DATA),
    *(("broadcast", {"channels": ["a"], **data}) for data in NO_DATA),
    *(("broadcast", {"channels": channels, "data": 1}) for channels in NO_CHANNELS),
    *(("disconnect", {"user": "17", "disconnect": each}) for each in NO_DISCONNECT),
]


@pytest.mark.parametrize(("name", "params"), REFUSED, ids=str)
def test_params_that_say_nothing_sensible_are_refused(
    server: Server, name: str, params: dict[str, Any]
) -> None:
    assert call(server, name, **params) == BAD_REQUEST


# publish, broadcast


async def test_publish_answers_the_position(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    await client.result("subscribe", {"channel": channel})
    first = result(server, "publish", channel=channel, data={"a": 1}, tags={"k": "v"})
    second = result(server, "publish", channel=channel, b64data=base64.b64encode(b"[2]").decode())
    assert (first["offset"], second["offset"]) == (1, 2)
    assert first["epoch"] == second["epoch"]
    assert [(await client.publication())["data"] for _ in range(2)] == [{"a": 1}, [2]]


async def test_publication_that_skips_history_is_delivered_only(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    await client.result("subscribe", {"channel": channel})
    assert result(server, "publish", channel=channel, data=1, skip_history=True) == {}
    assert (await client.publication())["data"] == 1
    assert result(server, "history", channel=channel, limit=-1)["publications"] == []


async def test_key_publishes_once(client: ProtocolClient, server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    await client.result("subscribe", {"channel": channel})
    first = result(server, "publish", channel=channel, data=1, idempotency_key="k")
    again = result(server, "publish", channel=channel, data=2, idempotency_key="k")
    result(server, "publish", channel=channel, data=3, idempotency_key="")
    assert again == first
    assert [(await client.publication())["data"] for _ in range(2)] == [1, 3]


def test_null_is_data(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    result(server, "publish", channel=channel, data=None)
    (kept,) = result(server, "history", channel=channel, limit=1)["publications"]
    assert kept["data"] is None


def test_broadcast_answers_for_each_channel(server: Server, unique: str) -> None:
    channels = [f"kept:{unique}", "nope:a", unique, "", f"kept:{unique}"]
    first, second, third, fourth, fifth = result(server, "broadcast", channels=channels, data=1)[
        "responses"
    ]
    assert first["result"]["offset"] == 1
    assert (second, third, fourth) == (NOT_FOUND, {"result": {}}, BAD_REQUEST)
    assert fifth["result"]["offset"] == 2


# connections


async def test_unsubscribe_may_be_for_one_client(
    server: Server, connect: Connect, unique: str
) -> None:
    clients = [await connect(server, user=unique) for _ in range(2)]
    for client in clients:
        await client.result("subscribe", {"channel": unique})
    params = {"user": unique, "channel": unique, "client": clients[0].client}
    assert result(server, "unsubscribe", **params) == {}
    assert await clients[0].push() == {"type": 3, "channel": unique, "data": {}}
    result(server, "publish", channel=unique, data=1)
    assert (await clients[1].publication())["data"] == 1


async def test_disconnect_may_spare_clients_and_have_a_code(
    server: Server, connect: Connect, unique: str
) -> None:
    clients = [await connect(server, user=unique) for _ in range(3)]
    await clients[2].result("subscribe", {"channel": unique})

    params = {"user": unique, "whitelist": [clients[2].client], "client": clients[1].client}
    assert result(server, "disconnect", **params) == {}
    assert (await clients[1].closed())[0] == 3012
    params = {"user": unique, "whitelist": [clients[2].client]}
    result(server, "disconnect", **params, disconnect={"code": 4001, "reason": "moved"})
    code, reason = await clients[0].closed()

    assert (code, json.loads(reason)) == (4001, {"reason": "moved", "reconnect": True})
    result(server, "publish", channel=unique, data=1)
    assert (await clients[2].publication())["data"] == 1


@pytest.mark.parametrize("past", [{"expired": True}, {"expire_at": 5}, {"expire_at": -(2**63)}])
async def test_refresh_closes_connections_that_have_expired(
    server: Server, connect: Connect, unique: str, past: dict[str, Any]
) -> None:
    one, other = [await connect(server, user=unique) for _ in range(2)]
    assert result(server, "refresh", user=unique, client=one.client, **past) == {}
    assert (await one.closed())[0] == 3005
    assert result(server, "refresh", user=unique) == {}
    await other.result("subscribe", {"channel": unique})


async def test_refresh_sets_the_info_of_connections(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    result(server, "refresh", user=unique, expire_at=2**33, info={"n": 1.0})
    result(server, "refresh", user=unique)
    await client.result("subscribe", {"channel": channel})
    present = result(server, "presence", channel=channel)["presence"]
    assert present[client.client]["conn_info"] == {"n": 1.0}


@pytest.mark.parametrize("name", ["disconnect", "subscribe", "unsubscribe", "refresh"])
def test_user_that_is_not_connected_is_a_success(server: Server, name: str) -> None:
    for selection in ({}, {"client": "C"}, {"session": "S"}):
        assert result(server, name, user="not here", channel="a", **selection) == {}


# queries


async def test_presence_and_its_numbers(server: Server, connect: Connect, unique: str) -> None:
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})

    assert result(server, "presence", channel=channel) == {
        "presence": {client.client: {"user": unique, "client": client.client}}
    }
    assert result(server, "presence_stats", channel=channel) == {"num_clients": 1, "num_users": 1}
    assert result(server, "presence_stats", channel=f"{channel}-empty") == {
        "num_clients": 0,
        "num_users": 0,
    }
    assert call(server, "presence", channel="off:a") == NOT_AVAILABLE
    assert call(server, "presence_stats", channel="off:a") == NOT_AVAILABLE


@pytest.mark.parametrize(
    ("params", "offsets"),
    [
        ({}, []),
        ({"limit": 2**31 - 1}, [1, 2, 3, 4]),
        ({"limit": -(2**31)}, [1, 2, 3, 4]),
        ({"limit": -1, "since": {"offset": 2**64 - 1}}, []),
        ({"limit": -1, "since": {}}, [1, 2, 3, 4]),
        ({"limit": -1, "since": {"offset": 3}, "reverse": True}, [2, 1]),
    ],
    ids=str,
)
def test_history_in_parts(
    server: Server, unique: str, params: dict[str, Any], offsets: list[int]
) -> None:
    channel = f"kept:{unique}"
    for value in range(4):
        position = result(server, "publish", channel=channel, data=value)

    history = result(server, "history", channel=channel, **params)

    assert set(history) == {"publications", "epoch", "offset"}
    assert [publication["offset"] for publication in history["publications"]] == offsets
    assert (history["epoch"], history["offset"]) == (position["epoch"], 4)
    if "since" in params:
        known = {**params["since"], "epoch": position["epoch"]}
        again = result(server, "history", **{"channel": channel, **params, "since": known})
        assert again == history


def test_history_refuses_what_cannot_be(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    result(server, "publish", channel=channel, data=1, tags={"k": "<v>"})

    (kept,) = result(server, "history", channel=channel, limit=1)["publications"]
    assert set(kept) == {"data", "offset", "tags", "time"}
    assert kept["tags"] == {"k": "<v>"}
    other_epoch = {"offset": 1, "epoch": "another"}
    assert call(server, "history", channel=channel, since=other_epoch) == UNRECOVERABLE
    first = {"offset": 0}
    assert call(server, "history", channel=channel, since=first, reverse=True) == BAD_REQUEST
    assert call(server, "history", channel=channel, since={"offset": 2**64}) == BAD_REQUEST
    assert call(server, "history", channel="off:a") == NOT_AVAILABLE


def test_removed_history_leaves_the_position(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    position = result(server, "publish", channel=channel, data=1)
    assert result(server, "history_remove", channel=channel) == {}
    assert result(server, "history", channel=channel, limit=-1) == {"publications": [], **position}
    assert call(server, "history_remove", channel="off:a") == NOT_AVAILABLE


async def test_channels_have_numbers_and_are_chosen_by_a_pattern(
    server: Server, connect: Connect, unique: str
) -> None:
    for channels in ([f"{unique}-a"], [f"{unique}-a", f"{unique}-b", f"kept:{unique}"]):
        client = await connect(server)
        for channel in channels:
            await client.result("subscribe", {"channel": channel})

    assert result(server, "channels", pattern=f"{unique}-?") == {
        "channels": {f"{unique}-a": {"num_clients": 2}, f"{unique}-b": {"num_clients": 1}}
    }
    assert f"kept:{unique}" in result(server, "channels")["channels"]
    assert result(server, "channels", pattern="nothing*") == {"channels": {}}
    assert call(server, "channels", pattern="*a" * 200) == BAD_REQUEST


def test_info_has_the_nodes(server: Server) -> None:
    before = node_of(server)
    result(server, "publish", channel="nothing", data=1)
    node = node_of(server)

    names = "uid name version num_clients num_users num_subs num_channels uptime metrics"
    assert list(node) == names.split()
    assert node["metrics"]["interval"] >= max(1, before["uptime"])
    published = [each["metrics"]["items"]["node.messages_published"] for each in (before, node)]
    assert published[1] == published[0] + 1
    assert node["metrics"]["items"].keys() == {"node.messages_delivered", "node.messages_published"}


def node_of(server: Server) -> dict[str, Any]:
    (node,) = result(server, "info")["nodes"]
    told: dict[str, Any] = node
    return told


def test_rpc_is_not_configured(server: Server) -> None:
    assert call(server, "rpc") == BAD_REQUEST
    assert call(server, "rpc", method="") == BAD_REQUEST
    assert call(server, "rpc", method="m", params={"a": 1}) == METHOD_NOT_FOUND


# batch


@pytest.mark.parametrize("parallel", [b"false", b"true", b"null"])
def test_batch_runs_commands_in_order(server: Server, unique: str, parallel: bytes) -> None:
    channel = f"kept:{unique}"
    body = b"""{"parallel": %b, "commands": [
        {"publish": {"channel": "%b", "data": {"n": 1.0}}},
        {"nope": {}}, {}, null,
        {"publish": {"channel": "nope:a", "data": 1}},
        {"History": {"channel": "%b", "limit": 1}}
    ]}""" % (parallel, channel.encode(), channel.encode())

    answer = send(server, "batch", body)

    published, unknown, empty, null, refused, history = json.loads(answer.body)["replies"]
    assert published["publish"]["offset"] == 1
    assert (unknown, empty, null) == (METHOD_NOT_FOUND, METHOD_NOT_FOUND, BAD_REQUEST)
    assert refused == NOT_FOUND
    assert history["history"]["publications"][0]["offset"] == 1
    assert b'{"n":1.0}' in answer.body  # the data are not rewritten


@pytest.mark.parametrize("params", [{}, {"commands": []}, {"commands": None}], ids=str)
def test_batch_without_commands_has_no_replies(server: Server, params: dict[str, Any]) -> None:
    assert call(server, "batch", **params) == {"replies": []}


def test_batch_is_bounded(server: Server) -> None:
    body = b'{"commands":[%b{}]}' % (b"{}," * 10_000)
    assert json.loads(send(server, "batch", body).body) == LIMIT_EXCEEDED
    in_a_batch = json.loads(send(server, "batch", b'{"commands":[{"batch":{}}]}').body)
    assert in_a_batch == {"replies": [METHOD_NOT_FOUND]}
