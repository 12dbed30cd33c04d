"""The functions of `realtime` with Redis, from every place and process a site has.

Clients are connected to two servers; who calls is one of them, a process under WSGI, or one
that serves nobody at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.live.api_client import OPTIONS, line, post
from tests.live.processes import Worker, call_view, environment, worker, wsgi_site
from tests.live.site_process import SiteProcess
from tests.redis_server import RedisServer
from tests.server import Server

SHARED = {**OPTIONS, "redis_prefix": "publishing", "v3_use_offset": True}

VIEWS = ["sync-view", "thread", "sync-to-async", "async-view", "task", "async-to-sync"]
WAYS = [
    "call",
    "thread",
    "thread-of-a-loop",
    "receiver",
    "signal-handler",
    "on-commit",
    "fork",
    "asyncio-run",
    "async-to-sync",
]
CALLERS = [
    *(("server", view) for view in [*VIEWS, "other-loop"]),
    *(("wsgi", view) for view in [*VIEWS, "other-loop"]),
    *(("worker", way) for way in WAYS),
]
"""A process, and where in it: a view of `tests.site.views` or a way of `tests.site.worker`."""

Outcome = dict[str, Any]
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def servers(shared_cluster: Callable[..., list[Server]]) -> list[Server]:
    return shared_cluster(**SHARED)


@pytest.fixture(scope="module")
def variables(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> dict[str, str]:
    """The environment of a process that belongs to the servers."""
    directory = tmp_path_factory.mktemp("process")
    return environment(directory, {**SHARED, "redis_url": redis_server.url})


@pytest.fixture(scope="module")
def one_worker(variables: dict[str, str]) -> Iterator[Worker]:
    """One that has published before, as has the parent of a worker that is forked."""
    with worker(variables) as process:
        assert process.call("call", "publish", "before", 1)["seconds"] < 30
        yield process


@pytest.fixture(scope="module")
def wsgi(variables: dict[str, str]) -> Iterator[SiteProcess]:
    with wsgi_site(variables) as process:
        yield process


@pytest.fixture(params=CALLERS, ids="-".join)
def outcome(
    request: pytest.FixtureRequest, servers: list[Server], one_worker: Worker, wsgi: SiteProcess
) -> Call:
    """Call a function somewhere: {"result"}, or {"error", "code", "message"}."""
    process, place = request.param

    def outcome(function: str, *arguments: Any) -> Outcome:
        if process == "worker":
            return one_worker.call(place, function, *arguments)
        site = servers[0] if process == "server" else wsgi
        return call_view(site, place, function, *arguments)

    return outcome


@pytest.fixture
async def clients(servers: list[Server], connect: Callable[..., Any], unique: str) -> list[Any]:
    """One client on each server, of the same user."""
    return [await connect(server, user=unique) for server in servers]


async def subscribe(clients: list[Any], *channels: str) -> None:
    for client in clients:
        for channel in channels:
            await client.result("subscribe", {"channel": channel})


ERRORS: list[tuple[str, list[Any], tuple[str, int, str]]] = [
    ("publish", ["nope:a", 1], ("NamespaceNotFound", 102, "namespace not found")),
    ("broadcast", [["a", ""], 1], ("BadRequest", 107, "bad request")),
    ("history", ["off:a"], ("NotAvailable", 108, "not available")),
    ("disconnect", [""], ("BadRequest", 107, "bad request")),
]


async def test_functions_reach_the_clients_of_every_server(
    servers: list[Server],
    connect: Callable[..., Any],
    clients: list[Any],
    outcome: Call,
    unique: str,
) -> None:
    """All of them from one place, on one trip."""

    def call(function: str, *arguments: Any) -> Any:
        answer = outcome(function, *arguments)
        assert "error" not in answer, answer
        return answer["result"]

    plain, kept, later = f"{unique}a", f"kept:{unique}", f"{unique}b"
    somebody_else = await connect(servers[1], user=f"{unique}b")
    await subscribe(clients, plain, kept)
    await clients[1].result("subscribe", {"channel": later})
    assert [name for name in call("channels") if unique in name] == sorted([plain, kept, later])
    told = {node["uid"] for node in servers[0].api("info")["result"]["nodes"]}
    assert len(told) == 2
    assert {node["uid"] for node in call("info")} == told
    everybody = {client.client: {"user": unique, "client": client.client} for client in clients}
    assert call("presence", kept) == everybody
    assert call("presence_stats", kept) == {"num_clients": 2, "num_users": 1}

    assert call("publish", plain, {"text": "<hi> \u20ac"}) is None
    expected = {"channel": plain, "data": {"data": {"text": "<hi> \u20ac"}}}
    assert [await client.push() for client in clients] == [expected, expected]
    call("publish", kept, "a")
    await clients[1].result("publish", {"channel": kept, "data": "b"})
    call("publish", kept, "c")
    for client in clients:
        pushed = [await client.publication() for _ in range(3)]
        assert [(each["data"], each["offset"]) for each in pushed] == [("a", 1), ("b", 2), ("c", 3)]
    entries = call("history", kept)
    assert [(each["data"], each["offset"]) for each in entries] == [("a", 1), ("b", 2), ("c", 3)]
    assert [each.get("info") for each in entries] == [None, everybody[clients[1].client], None]
    assert len({entry["uid"] for entry in entries} - {""}) == 3
    assert call("broadcast", [plain, kept], ["d"]) == [None, call("position", kept)]
    for client in clients:
        pushes = [await client.push() for _ in range(2)]
        assert [push["data"]["data"] for push in pushes] == [["d"], ["d"]]
        assert {push["channel"] for push in pushes} == {plain, kept}
    assert call("history_remove", kept) is None
    assert call("history", kept) == []

    await clients[0].result("subscribe", {"channel": later})
    assert call("unsubscribe", unique, kept) == []
    for client in clients:
        assert await client.push() == {"type": 3, "channel": kept, "data": {}}
    assert call("unsubscribe", unique) == []
    for client in clients:
        pushes = [await client.push() for _ in range(2)]
        assert {(push["type"], push["channel"]) for push in pushes} == {(3, plain), (3, later)}
    for function, arguments, error in ERRORS:
        answer = outcome(function, *arguments)
        assert (answer["error"], answer["code"], answer["message"]) == error
    assert call("disconnect", unique) == []
    for client in clients:
        assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')
    await somebody_else.quiet()


def test_broadcasts_and_publications_of_one_request_keep_their_order(
    servers: list[Server], unique: str
) -> None:
    channel = f"kept:{unique}"
    commands = [
        command
        for number in range(0, 40, 2)
        for command in (
            line("broadcast", {"channels": [f"{channel}-too", channel], "data": number}),
            line("publish", {"channel": channel, "data": number + 1}),
        )
    ]
    post(servers[0], b"".join(commands))
    kept = servers[1].api("history", channel=channel)["result"]["publications"]
    assert [publication["data"] for publication in kept] == [35, 36, 37, 38, 39]


async def test_api_under_wsgi_reaches_the_clients_of_every_server(
    wsgi: SiteProcess, clients: list[Any], unique: str
) -> None:
    channel = f"kept:{unique}"
    await subscribe(clients, channel)
    commands = [("publish", {"channel": channel, "data": n}) for n in (1, 2)]
    body = b"".join(line(*command) for command in [*commands, ("history", {"channel": channel})])
    answer = post(wsgi, body)
    assert answer.status == 200
    assert answer.replies[:2] == [{"result": {}}, {"result": {}}]
    assert [p["data"] for p in answer.replies[2]["result"]["publications"]] == [1, 2]
    for client in clients:
        assert [(await client.publication())["data"] for _ in range(2)] == [1, 2]
