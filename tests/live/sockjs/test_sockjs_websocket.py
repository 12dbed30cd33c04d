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
)
from tests.server import Server

FRAME_LIMIT = 65_536
"""`websocket_message_size_limit`, bytes."""

Open = Callable[..., Any]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture
async def dial() -> AsyncIterator[Open]:
    """Open a WebSocket: `await dial(server)`; closed when the test ends."""
    stack = AsyncExitStack()

    async def dial(server: Server, path: str = "/000/{}/websocket", **options: Any) -> Any:
        """Open the WebSocket, and read its first frame."""
        url = f"ws://127.0.0.1:{server.port}{PREFIX}" + path.format(Session(server).name)
        socket = await stack.enter_async_context(
            open_socket(url, proxy=None, ping_interval=None, max_size=None, **options)
        )
        assert await receive(socket) == OPEN
        return socket

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
    assert reply["id"] == number
    return reply


async def end(socket: ClientConnection) -> None:
    """The connection ends, and nothing comes before."""
    with pytest.raises(ConnectionClosed):
        await receive(socket)


async def test_publications_come_in_messages_and_advice_in_a_close_frame(
    server: Server, dial: Open, unique: str
) -> None:
    socket = await dial(server)
    await call(socket, 1, "connect", token=connection_token(unique))
    await call(socket, 2, "subscribe", channel=unique)
    for text in ("a", "é\u2028\uffff😀", "x" * 300_000):
        await asyncio.to_thread(server.publish, unique, text)
        frame = await receive(socket)
        assert len(messages(frame)) == 1
        assert data_of(replies(frame)) == [text]
        assert not set(frame) & set("\u2028\uffff")

    await asyncio.to_thread(server.api, "disconnect", user=unique)

    assert await receive(socket) == FORCED
    await end(socket)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
async def test_array_and_single_string_are_taken(server: Server, dial: Open, binary: bool) -> None:
    socket = await dial(server)
    largest = command(1, "connect", name='"' * 30_000).ljust(FRAME_LIMIT)
    for number, content in ((1, [largest]), (2, command(2, "ping"))):
        for nothing in ("", b"", "[]"):
            await socket.send(nothing)
        body = json.dumps(content)
        await socket.send(body.encode() if binary else body)
        assert replies(await receive(socket))[0]["id"] == number


TOO_LARGE = 'c[1009,""]'
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "no end": ('["a', BAD_REQUEST),
    "an empty frame": ('[""]', BAD_REQUEST),
    "no UTF-8": (b"\xff", BAD_REQUEST),
    "a large frame": (json.dumps([" " * (FRAME_LIMIT + 1)]), TOO_LARGE),
    "a large message": (" " * (3 * FRAME_LIMIT + 5), TOO_LARGE),
}


@pytest.mark.parametrize(("frame", "last"), BROKEN.values(), ids=BROKEN)
async def test_message_that_is_no_array_of_frames_closes(
    server: Server, dial: Open, frame: str | bytes, last: str
) -> None:
    socket = await dial(server)
    await socket.send(frame)
    assert await receive(socket) == last
    await end(socket)


async def test_sockets_of_the_same_name_are_sessions_of_their_own(
    server: Server, dial: Open, unique: str
) -> None:
    path = f"/000/{unique}/websocket"
    one, other = await dial(server, path), await dial(server, path)
    await call(one, 1, "connect")
    await call(other, 2, "connect")
    await one.close()
    await call(other, 3, "ping")
    await dial(server, path)
    assert await Session(server, unique).poll() == OPEN, "nor are they those of other transports"


async def test_end_of_the_socket_ends_the_client(
    server: Server, dial: Open, connect: Callable[..., Any], unique: str
) -> None:
    channel = f"joins:{unique}"
    observer = await connect(server)
    await observer.result("subscribe", {"channel": channel})
    await observer.push()
    socket = await dial(server)
    client = (await call(socket, 1, "connect"))["result"]["client"]
    await socket.send(json.dumps([command(2, "subscribe", channel=channel)]))
    assert (await observer.push())["data"]["info"]["client"] == client

    socket.transport.abort()

    leave = await observer.push()
    assert (leave["type"], leave["data"]["info"]["client"]) == (2, client)


async def test_socket_is_quiet_but_for_heartbeats(serve: Callable[..., Server], dial: Open) -> None:
    """One second of silence is what the option says; a client that does not connect is stale."""

    async def listen(server: Server) -> None:
        socket = await dial(server, origin=ALLOWED_ORIGIN)
        frames = [await receive(socket)]
        while not frames[-1].startswith("c"):
            frames.append(await receive(socket))

        # two seconds until it is stale: the second heartbeat may be earlier or later
        assert frames in ([HEARTBEAT, STALE], [HEARTBEAT, HEARTBEAT, STALE])
        await end(socket)

    await asyncio.gather(*(listen(serve(server=name, **QUICK)) for name in SERVERS))


# requests that are no handshake


async def refused(dial: Open, server: Server, **options: Any) -> InvalidStatus:
    """The refusal of a handshake."""
    with pytest.raises(InvalidStatus) as refusal:
        await dial(server, **options)
    return refusal.value


ELSEWHERE = ("/websocket", "/a/websocket", "/a/b/c/websocket", "/a/b./websocket", "/a/b/xhr", "/")


async def test_socket_elsewhere_is_refused(server: Server, dial: Open) -> None:
    for path in ELSEWHERE:
        assert (await refused(dial, server, path=path)).response.status_code == 404, path


@pytest.mark.parametrize(("name", "status"), [("daphne", 403), ("uvicorn", 200)])
async def test_origin_that_is_not_allowed_is_refused(
    serve: Callable[..., Server], dial: Open, name: str, status: int
) -> None:
    quick = serve(server=name, **QUICK)
    refusal = await refused(dial, quick, origin="https://other.example")
    assert refusal.response.status_code == status
    assert not refusal.response.body
