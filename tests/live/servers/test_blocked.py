"""A blocked user is closed and refused, whatever way a client comes."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conftest import connection_token
from tests.live.api_methods import BAD_REQUEST, call, result
from tests.live.configurations import FORCED, NAMESPACES, Connect, Options, Serve
from tests.live.sockjs.client import Session
from tests.live.streaming.client import ask, connect_command, frame_of
from tests.live.streaming.receivers import UNI_WEBSOCKET, receiving
from tests.protocol_client import open_client
from tests.server import Server

WAYS: Options = {
    "namespaces": NAMESPACES,
    "events": True,
    "http_stream": True,
    "sse": True,
    "uni_http_stream": True,
    "uni_sse": True,
    "uni_websocket": True,
    "health": True,
}


@asynccontextmanager
async def blocked(server: Server, user: str) -> AsyncIterator[int]:
    """Block a user in this block. Gives the end."""
    end = int(time.time()) + 1000
    assert result(server, "block_user", user=user, expire_at=end) == {}
    yield end
    assert result(server, "unblock_user", user=user) == {}


async def test_connection_is_closed_and_none_is_opened(
    serve: Serve, connect: Connect, unique: str
) -> None:
    server = serve(**WAYS)
    client, other = await connect(server, user=unique), await connect(server, user=f"{unique}b")

    async with blocked(server, unique) as end:
        assert await client.closed() == FORCED
        async with open_client(server.socket, connected=False) as again:
            await again.send("connect", {"token": connection_token(unique)})
            assert await again.closed() == FORCED
        users = result(server, "blocked_users")["users"]

    assert {"user": unique, "expire_at": end} in users
    assert unique not in str(result(server, "blocked_users"))
    await connect(server, user=unique)
    await other.quiet()


async def test_every_other_way_is_closed(serve: Serve, unique: str) -> None:
    server = serve(**WAYS)
    token = connection_token(unique)
    command = frame_of(connect_command(unique))
    first = json.dumps({"token": token}).encode()
    address = f"/connection/events?channel=public:a&token={token}"

    async with blocked(server, unique):
        streams = [
            await ask(server, "POST", "/connection/http_stream", command),
            await ask(server, "POST", "/connection/sse", command),
            await ask(server, "POST", "/connection/uni_http_stream", first),
            await ask(server, "POST", "/connection/uni_sse", first),
        ]
        events = await ask(server, "GET", address)
        async with receiving(server, UNI_WEBSOCKET, "message", first.decode()) as receiver:
            receiver_end = await receiver.ending()
        session = await Session(server).open()
        await session.command("connect", token=token)
        sockjs = await session.poll()

    assert [b"3503" in answer.body for answer in streams] == [True] * len(streams)
    assert (events.status, json.loads(events.body)["error"]["code"]) == (403, 3503)
    assert receiver_end == (3503, "force disconnect")
    assert sockjs == "c" + json.dumps(list(FORCED), separators=(",", ":"))


@pytest.mark.parametrize(
    "params",
    [
        {"user": ""},
        {"user": "u" * 256},
        {"expire_at": 0},
        {"expire_at": 1},
        {"expire_at": 2**62},
        {"expire_at": None},
    ],
    ids=["nobody", "long", "zero", "past", "far", "never"],
)
def test_mistakes_are_bad_requests(serve: Serve, params: dict[str, object]) -> None:
    server = serve(**WAYS)
    good = {"user": "17", "expire_at": int(time.time()) + 1000}
    assert call(server, "block_user", **good | params) == BAD_REQUEST
    assert call(server, "unblock_user", user="") == BAD_REQUEST
