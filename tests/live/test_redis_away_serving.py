"""Servers while Redis is away or frozen: pages, the server API, and clients that come."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from websockets.exceptions import InvalidStatus

from tests.conftest import connection_token
from tests.live.api_client import SHELLS, line, post
from tests.live.processes import call_view
from tests.protocol_client import open_client
from tests.redis_server import RedisServer
from tests.server import Server

CONNECT_TIMEOUT = 1
READ_TIMEOUT = 1
SLACK = 4.0
"""Seconds that a busy machine may add to the timeouts."""
START_PATIENCE = 2.0
"""Seconds the first request waits for the service to start (`realtime.asgi`)."""
QUICK = 0.75
"""Seconds that a page may take, on a busy machine."""
COMES_BACK = 10.0
"""Seconds until a server has noticed that Redis is there."""

OPTIONS: dict[str, Any] = {
    "redis_connect_timeout": CONNECT_TIMEOUT,
    "redis_read_timeout": READ_TIMEOUT,
    "namespaces": [{"name": "kept", "history_size": 10, "history_lifetime": 300}],
}
INTERNAL_ERROR = {"code": 100, "message": "internal server error"}


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
    return fetched


async def refused(server: Server) -> int:
    """The status with which a client is turned away."""
    with pytest.raises(InvalidStatus) as caught:
        async with open_client(server.socket, connected=False):
            pass
    return caught.value.response.status_code


async def wait_until_served(server: Server) -> None:
    """Come as a client until the server takes one."""
    deadline = time.monotonic() + COMES_BACK
    while True:
        try:
            async with open_client(server.socket, token=connection_token("17")):
                return
        except InvalidStatus:
            assert time.monotonic() < deadline, f"no client was served within {COMES_BACK} s"


class Lost(NamedTuple):
    """A Redis that is not there, or does not answer, until it is mended."""

    redis: RedisServer
    mend: Callable[[], object]


@pytest.fixture(params=["away", "frozen"])
def lost(request: pytest.FixtureRequest, own_redis: Callable[..., RedisServer]) -> Lost:
    redis = own_redis()
    if request.param == "away":
        redis.kill()
        return Lost(redis, redis.start)
    redis.freeze()
    return Lost(redis, redis.resume)


@pytest.fixture(params=["daphne", "uvicorn"])
def server(
    request: pytest.FixtureRequest, cluster: Callable[..., list[Server]], lost: Lost
) -> Server:
    """A server that is started while Redis is lost."""
    (server,) = cluster(1, lost.redis, server=request.param, **OPTIONS)
    return server


# servers that begin without Redis


def test_pages_are_quick_on_a_server_that_began_without_redis(server: Server) -> None:
    first = page(server)
    fetched = pages(server, 5)

    assert first.seconds < START_PATIENCE + SLACK
    assert {(one.status, one.body) for one in [first, *fetched]} == {(200, b"hello")}
    assert [one.seconds for one in fetched if one.seconds > QUICK] == []


async def test_clients_are_refused_in_time_on_a_server_that_began_without_redis(
    server: Server,
) -> None:
    for _ in range(3):
        began = time.monotonic()

        # where a server cannot send a status of ours it sends 403
        assert await refused(server) in (503, 403)

        assert time.monotonic() - began < START_PATIENCE + SLACK


async def test_server_that_began_without_redis_serves_when_it_is_there(
    server: Server, lost: Lost
) -> None:
    assert page(server).status == 200
    await refused(server)

    lost.mend()
    await wait_until_served(server)

    async with open_client(server.socket, token=connection_token("17")) as client:
        await client.result("subscribe", {"channel": "kept:a"})
        for view in ("sync-view", "async-view"):
            assert call_view(server, view, "publish", "kept:a", view)["result"] is None
            assert (await client.publication())["data"] == view
        server.publish("kept:a", "api")
        assert (await client.publication())["data"] == "api"


def test_api_of_a_server_that_began_without_redis_answers_error_100_in_time(
    server: Server,
) -> None:
    for _ in range(2):
        began = time.monotonic()

        answer = post(server, line("publish", {"channel": "kept:a", "data": 1}))

        assert (answer.status, answer.replies) == (200, [{"error": INTERNAL_ERROR}])
        limit = START_PATIENCE + CONNECT_TIMEOUT + READ_TIMEOUT + SLACK
        assert time.monotonic() - began < limit


# servers whose Redis is lost while they serve


@pytest.fixture(params=SHELLS)
def serving(
    request: pytest.FixtureRequest,
    cluster: Callable[..., list[Server]],
    own_redis: Callable[..., RedisServer],
) -> tuple[Server, RedisServer]:
    """A server that serves, by each way to serve the API."""
    redis = own_redis()
    (server,) = cluster(1, redis, **SHELLS[request.param], **OPTIONS)
    server.publish("kept:a", "before")
    return server, redis


@pytest.mark.parametrize("commands", [1, 5])
def test_api_answers_error_100_in_time_while_redis_is_frozen(
    serving: tuple[Server, RedisServer], commands: int
) -> None:
    server, redis = serving
    redis.freeze()
    began = time.monotonic()

    answer = post(server, line("publish", {"channel": "kept:a", "data": 1}) * commands)

    assert (answer.status, answer.replies) == (200, [{"error": INTERNAL_ERROR}] * commands)
    assert time.monotonic() - began < CONNECT_TIMEOUT + READ_TIMEOUT + SLACK
    redis.resume()
    server.publish("kept:a", "after")
    kept = server.api("history", channel="kept:a")["result"]["publications"]
    assert (kept[0]["data"], kept[-1]["data"]) == ("before", "after")


def test_pages_are_quick_while_redis_is_frozen_and_others_publish(
    serving: tuple[Server, RedisServer],
) -> None:
    server, redis = serving
    redis.freeze()
    body = line("publish", {"channel": "kept:a", "data": 1})
    with ThreadPoolExecutor(3) as threads:
        posts = [threads.submit(post, server, body) for _ in range(3)]
        fetched = pages(server, 1.0)
        assert [post.result().replies for post in posts] == [[{"error": INTERNAL_ERROR}]] * 3

    assert {(one.status, one.body) for one in fetched} == {(200, b"hello")}
    assert [one.seconds for one in fetched if one.seconds > QUICK] == []
