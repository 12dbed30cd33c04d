"""Servers while Redis is away or frozen: pages, the server API, and clients that come."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

from tests.conftest import connection_token
from tests.live.api_client import SHELLS, line, post
from tests.live.clusters import Cluster, OwnRedis
from tests.live.monitoring.scraping import health
from tests.live.processes import call_view
from tests.live.streaming.client import ask
from tests.protocol_client import Closed, open_client
from tests.server import API_KEY, Server, wait_until

CONNECT_TIMEOUT = 2
READ_TIMEOUT = 2
SLACK = 10.0
"""Seconds that a busy machine may add to the timeouts."""
START_PATIENCE = 2.0
"""Seconds the first request waits for the service to start (`realtime.asgi`)."""
QUICK = 1.75
"""Seconds that a page may take, on a busy machine."""
PAGES_FOR = 4.0
"""Seconds in which pages are fetched: the service tries to start every three."""
BETWEEN_PAGES = 0.1
"""Seconds from a page to the next, which leave the machine to others."""
COMES_BACK = 10.0
"""Seconds until a server has noticed that Redis is there."""

OPTIONS: dict[str, Any] = {
    "redis_connect_timeout": CONNECT_TIMEOUT,
    "redis_read_timeout": READ_TIMEOUT,
    "health": True,
    "events": True,
    "http_stream": True,
    "sse": True,
    "uni_http_stream": True,
    "uni_sse": True,
    "uni_websocket": True,
    "namespaces": [{"name": "kept", "history_size": 10, "history_lifetime": 300}],
}
KEPT = {"history_size": 10, "history_lifetime": 300}
JOINED = {"name": "joined", "presence": True, "join_leave": True, "publish": True, **KEPT}
LOGGED: dict[str, Any] = {"namespaces": [JOINED]}
Look = TypeVar("Look")

TURNED_AWAY = {
    "/connection/websocket": "3004 with advice",
    "/connection/websocket?format=protobuf": "3004 with advice",
    "/connection/websocket?cf_protocol_version=v2": "3004",
    "/connection/websocket?cf_protocol_version=v2&format=protobuf": "3004",
    "/connection/uni_websocket": "3004",
    "/connection/sockjs/000/a1/websocket": "3004 with advice",
    "POST /connection/http_stream": 503,
    "POST /connection/sse": 503,
    "POST /connection/uni_http_stream": 503,
    "GET /connection/uni_sse": 503,
    "POST /emulation": 503,
    "POST /connection/sockjs/000/a2/xhr": 503,
    "POST /connection/sockjs/000/a3/xhr_streaming": 503,
    "GET /connection/sockjs/000/a4/eventsource": 503,
    "GET /connection/sockjs/info": 503,
    # any other status would end an EventSource for ever
    "GET /connection/events?channel=public:a": 200,
}
"""What a client gets by each way to connect."""
REASON = "internal server error"
ADVICE = '{"reason":"internal server error","reconnect":true}'

ENGINE_AWAY = {"code": 300, "message": "engine unavailable"}
UNKNOWN = {"code": 301, "message": "outcome unknown"}


class Page(NamedTuple):
    """A page of the site, and the seconds it took."""

    status: int
    body: bytes
    seconds: float


def page(server: Server) -> Page:
    """Fetch a page that has nothing to do with the service."""
    began = time.monotonic()
    answer = post(server, method="GET", path="/hello", headers={})
    return Page(answer.status, answer.body, time.monotonic() - began)


def pages(server: Server, seconds: float) -> list[Page]:
    """Pages fetched one after another for some time."""
    end = time.monotonic() + seconds
    fetched = []
    while time.monotonic() < end:
        fetched.append(page(server))
        time.sleep(BETWEEN_PAGES)
    return fetched


async def turned_away(server: Server) -> tuple[int, str]:
    """The code and the reason with which a client is closed."""
    async with open_client(server.socket, connected=False) as client:
        return await client.closed()


async def outcome(server: Server, way: str) -> int | str:
    """What a client gets by a way to connect, as in `TURNED_AWAY`."""
    method, _, path = way.rpartition(" ")
    if method:
        return (await ask(server, method, path, b"{}" if method == "POST" else None)).status
    address = server.socket.removesuffix("/connection/websocket") + path
    async with open_socket(address, proxy=None) as socket:
        await socket.wait_closed()
    reason = {REASON: "", ADVICE: " with advice"}[socket.close_reason or ""]
    return f"{socket.close_code}{reason}"


async def outcomes(server: Server) -> dict[str, int | str]:
    """What clients get that come by all ways at once."""
    found = await asyncio.gather(*(outcome(server, way) for way in TURNED_AWAY))
    return dict(zip(TURNED_AWAY, found, strict=True))


def timed(count: int, look: Callable[[], Look]) -> list[tuple[Look, float]]:
    """What several looks one after another show, and the seconds that each took."""
    found = []
    for _ in range(count):
        began = time.monotonic()
        shown = look()
        found.append((shown, time.monotonic() - began))
    return found


async def wait_until_served(server: Server) -> None:
    """Come as a client until the server takes one."""
    deadline = time.monotonic() + COMES_BACK
    while True:
        try:
            async with open_client(server.socket, token=connection_token("17")):
                return
        except (Closed, ConnectionClosed):
            assert time.monotonic() < deadline, f"no client was served within {COMES_BACK} s"


def assert_quick(fetched: list[Page]) -> None:
    assert {(one.status, one.body) for one in fetched} == {(200, b"hello")}
    assert [one.seconds for one in fetched if one.seconds > QUICK] == []


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
@pytest.mark.parametrize("lost", ["away", "frozen"])
async def test_server_that_began_without_redis_answers_in_time_and_serves_when_it_is_there(
    own_redis: OwnRedis,
    cluster: Cluster,
    lost: str,
    kind: str,
) -> None:
    """All is looked at side by side: nobody may make the others wait."""
    redis = own_redis()
    (redis.kill if lost == "away" else redis.freeze)()
    (server,) = cluster(1, redis, server=kind, **OPTIONS)
    live = health(server, "/live")
    first = page(server)
    assert (live, health(server, "/live"), health(server, "/ready")) == (200, 200, 503)
    assert await outcomes(server) == TURNED_AWAY

    body = line("publish", {"channel": "kept:a", "data": 1})
    fetched, clients, answers = await asyncio.gather(
        asyncio.to_thread(pages, server, PAGES_FOR),
        asyncio.to_thread(timed, 3, lambda: asyncio.run(turned_away(server))),
        asyncio.to_thread(timed, 2, lambda: post(server, body)),
    )
    assert (first.status, first.body) == (200, b"hello")
    assert first.seconds < START_PATIENCE + SLACK
    assert_quick(fetched)
    assert [closed for closed, _ in clients] == 3 * [(3004, ADVICE)]
    assert max(seconds for _, seconds in clients) < START_PATIENCE + SLACK
    away = (200, [{"error": ENGINE_AWAY}])
    assert [(answer.status, answer.replies) for answer, _ in answers] == 2 * [away]
    patience = START_PATIENCE + CONNECT_TIMEOUT + READ_TIMEOUT + SLACK
    assert max(seconds for _, seconds in answers) < patience
    [logged] = [line for line in server.log.splitlines() if "Could not start the re" in line]
    assert redis.url in logged
    assert "Traceback" not in server.log

    (redis.start if lost == "away" else redis.resume)()
    await wait_until_served(server)
    async with open_client(server.socket, token=connection_token("17")) as client:
        await client.result("subscribe", {"channel": "kept:a"})
        for view in ("sync-view", "async-view"):
            assert "error" not in call_view(server, view, "publish", "kept:a", view)
            assert (await client.publication())["data"] == view
        server.publish("kept:a", "api")
        assert (await client.publication())["data"] == "api"


COMMANDS = (1, 5, 1)
"""Commands of posts at the same time."""


def failures(log: str) -> list[str]:
    """The lines that say what fails while Redis is away."""
    return re.findall("^.*(?: failed|Could not|could not|not connected|interrupted).*$", log, re.M)


@pytest.mark.parametrize("shell", SHELLS)
def test_server_whose_redis_is_frozen_answers_in_time_and_goes_on(
    cluster: Cluster, own_redis: OwnRedis, shell: str
) -> None:
    """By each way to serve the API."""
    redis = own_redis()
    (server,) = cluster(1, redis, **SHELLS[shell], **OPTIONS)
    server.publish("kept:a", "before")
    redis.freeze()
    body = line("publish", {"channel": "kept:a", "data": 1})
    with ThreadPoolExecutor(len(COMMANDS)) as threads:
        posts = [
            threads.submit(timed, 1, functools.partial(post, server, body * count))
            for count in COMMANDS
        ]
        fetched = pages(server, 1.0)
        answers = [answer for post in posts for answer in post.result()]
    redis.resume()

    assert_quick(fetched)
    for (answer, seconds), commands in zip(answers, COMMANDS, strict=True):
        assert (answer.status, len(answer.replies)) == (200, commands)
        assert all(reply["error"] in (ENGINE_AWAY, UNKNOWN) for reply in answer.replies)
        assert seconds < CONNECT_TIMEOUT + READ_TIMEOUT + SLACK
    # whatever failed first: pub/sub notices later that Redis is frozen
    assert len(failures(server.log)) == 1, "one line of an outage"
    assert "Traceback" not in server.log
    server.publish("kept:a", "after")
    kept = server.api("history", channel="kept:a")["result"]["publications"]
    assert (kept[0]["data"], kept[-1]["data"]) == ("before", "after")


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_outage_is_a_line_at_its_begin_and_one_at_its_end(
    cluster: Cluster, own_redis: OwnRedis, kind: str
) -> None:
    redis = own_redis()
    (server,) = cluster(1, redis, server=kind, **LOGGED)
    before = len(server.log)
    async with open_client(server.socket, token=connection_token("17")) as client:
        await client.result("subscribe", {"channel": "joined:a"})
        redis.kill()
        await asyncio.to_thread(wait_until, lambda: "pub/sub was lost" in server.log[before:])

        for _ in range(2):
            await client.error("history", {"channel": "joined:a"})
            await client.error("publish", {"channel": "joined:a", "data": 1})
            await asyncio.to_thread(post, server, line("info"))
            await asyncio.to_thread(
                post,
                server,
                json.dumps({"channel": "joined:a", "data": 1}).encode(),
                path="/api/publish",
                headers={"X-API-Key": API_KEY},
            )
        await client.call("unsubscribe", {"channel": "joined:a"})
        redis.start()
        await asyncio.to_thread(wait_until, lambda: "connected again" in server.log[before:])
    await wait_until_served(server)
    server.stop()

    log = server.log[before:]
    assert log.count("Redis pub/sub was lost: ") == 1
    assert len(re.findall(r"Redis pub/sub is connected again: .*, after \d+\.\d s", log)) == 1
    # one where a heartbeat was under way
    assert len(failures(log)) <= 1
    assert "Traceback" not in log
