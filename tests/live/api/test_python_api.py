"""The functions of `realtime` called in the serving process, from every place a site has."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import realtime
from tests.conftest import connection_token, subscription_token
from tests.live.api_client import OPTIONS, post, subscribe
from tests.live.configurations import Connect, Serve
from tests.server import Server

PLACES = [
    "sync-view",
    "thread",
    "sync-to-async",
    "async-view",
    "task",
    "async-to-sync",
    "other-loop",
]
"""Paths of tests/site/views.py: the first three call the sync version, the others the async one."""

Call = Callable[..., Any]


def call(server: Server, place: str, function: str, *arguments: Any) -> dict[str, Any]:
    """Have the site call a function; {"result"}, or {"error", "code", "message"}."""
    body = json.dumps({"function": function, "arguments": arguments}).encode()
    answer = post(server, body, path=f"/call/{place}", headers={})
    assert answer.status == 200, server.log
    outcome: dict[str, Any] = json.loads(answer.body)
    return outcome


@pytest.fixture(params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture
def run(server: Server) -> Call:
    """Call a function in a synchronous view; returns its result."""

    def run(function: str, *arguments: Any) -> Any:
        outcome = call(server, "sync-view", function, *arguments)
        assert "error" not in outcome, outcome
        return outcome["result"]

    return run


@pytest.mark.parametrize("place", PLACES)
async def test_functions_reach_subscribers_and_show_what_is_there(
    server: Server, connect: Connect, unique: str, format_name: str, place: str
) -> None:
    channel, plain = f"kept:{unique}", f"{unique}a"
    client, second = [await connect(server, user=unique) for _ in range(2)]
    await subscribe(client, plain, channel)
    await subscribe(second, channel)

    assert call(server, place, "publish", plain, {"text": "<hi>"}) == {"result": None}
    results = call(server, place, "broadcast", [plain, channel], [1])["result"]
    position = call(server, place, "publish", channel, "b")["result"]

    assert [results[0], results[1][0], position[0]] == [None, 1, 2]
    assert await client.push() == {"channel": plain, "data": {"data": {"text": "<hi>"}}}
    assert await client.push() == {"channel": plain, "data": {"data": [1]}}
    assert [(await client.publication())["data"] for _ in range(2)] == [[1], "b"]
    present = {each.client: {"user": unique, "client": each.client} for each in (client, second)}
    assert call(server, place, "presence", channel) == {"result": present}
    numbers = {"num_clients": 2, "num_users": 1}
    assert call(server, place, "presence_stats", channel) == {"result": numbers}
    kept = call(server, place, "history", channel)["result"]
    assert [(entry["data"], entry["offset"]) for entry in kept] == [([1], 1), ("b", 2)]
    assert call(server, place, "history_remove", channel) == {"result": None}
    assert call(server, place, "history", channel) == {"result": []}
    listed = call(server, place, "channels")["result"]
    assert [name for name in listed if unique in name] == [channel, plain]
    (node,) = call(server, place, "info")["result"]
    assert node["uid"] == server.api("info")["result"]["nodes"][0]["uid"]
    assert call(server, place, "publish", "nope:a", 1) == {
        "error": "NamespaceNotFound",
        "code": 102,
        "message": "namespace not found",
    }


@pytest.mark.parametrize("place", PLACES)
async def test_functions_act_on_the_connections_of_a_user(
    server: Server, connect: Connect, unique: str, place: str
) -> None:
    client = await connect(server, user=unique)
    await subscribe(client, f"{unique}a", f"{unique}b")

    assert call(server, place, "subscribe", unique, f"{unique}c") == {"result": None}
    assert await client.push() == {"type": 5, "channel": f"{unique}c", "data": {}}
    assert call(server, place, "unsubscribe", unique, f"{unique}b") == {"result": []}
    assert await client.push() == {"type": 3, "channel": f"{unique}b", "data": {}}
    assert call(server, place, "unsubscribe", unique) == {"result": []}
    pushes = [await client.push() for _ in range(2)]
    assert {push["channel"] for push in pushes} == {f"{unique}a", f"{unique}c"}
    assert call(server, place, "disconnect", unique) == {"result": []}
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')


# results and errors


async def test_presence_has_the_infos_of_both_tokens(
    server: Server, connect: Connect, run: Call, unique: str
) -> None:
    channel = f"$kept:{unique}"
    client = await connect(server, token=connection_token(unique, info={"name": "A"}))
    token = subscription_token(client.client, channel, info=["editor"])
    await client.result("subscribe", {"channel": channel, "token": token})

    assert run("presence", channel) == {
        client.client: {
            "user": unique,
            "client": client.client,
            "conn_info": {"name": "A"},
            "chan_info": ["editor"],
        }
    }


async def test_history_has_uids_and_the_info_of_publishing_clients(
    server: Server, connect: Connect, run: Call, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    run("publish", channel, 1)
    await client.result("publish", {"channel": channel, "data": 2})

    ours, theirs = run("history", channel)

    assert set(ours) == {"data", "uid", "offset", "time"}
    assert set(theirs) == {"data", "uid", "offset", "time", "info"}
    assert theirs["info"] == {"user": unique, "client": client.client}
    assert ours["uid"] != theirs["uid"]


def test_info_has_the_documented_fields(run: Call) -> None:
    (node,) = run("info")

    assert set(node) == {
        "uid",
        "name",
        "version",
        "num_clients",
        "num_users",
        "num_channels",
        "uptime",
    }
    assert str(uuid.UUID(node["uid"])) == node["uid"]
    assert node["version"] == realtime.__version__


BAD_REQUEST = ("BadRequest", 107, "bad request")
NOT_FOUND = ("NamespaceNotFound", 102, "namespace not found")
NOT_AVAILABLE = ("NotAvailable", 108, "not available")
ERRORS: list[tuple[str, list[Any], tuple[str, int, str]]] = [
    ("publish", ["", 1], BAD_REQUEST),
    ("broadcast", [["nope:a"], 1], NOT_FOUND),
    ("unsubscribe", ["17", "nope:a"], NOT_FOUND),
    ("disconnect", [""], BAD_REQUEST),
    ("presence", ["off:a"], NOT_AVAILABLE),
    ("presence_stats", ["off:a"], NOT_AVAILABLE),
    ("history", ["off:a"], NOT_AVAILABLE),
    ("history_remove", ["off:a"], NOT_AVAILABLE),
]


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [pytest.param(*case, id=f"{case[0]}-{json.dumps(case[1])}") for case in ERRORS],
)
@pytest.mark.parametrize("place", ["sync-view", "async-view"])
def test_errors_are_those_of_the_http_api(
    server: Server, place: str, function: str, arguments: list[Any], error: tuple[str, int, str]
) -> None:
    outcome = call(server, place, function, *arguments)
    assert (outcome["error"], outcome["code"], outcome["message"]) == error


@pytest.mark.parametrize("place", ["sync-on-the-loop", "sync-on-another-loop"])
def test_sync_function_on_an_event_loop_is_an_error_that_names_the_async_version(
    server: Server, unique: str, place: str
) -> None:
    channel = f"kept:{unique}"
    outcome = call(server, place, "publish", channel, 1)
    assert outcome["error"] == "RuntimeError"
    assert "apublish" in outcome["message"]
    assert call(server, "sync-view", "history", channel) == {"result": []}


@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
@pytest.mark.parametrize("place", ["sync-view", "async-view"])
def test_view_publishes_although_no_client_was_ever_there(
    own_server: Serve, server_name: str, place: str
) -> None:
    server = own_server(server=server_name, **OPTIONS)
    offset, epoch = call(server, place, "publish", "kept:a", 1)["result"]
    assert (offset, bool(epoch)) == (1, True)
    (kept,) = call(server, place, "history", "kept:a")["result"]
    assert kept["data"] == 1


def test_many_threads_may_call_at_once(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(
            threads.map(lambda n: call(server, "thread", "publish", channel, n), range(40))
        )
    assert sorted(outcome["result"][0] for outcome in outcomes) == [*range(1, 41)]
