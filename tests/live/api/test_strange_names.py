"""Strange names through the Python API: each engine gives the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import start_nodes
from tests.live.clusters import SERVICE
from tests.live.configurations import Serve
from tests.live.processes import call_view
from tests.redis_cluster import RedisCluster
from tests.redis_server import has_sharded_pubsub
from tests.server import Server

LONE = "a\ud83d"
"""Half of a surrogate pair, which has no form in UTF-8."""
LONG = "x" * 10_000

OVER_CLUSTER = pytest.param(
    "redis-cluster",
    marks=pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7"),
)
ENGINES = ("memory", "redis", OVER_CLUSTER, "postgresql")

REFUSED = "TypeError"
BAD = "BadRequest"
TOO_LONG = "LimitExceeded"

Row = tuple[str, list[Any], str]
REFUSALS: list[Row] = [
    ("publish", [LONE, 1], REFUSED),
    ("publish", ["open:a", LONE], REFUSED),
    ("publish", [LONG, 1], TOO_LONG),
    ("publish_many", [[[LONE, 1]]], REFUSED),
    ("broadcast", [["open:a", LONE], 1], REFUSED),
    ("broadcast", [["open:a", LONG], 1], TOO_LONG),
    ("history", [LONE], REFUSED),
    ("history", [LONG], TOO_LONG),
    ("history_remove", [LONE], REFUSED),
    ("history_remove", [LONG], TOO_LONG),
    ("position", [LONE], REFUSED),
    ("positions", [[LONG]], TOO_LONG),
    ("presence", [LONE], REFUSED),
    ("presence", [LONG], TOO_LONG),
    ("presence_stats", [LONE], REFUSED),
    ("subscribe", [LONE, "open:a"], REFUSED),
    ("subscribe", ["7", LONE], REFUSED),
    ("subscribe", ["7", LONG], TOO_LONG),
    ("unsubscribe", [LONE, "open:a"], REFUSED),
    ("unsubscribe", ["7", LONE], REFUSED),
    ("disconnect", [LONE], REFUSED),
    ("refresh", [LONE], REFUSED),
    ("block", [LONE, 60], REFUSED),
    ("block", [LONG, 60], BAD),
    ("unblock", [LONE], REFUSED),
    ("connections", [LONE], REFUSED),
    ("subscribers", [[LONE]], REFUSED),
]

STRANGE = ("a\0b", "\0", "100%s %(x)s %%", '\'; DROP TABLE "x"; -- $$ \\', "{schema}", "a\nb", " ")


@pytest.fixture(scope="module")
def node_over_cluster(
    redis_cluster: RedisCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    options = {"redis_cluster_addrs": redis_cluster.addresses, "redis_password": "word"}
    [node] = start_nodes(tmp_path_factory, 1, **SERVICE, **options)
    yield node
    node.discard()


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest) -> Server:
    """A node over each engine."""
    given = request.getfixturevalue
    if request.param == "memory":
        serve: Serve = given("serve")
        return serve(**SERVICE)
    if request.param == "redis":
        shared_cluster: Callable[..., list[Server]] = given("shared_cluster")
        return shared_cluster(server="daphne", **SERVICE)[0]
    if request.param == "postgresql":
        node: Server = given("nodes_over_postgresql")[0]
        return node
    over_cluster: Server = given("node_over_cluster")
    return over_cluster


@pytest.mark.parametrize(("function", "arguments", "error"), REFUSALS)
def test_name_that_cannot_be_is_refused(
    server: Server, function: str, arguments: list[Any], error: str
) -> None:
    assert call_view(server, "async-view", function, *arguments)["error"] == error


@pytest.mark.parametrize("name", STRANGE)
def test_name_that_can_be_is_taken(server: Server, name: str) -> None:
    channel = f"recover:{name}"
    calls: list[tuple[str, list[Any]]] = [
        ("publish", [channel, name]),
        ("history", [channel]),
        ("history_remove", [channel]),
        ("position", [channel]),
        ("presence", [channel]),
        ("subscribe", [name, channel]),
        ("unsubscribe", [name, channel]),
        ("disconnect", [name]),
        ("connections", [name]),
        ("subscribers", [[channel]]),
        ("block", [name, 60]),
    ]
    for function, arguments in calls:
        outcome = call_view(server, "async-view", function, *arguments)
        assert "error" not in outcome, (function, outcome)
    assert name in call_view(server, "async-view", "blocked")["result"]
    assert "error" not in call_view(server, "async-view", "unblock", name)
