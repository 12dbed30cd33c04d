"""SockJS over WebSocket: its frames around those of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.conftest import connection_token
from tests.live.raw_http import TIMEOUT
from tests.live.sockjs.client import (
    ALLOWED_ORIGIN,
    BAD_REQUEST,
    FORCED,
    HEARTBEAT,
    OPEN,
    OPTIONS,
    PREFIX,
    QUICK,
    SERVERS,
    STALE,
    Session,
    command,
    data_of,
    messages,
    replies,
    request,
)
from tests.server import Server

FRAME_LIMIT = 65_536
"""`websocket_message_size_limit`, bytes."""

Open = Callable[..., Any]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=SERVERS)
def quick(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **QUICK)


@pytest.fixture
async def dial() -> AsyncIterator[Open]:
    """Open a WebSocket: `await dial(server)`; closed when the test ends."""
    stack = AsyncExitStack()

    async def dial(server: Server, path: str = "/000/{}/websocket", **options: Any) -> Any:
        url = f"ws://127.0.0.1:{server.port}{PREFIX}" + path.format(Session(server).name)
        return await stack.enter_async_context(
            open_socket(url, proxy=None, ping_interval=None, max_size=None, **options)
        )

    yield dial
    await stack.aclose()


async def receive(socket: ClientConnection) -> str:
    """The next SockJS frame."""
    async with asyncio.timeout(TIMEOUT):
        frame = await socket.recv()
    assert isinstance(frame, str), "SockJS frames travel as text"
    return frame


async def call(socket: ClientConnection, number: int, method: str, **params: Any) -> dict[str, Any]:
    """Send a command and receive the next reply."""
    await socket.send(json.dumps([command(number, method, **params)]))
    [reply] = replies(await receive(socket))
    return reply


async def end(socket: ClientConnection) -> None:
    """The connection ends, and nothing comes before."""
    with pytest.raises(ConnectionClosed):
        await receive(socket)


async def test_replies_and_publications_come_in_messages(
    server: Server, dial: Open, unique: str
) -> None:
    socket = await dial(server)
    await receive(socket)
    assert (await call(socket, 1, "connect"))["id"] == 1
    assert (await call(socket, 2, "subscribe", channel=unique))["id"] == 2

    for text in ("a", "é\u2028\uffff😀", "x" * 300_000):
        await asyncio.to_thread(server.publish, unique, text)
        frame = await receive(socket)
        assert len(messages(frame)) == 1
        assert data_of(replies(frame)) == [text]
        assert not set(frame) & set("\u2028\uffff")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
async def test_array_and_single_string_are_taken(server: Server, dial: Open, binary: bool) -> None:
    socket = await dial(server)
    await receive(socket)
    for number, content in ((1, [command(1, "connect")]), (2, command(2, "ping"))):
        body = json.dumps(content)
        await socket.send(body.encode() if binary else body)
        assert replies(await receive(socket))[0]["id"] == number


async def test_empty_frame_and_empty_array_are_ignored(server: Server, dial: Open) -> None:
    socket = await dial(server)
    await receive(socket)
    for nothing in ("", b"", "[]"):
        await socket.send(nothing)
    assert (await call(socket, 1, "connect"))["id"] == 1


BROKEN = ('["a', '[""]', b"\xff")


@pytest.mark.parametrize("frame", BROKEN, ids=repr)
async def test_frame_that_is_no_array_of_frames_closes(
    server: Server, dial: Open, frame: str | bytes
) -> None:
    socket = await dial(server)
    await receive(socket)
    await socket.send(frame)
    assert await receive(socket) == BAD_REQUEST
    await end(socket)


async def test_disconnect_advice_comes_in_a_close_frame_and_then_the_end(
    server: Server, dial: Open, unique: str
) -> None:
    socket = await dial(server)
    await receive(socket)
    await call(socket, 1, "connect", token=connection_token(unique))
    await asyncio.to_thread(server.api, "disconnect", user=unique)
    assert await receive(socket) == FORCED
    await end(socket)


async def test_sockets_of_the_same_name_are_sessions_of_their_own(
    server: Server, dial: Open, unique: str
) -> None:
    path = f"/000/{unique}/websocket"
    one, other = await dial(server, path), await dial(server, path)
    assert [await receive(socket) for socket in (one, other)] == [OPEN, OPEN]

    assert (await call(one, 1, "connect"))["id"] == 1
    assert (await call(other, 2, "connect"))["id"] == 2
    await one.close()
    assert (await call(other, 3, "ping"))["id"] == 3

    again = await dial(server, path)
    assert await receive(again) == OPEN
    assert await Session(server, unique).poll() == OPEN, "nor are they those of other transports"


async def test_end_of_the_socket_ends_the_client(
    server: Server, dial: Open, connect: Callable[..., Any], unique: str
) -> None:
    channel = f"joins:{unique}"
    observer = await connect(server)
    await observer.result("subscribe", {"channel": channel})
    await observer.push()
    socket = await dial(server)
    await receive(socket)
    client = (await call(socket, 1, "connect"))["result"]["client"]
    await socket.send(json.dumps([command(2, "subscribe", channel=channel)]))
    assert (await observer.push())["data"]["info"]["client"] == client

    socket.transport.abort()

    leave = await observer.push()
    assert (leave["type"], leave["data"]["info"]["client"]) == (2, client)


async def test_frame_of_the_largest_size_is_taken(server: Server, dial: Open) -> None:
    socket = await dial(server)
    await receive(socket)
    frame = command(1, "connect", name='"' * 30_000)
    await socket.send(json.dumps([frame.ljust(FRAME_LIMIT)]))
    assert replies(await receive(socket))[0]["id"] == 1


@pytest.mark.parametrize(
    "message",
    [json.dumps([" " * (FRAME_LIMIT + 1)]), " " * (3 * FRAME_LIMIT + 5)],
    ids=["frame", "message"],
)
async def test_larger_message_closes(server: Server, dial: Open, message: str) -> None:
    socket = await dial(server)
    await receive(socket)
    await socket.send(message)
    assert await receive(socket) == 'c[1009,""]'
    await end(socket)


async def test_socket_is_quiet_but_for_heartbeats(serve: Callable[..., Server], dial: Open) -> None:
    """One second of silence is what the option says; a client that does not connect is stale."""

    async def listen(server: Server) -> None:
        socket = await dial(server)
        frames = [await receive(socket)]
        while not frames[-1].startswith("c"):
            frames.append(await receive(socket))

        # two seconds until it is stale: the second heartbeat may be earlier or later
        assert frames in ([OPEN, HEARTBEAT, STALE], [OPEN, HEARTBEAT, HEARTBEAT, STALE])
        await end(socket)

    await asyncio.gather(*(listen(serve(server=name, **QUICK)) for name in SERVERS))


# requests that are no handshake


async def test_plain_request_for_the_socket_is_refused(server: Server) -> None:
    path = Session(server).path("websocket")
    for headers in ({}, {"Connection": "close"}):
        answer = await request(server, "GET", path, None, headers)
        assert answer.status == 400
        assert answer.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD"])
async def test_other_verb_for_the_socket_is_refused(server: Server, method: str) -> None:
    answer = await request(server, method, Session(server).path("websocket"))
    assert (answer.status, answer.body) == (405, b"")
    assert answer.headers["allow"] == "GET"
    assert "content-type" not in answer.headers


async def refused(dial: Open, server: Server, **options: Any) -> InvalidStatus:
    """The refusal of a handshake."""
    with pytest.raises(InvalidStatus) as refusal:
        await dial(server, **options)
    return refusal.value


ELSEWHERE = ("/websocket", "/a/websocket", "/a/b/c/websocket", "/a/b./websocket", "/a/b/xhr", "/")


@pytest.mark.parametrize("path", ELSEWHERE)
@pytest.mark.parametrize("name", ["daphne", "uvicorn"])
async def test_socket_elsewhere_is_refused(
    serve: Callable[..., Server], dial: Open, path: str, name: str
) -> None:
    refusal = await refused(dial, serve(server=name, **OPTIONS), path=path)
    assert refusal.response.status_code == 404


@pytest.mark.parametrize(("name", "status"), [("daphne", 403), ("uvicorn", 200)])
async def test_origin_that_is_not_allowed_is_refused(
    serve: Callable[..., Server], dial: Open, name: str, status: int
) -> None:
    quick = serve(server=name, **QUICK)
    refusal = await refused(dial, quick, origin="https://other.example")
    assert refusal.response.status_code == status
    assert not refusal.response.body


@pytest.mark.parametrize("origin", [None, ALLOWED_ORIGIN])
async def test_other_origins_are_let_in(quick: Server, dial: Open, origin: str | None) -> None:
    socket = await dial(quick, origin=origin)
    assert await receive(socket) == OPEN
