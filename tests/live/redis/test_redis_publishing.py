"""The functions of `realtime` with Redis, from every place and process a site has.

Clients are connected to two servers; who calls is one of them, a process under WSGI, or one
that serves nobody at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.live.api_client import OPTIONS, line, post
from tests.live.processes import SET_UP, Worker, call_view, environment, output, worker, wsgi_site
from tests.live.site_process import SiteProcess
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

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
def call(outcome: Call) -> Call:
    """Call a function somewhere, which must succeed; gives its result."""

    def call(function: str, *arguments: Any) -> Any:
        answer = outcome(function, *arguments)
        assert "error" not in answer, answer
        return answer["result"]

    return call


@pytest.fixture
async def clients(servers: list[Server], connect: Callable[..., Any], unique: str) -> list[Any]:
    """One client on each server, of the same user."""
    return [await connect(server, user=unique) for server in servers]


async def subscribe(clients: list[Any], *channels: str) -> None:
    for client in clients:
        for channel in channels:
            await client.result("subscribe", {"channel": channel})


async def test_publish_reaches_the_clients_of_every_server(
    clients: list[Any], call: Call, unique: str
) -> None:
    await subscribe(clients, unique)

    assert call("publish", unique, {"text": "<hi> \u20ac"}) is None

    expected = {"channel": unique, "data": {"data": {"text": "<hi> \u20ac"}}}
    assert [await client.push() for client in clients] == [expected, expected]
    for client in clients:
        await client.quiet()


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


async def test_publications_that_are_kept_arrive_numbered_and_in_order(
    clients: list[Any], call: Call, unique: str
) -> None:
    channel = f"kept:{unique}"
    await subscribe(clients, channel)

    for number in range(1, 4):
        call("publish", channel, number)

    for client in clients:
        publications = [await client.publication() for _ in range(3)]
        assert [(p["data"], p["offset"]) for p in publications] == [(1, 1), (2, 2), (3, 3)]


async def test_broadcast_reaches_the_clients_of_every_server(
    clients: list[Any], call: Call, unique: str
) -> None:
    channels = [unique, f"kept:{unique}", f"{unique}b"]
    await subscribe(clients, *channels)

    outcome = call("broadcast", channels, ["a"])

    assert outcome == [None, call("position", channels[1]), None]
    for client in clients:
        pushes = [await client.push() for _ in channels]
        assert all(push["data"]["data"] == ["a"] for push in pushes)
        assert {push["channel"] for push in pushes} == set(channels)


async def test_unsubscribe_from_a_channel_and_then_from_all(
    clients: list[Any], call: Call, unique: str
) -> None:
    names = [f"{unique}a", f"{unique}b", f"{unique}c"]
    await subscribe(clients, *names)

    assert call("unsubscribe", unique, names[1]) == []
    for client in clients:
        assert await client.push() == {"type": 3, "channel": names[1], "data": {}}

    assert call("unsubscribe", unique) == []
    for client in clients:
        pushes = [await client.push() for _ in range(2)]
        assert {(push["type"], push["channel"]) for push in pushes} == {
            (3, names[0]),
            (3, names[2]),
        }


async def test_disconnect_closes_the_connections_of_the_user_on_every_server(
    servers: list[Server],
    connect: Callable[..., Any],
    clients: list[Any],
    call: Call,
    unique: str,
) -> None:
    somebody_else = await connect(servers[1], user=f"{unique}b")

    assert call("disconnect", unique) == []

    for client in clients:
        assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')
    await somebody_else.quiet()


async def test_presence_and_its_stats_tell_who_is_on_every_server(
    clients: list[Any], call: Call, unique: str
) -> None:
    channel = f"kept:{unique}"
    await subscribe(clients, channel)

    assert call("presence", channel) == {
        client.client: {"user": unique, "client": client.client} for client in clients
    }
    assert call("presence_stats", channel) == {"num_clients": 2, "num_users": 1}


async def test_history_tells_what_is_kept_until_it_is_removed(
    clients: list[Any], call: Call, unique: str
) -> None:
    channel = f"kept:{unique}"
    call("publish", channel, "a")
    await clients[1].result("subscribe", {"channel": channel})
    await clients[1].result("publish", {"channel": channel, "data": "b"})
    call("publish", channel, "c")

    kept = call("history", channel)

    assert [(entry["data"], entry["offset"]) for entry in kept] == [("a", 1), ("b", 2), ("c", 3)]
    assert [entry.get("info") for entry in kept] == [
        None,
        {"user": unique, "client": clients[1].client},
        None,
    ]
    assert len({entry["uid"] for entry in kept} - {""}) == 3
    assert call("history_remove", channel) is None
    assert call("history", channel) == []


async def test_channels_tells_what_has_a_subscriber_on_any_server(
    clients: list[Any], call: Call, unique: str
) -> None:
    names = [f"{unique}a", f"{unique}b"]
    for client, name in zip(clients, names, strict=True):
        await client.result("subscribe", {"channel": name})

    assert [name for name in call("channels") if unique in name] == names


def test_info_tells_of_every_server_and_of_no_other_process(
    servers: list[Server], call: Call
) -> None:
    told = {node["uid"] for node in servers[0].api("info")["result"]["nodes"]}

    assert len(told) == 2
    assert {node["uid"] for node in call("info")} == told


ERRORS: list[tuple[str, list[Any], tuple[str, int, str]]] = [
    ("publish", ["nope:a", 1], ("NamespaceNotFound", 102, "namespace not found")),
    ("broadcast", [["a", ""], 1], ("BadRequest", 107, "bad request")),
    ("history", ["off:a"], ("NotAvailable", 108, "not available")),
    ("disconnect", [""], ("BadRequest", 107, "bad request")),
]


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [pytest.param(*case, id=f"{case[0]}-{json.dumps(case[1])}") for case in ERRORS],
)
def test_errors_are_those_of_the_http_api(
    outcome: Call, function: str, arguments: list[Any], error: tuple[str, int, str]
) -> None:
    answer = outcome(function, *arguments)

    assert (answer["error"], answer["code"], answer["message"]) == error


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


async def test_management_command_reaches_the_clients_of_every_server(
    variables: dict[str, str], clients: list[Any], unique: str
) -> None:
    await subscribe(clients, unique)
    code = f"import realtime; realtime.publish({unique!r}, 1)"

    finished = subprocess.run(
        [sys.executable, "-m", "django", "shell", "-v", "0", "-c", code],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    for client in clients:
        assert await client.publication() == {"data": 1}


# transactions


def test_what_is_published_on_commit_waits_for_it_and_vanishes_with_a_rollback(
    variables: dict[str, str], unique: str
) -> None:
    channel = f"kept:{unique}"
    code = f"""
from django.db import transaction

def kept():
    return [entry["data"] for entry in realtime.history({channel!r})]

class Refused(Exception):
    pass

def publish(data):
    transaction.on_commit(lambda: realtime.publish({channel!r}, data))

with transaction.atomic():
    publish("committed")
    print(kept())
print(kept())
try:
    with transaction.atomic():
        publish("rolled back")
        raise Refused
except Refused:
    print(kept())
with transaction.atomic():
    realtime.publish({channel!r}, "at once", on_commit=False)
    print(kept())
"""
    assert output(SET_UP + code, variables) == [
        "[]",
        "['committed']",
        "['committed']",
        "['committed', 'at once']",
    ]


def test_test_case_of_a_site_sees_what_is_published_on_commit(
    variables: dict[str, str], unique: str
) -> None:
    channel = f"kept:{unique}"
    code = f"""
import io, unittest
from django.db import transaction
from django.test import TestCase
from django.test.runner import DiscoverRunner

class Publishing(TestCase):
    def test_on_commit(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            transaction.on_commit(lambda: realtime.publish({channel!r}, "a"))
            self.assertEqual(realtime.history({channel!r}), [])
        self.assertEqual(len(callbacks), 1)
        self.assertEqual([e["data"] for e in realtime.history({channel!r})], ["a"])

    async def test_twin(self):
        await realtime.apublish("other", 1)

runner = DiscoverRunner(verbosity=0, interactive=False)
runner.setup_test_environment()
databases = runner.setup_databases()
tests = unittest.defaultTestLoader.loadTestsFromTestCase(Publishing)
result = unittest.TextTestRunner(stream=io.StringIO()).run(tests)
runner.teardown_databases(databases)
print(result.testsRun, result.failures, result.errors)
"""
    assert output(SET_UP + code, variables) == ["2 [] []"]
