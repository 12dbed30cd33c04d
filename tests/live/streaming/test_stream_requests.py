"""What each request gets: status, headers, first bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v2 import client_pb2
from tests.conftest import connection_token
from tests.live.raw_http import open_exchange
from tests.live.streaming.client import (
    BINARY,
    BINARY_BODY,
    EMULATION,
    HTTP_STREAM,
    SSE,
    STREAMS,
    BinaryStream,
    ask,
    connect_command,
    frame_of,
    streaming,
)
from tests.server import Server

HEAD = {
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache, no-store, must-revalidate, max-age=0",
    "pragma": "no-cache",
    "transfer-encoding": "chunked",
}
LINES = "text/plain; charset=utf-8"
EVENTS = "text/event-stream; charset=utf-8"

EVERY_STREAM = pytest.mark.parametrize(
    ("path", "method", "content_type"),
    [(HTTP_STREAM, "POST", LINES), (SSE, "POST", EVENTS), (SSE, "GET", EVENTS)],
    ids=["http_stream", "sse by POST", "sse"],
)


@pytest.fixture(params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **STREAMS)


@EVERY_STREAM
async def test_stream_begins_with_its_head_and_the_reply_of_connect(
    server: Server, path: str, method: str, content_type: str
) -> None:
    async with streaming(server, path, frame_of(connect_command()), method) as stream:
        assert stream.exchange.status == 200
        assert HEAD | {"content-type": content_type} == {
            name: value
            for name, value in stream.exchange.headers.items()
            if name not in ("date", "server")
        }
        result = await stream.connected()

    assert stream.session != stream.client
    assert result["node"] in [node["uid"] for node in server.api("info")["result"]["nodes"]]


async def test_protobuf_is_chosen_by_the_content_type(server: Server) -> None:
    request = client_pb2.ConnectRequest(token=connection_token("17"))
    command = client_pb2.Command(id=1, connect=request.SerializeToString())
    body = frame_message(command.SerializeToString())
    exchange = await open_exchange(server, "POST", HTTP_STREAM, body, BINARY_BODY)
    await exchange.begin()
    stream = BinaryStream(exchange)
    connected = await stream.reply()

    ping = client_pb2.Command(id=2, rpc=b"")
    emulation = client_pb2.EmulationRequest(
        node=connected.connect.node,
        session=connected.connect.session,
        data=frame_message(ping.SerializeToString()),
    )
    answer = await ask(server, "POST", EMULATION, emulation.SerializeToString(), BINARY_BODY)

    assert exchange.headers["content-type"] == BINARY
    assert (connected.id, connected.connect.session != "") == (1, True)
    assert answer.status == 204
    assert (await stream.reply()).error.code == 108
    await exchange.close()


async def test_commands_beside_a_stream_are_answered_in_it(server: Server, unique: str) -> None:
    async with streaming(server, HTTP_STREAM, frame_of(connect_command())) as stream:
        await stream.connected()
        subscribe = {"id": 2, "subscribe": {"channel": f"ns:{unique}"}}
        assert await stream.emulate(server, subscribe, {"id": 3, "rpc": {}}) == 204
        assert await stream.message() == {"id": 2, "subscribe": {}}
        assert (await stream.message())["error"]["code"] == 108
