"""Listeners that come back, or cannot: logins, expiry, lost streams, slow readers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import pytest

from realtime.engine.redis.keys import Keys
from tests.conftest import connection_token
from tests.live.api_methods import KEY
from tests.live.clusters import presence_stats
from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.live.raw_http import TIMEOUT
from tests.live.server_ways import small_socket
from tests.live.streaming.client import JSON_BODY, ask
from tests.live.streaming.listeners import LISTENERS, address, listening
from tests.redis_server import RedisServer
from tests.server import Server, wait_until


async def test_login_session_says_who_listens_until_it_ends(
    serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory, unique: str
) -> None:
    server = serve(environment=environment(tmp_path_factory), **OPTIONS, events=True)
    username, pk = create_user(server)
    visitor = Visitor(server, username)
    path = address(f"{unique}#{pk}", token="")
    page = {"Cookie": visitor.headers["Cookie"], "Sec-Fetch-Site": "same-origin"}

    async with listening(server, path, page) as listener:
        await asyncio.to_thread(
            wait_until, lambda: presence_stats(server, f"{unique}#{pk}") == (1, 1), what="presence"
        )
        await asyncio.to_thread(server.publish, f"{unique}#{pk}", 1)
        assert await listener.data() == 1
        await asyncio.to_thread(visitor.log_out)
        last = (await listener.rest())[-1]

    assert (last.name, json.loads(last.data or "")["code"]) == ("disconnect", 3503)
    assert (await ask(server, "GET", path, headers=page)).status == 401
    # a link on another site, which sends the cookie along
    foreign = {**page, "Sec-Fetch-Site": "cross-site"}
    assert (await ask(server, "GET", path, headers=foreign)).status == 403


async def test_server_api_sets_when_a_listener_expires(
    serve: Callable[..., Server], unique: str
) -> None:
    server = serve(**LISTENERS, client_expired_close_delay=0)
    path = address(f"long:{unique}", token=connection_token(unique))
    async with listening(server, path) as listener:
        await listener.begun()
        refresh = {"user": unique, "expire_at": int(time.time()) + 2}
        body = json.dumps(refresh).encode()
        await ask(server, "POST", "/api/refresh", body, {**JSON_BODY, **KEY})

        (last,) = await listener.rest()

    # its token is still good, so it may come back
    assert (last.name, last.data) == ("", None)
    assert 500 <= int(last.retry or "") <= 5000
    async with listening(server, path, {"Last-Event-ID": listener.id}) as again:
        await again.begun()


# what is lost


async def test_stream_that_redis_lost_is_reset(
    cluster: Callable[..., list[Server]], redis_server: RedisServer, unique: str
) -> None:
    (server,) = cluster(1, redis_server, redis_prefix=unique, **LISTENERS)
    lost, kept = f"long:{unique}", f"long:{unique}-2"
    path = address(lost, kept)
    async with listening(server, path) as listener:
        await listener.begun()
        for channel in (lost, kept):
            await asyncio.to_thread(server.publish, channel, 1)
            assert await listener.data() == 1
        with redis_server.client() as redis:
            redis.delete(*Keys(unique).stream(lost))
        await asyncio.to_thread(server.publish, lost, 2)
        end = (await listener.rest())[-1]
    await asyncio.to_thread(server.publish, kept, 3)

    async with listening(server, path, {"Last-Event-ID": listener.id}) as again:
        reset, missed = await again.event(), await again.event()
        await asyncio.to_thread(server.publish, lost, 4)
        live = await again.event()

    assert (end.name, end.data) == ("", None)
    assert (reset.name, json.loads(reset.data or "")) == ("reset", {"channels": [lost]})
    assert (missed.name, missed.data) == (kept, "3")
    assert (live.name, live.data) == (lost, "4")


async def test_listener_that_does_not_read_comes_back_to_a_reset(
    serve: Callable[..., Server], unique: str
) -> None:
    few = {"history_size": 3, "history_lifetime": 60, "history_recover": True, "presence": True}
    namespaces = [{"name": "few", **few}]
    server = serve(events=True, namespaces=namespaces, client_queue_max_size=200_000)
    channel = f"few:{unique}"
    path = address(channel)
    with small_socket(server) as connection:
        connection.settimeout(TIMEOUT)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        received = b""
        while b"id: " not in received or not received.endswith(b"\r\n"):
            part = await asyncio.to_thread(connection.recv, 4096)
            assert part, received
            received += part
        event_id = received.rpartition(b"id: ")[2].split(b"\n")[0].decode()

        for number in range(80):  # more than sockets buffer
            await asyncio.to_thread(server.publish, channel, f"{number} {'x' * 100_000}")
        await asyncio.to_thread(
            wait_until, lambda: presence_stats(server, channel) == (0, 0), what="the end"
        )

    async with listening(server, path, {"Last-Event-ID": event_id}) as again:
        reset = await again.event()
        await asyncio.to_thread(server.publish, channel, "new")
        assert await again.data() == "new"
    assert (reset.name, json.loads(reset.data or "")) == ("reset", {"channels": [channel]})
