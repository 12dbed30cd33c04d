"""What operators ask of all nodes at once: who is connected, who subscribes, who is alive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import realtime
from realtime.cluster.peers import HEARTBEAT_INTERVAL, HEARTBEAT_LIFETIME
from tests.conftest import connection_token
from tests.live.api_methods import result
from tests.live.clusters import Cluster, frozen, name_of, nodes
from tests.live.configurations import FORCED, NAMESPACES, Connect
from tests.live.processes import Outcome, Worker, call_view, environment, worker
from tests.live.tools.command import run_here
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

SHARED: dict[str, Any] = {"namespaces": NAMESPACES, "redis_prefix": "surveyed"}
CALLERS = [
    ("server", "sync-view"),
    ("server", "thread"),
    ("server", "async-view"),
    ("server", "other-loop"),
    ("worker", "call"),
    ("worker", "thread-of-a-loop"),
    ("worker", "fork"),
    ("worker", "asyncio-run"),
]
"""A process, and where in it: a view of `tests.site.views` or a way of `tests.site.worker`."""

SLACK = 10.0
"""Seconds that a busy machine may add."""

Call = Callable[..., Outcome]


@pytest.fixture(scope="module")
def servers(shared_cluster: Cluster) -> list[Server]:
    return shared_cluster(**SHARED)


@pytest.fixture(scope="module")
def one_worker(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> Iterator[Worker]:
    directory = tmp_path_factory.mktemp("process")
    with worker(environment(directory, {**SHARED, "redis_url": redis_server.url})) as process:
        yield process


@pytest.fixture(params=CALLERS, ids="-".join)
def call(request: pytest.FixtureRequest, servers: list[Server], one_worker: Worker) -> Call:
    """Call a function somewhere, which must succeed; gives its outcome."""
    process, place = request.param

    def call(function: str, *arguments: Any) -> Outcome:
        if process == "worker":
            outcome = one_worker.call(place, function, *arguments)
        else:
            outcome = call_view(servers[0], place, function, *arguments)
        assert "error" not in outcome, outcome
        return outcome

    return call


def ask(server: Server, function: str, *arguments: Any) -> Outcome:
    """Call a function in a view, which must succeed."""
    outcome = call_view(server, "sync-view", function, *arguments)
    assert "error" not in outcome, outcome
    return outcome


def statuses(server: Server) -> dict[str, dict[str, Any]]:
    """Node name → status, as a view gets them."""
    return {status["name"]: status for status in ask(server, "nodes")["result"]}


async def test_every_place_is_told_of_the_clients_of_all_nodes(
    servers: list[Server], connect: Connect, call: Call, unique: str
) -> None:
    one, other = servers
    token = connection_token(unique, info={"name": "\u00e4"}, channels=[f"{unique}-server"])
    first = await connect(one, token=token)
    await first.result("subscribe", {"channel": unique})
    second = await connect(other, user=unique)
    stranger = await connect(other, user=f"{unique}-somebody-else")
    for channel in (unique, f"{unique}b"):
        await stranger.result("subscribe", {"channel": channel})

    outcome = call("connections", unique)
    found = outcome["result"]
    ages = [connection.pop("seconds") for connection in found]
    # the nodes answer one after another, so the younger connection may be told as the older one
    assert 60 > ages[0] >= ages[1] > 0
    common = {"user": unique, "transport": "websocket"}
    assert sorted(found, key=lambda connection: connection["node"] != name_of(one)) == [
        common
        | {
            "client": first.client,
            "node": name_of(one),
            "channels": [f"{unique}-server", unique],
            "num_channels": 2,
            "info": {"name": "\u00e4"},
        },
        common
        | {
            "client": second.client,
            "node": name_of(other),
            "channels": [],
            "num_channels": 0,
            "info": None,
        },
    ]
    whole = {"num_nodes": 2, "missing": []}
    assert outcome["attributes"] == {"total": 2, "truncated": False, **whole}

    outcome = call("subscribers", [f"{unique}b", unique, f"{unique}-nobody"])
    counts = [(f"{unique}b", 1), (unique, 2), (f"{unique}-nobody", 0)]
    assert list(outcome["result"].items()) == counts
    assert outcome["attributes"] == whole

    for client in (first, second):
        for number in range(20):  # each takes a round trip to end
            await client.result("subscribe", {"channel": f"present:{unique}{number}"})
    call("disconnect", unique)
    outcome = call("connections", unique)
    assert (outcome["result"], outcome["attributes"]["total"]) == ([], 0), "gone at once"


def test_every_place_is_told_of_all_servers_alive_and_no_other_process(
    servers: list[Server], call: Call
) -> None:
    found = {status["name"]: status for status in call("nodes")["result"]}
    assert set(found) == {name_of(server) for server in servers}
    for status in found.values():
        assert status["alive"]
        assert 0 <= status["last_seen_seconds"] < HEARTBEAT_INTERVAL + SLACK
        assert status["version"] == realtime.__version__
    assert 0 < call("round_trip")["result"] < SLACK


async def test_what_is_published_counts_at_the_node_that_publishes_and_what_is_delivered_at_both(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str
) -> None:
    one, other = cluster(2, redis_server, namespaces=NAMESPACES)
    for server in (one, one, other):
        client = await connect(server)
        await client.result("subscribe", {"channel": f"open:{unique}"})

    one.publish(f"open:{unique}", 1)
    for view in ("sync-view", "async-view", "thread"):
        call_view(one, view, "publish", f"open:{unique}", 2)
    await client.result("publish", {"channel": f"open:{unique}", "data": b"3"})
    one.api("disconnect", user="nobody")

    def counts(asked: Server) -> list[tuple[int, int]]:
        found = statuses(asked)
        keys = ("messages_published", "messages_delivered")
        return [tuple(found[name_of(server)][key] for key in keys) for server in (one, other)]

    def are_right() -> bool:
        return all(counts(asked) == [(4, 10), (1, 5)] for asked in (one, other))

    wait_until(are_right, HEARTBEAT_INTERVAL + SLACK, "the right counts")


async def test_killed_node_is_listed_as_dead_and_one_that_ended_is_not_listed(
    cluster: Cluster, redis_server: RedisServer, unique: str
) -> None:
    one, killed, ended = cluster(3, redis_server, namespaces=NAMESPACES)
    assert set(statuses(one)) == {name_of(server) for server in (one, killed, ended)}

    killed.kill()
    ended.terminate()

    wait_until(lambda: is_silent(one, killed), HEARTBEAT_LIFETIME + SLACK, "a dead node")
    found = ask(one, "nodes")["result"]
    assert [status["name"] for status in found] == [name_of(one), name_of(killed)]
    assert HEARTBEAT_LIFETIME <= found[1]["last_seen_seconds"] < HEARTBEAT_LIFETIME + 2 * SLACK
    assert [node["name"] for node in nodes(one)] == [name_of(one)]
    attributes = ask(one, "connections", unique)["attributes"]
    assert (attributes["num_nodes"], attributes["missing"]) == (2, [name_of(killed)])


def is_silent(asked: Server, node: Server) -> bool:
    return not statuses(asked)[name_of(node)]["alive"]


async def test_frozen_node_is_missing_in_every_answer_until_it_goes_on(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str
) -> None:
    one, silent = cluster(2, redis_server, namespaces=NAMESPACES, redis_prefix=unique)
    clients = [await connect(server, user=unique) for server in (one, silent)]
    for client in clients:
        await client.result("subscribe", {"channel": unique})
    to_block = await connect(silent, user=f"{unique}b")
    name = name_of(silent)

    with frozen(silent):
        began = time.monotonic()
        early = ask(one, "connections", unique), ask(one, "subscribers", [unique])
        seconds = time.monotonic() - began
        wait_until(lambda: is_silent(one, silent), HEARTBEAT_LIFETIME + SLACK, "a silent node")
        later = ask(one, "connections", unique), ask(one, "subscribers", [unique])
        listed = ask(one, "channels")
        v1 = [one.api("channels")["result"], one.api("disconnect", user="nobody")["result"]]
        v2 = [
            result(one, "channels"),
            result(one, "unsubscribe", user="nobody", channel=unique),
            result(one, "unblock_user", user="nobody"),
        ]
        command = run_here({}, "disconnect", "nobody", "--url", one.address)
        done = ask(one, "disconnect", unique), ask(one, "block", f"{unique}b", 1000)

    assert 2 <= seconds < 2 + SLACK  # a second for each question
    for found, counted in (early, later):
        assert [connection["node"] for connection in found["result"]] == [name_of(one)]
        assert counted["result"] == {unique: 1}
        for outcome in (found, counted):
            attributes = outcome["attributes"]
            assert (attributes["num_nodes"], attributes["missing"]) == (2, [name])
    assert (listed["result"], listed["attributes"]) == ([unique], {"missing": [name]})
    assert v1 == [{"channels": [unique], "missing": [name]}, {"missing": [name]}]
    assert v2 == [
        {"channels": {unique: {"num_clients": 1}}, "missing": [name]},
        {"missing": [name]},
        {"missing": [name]},
    ]
    assert f"Silent: {name}." in command.stderr
    assert [each["result"] for each in done] == [[name], [name]]
    assert [await client.closed() for client in (*clients, to_block)] == [FORCED] * 3
    wait_until(lambda: ask(one, "subscribers", [unique])["attributes"]["missing"] == [], SLACK)
