"""What each request gets: status, headers, first bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
    JSON_BODY,
    SSE,
    STREAMS,
    BinaryStream,
    ask,
    connect_command,
    frame_of,
    streaming,
)
from tests.server import Server

PAGE = "https://example.org"
ELSEWHERE = "https://elsewhere.example"

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


@pytest.fixture
def one_server(serve: Callable[..., Server]) -> Server:
    """For what does not depend on the server."""
    return serve(**STREAMS)


# streams


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


@EVERY_STREAM
async def test_head_comes_also_where_connect_fails(
    one_server: Server, path: str, method: str, content_type: str
) -> None:
    frame = frame_of({"id": 1, "connect": {"token": "not.a.token"}})
    async with streaming(one_server, path, frame, method) as stream:
        assert stream.exchange.status == 200
        assert await stream.ending() == (3500, "invalid token")


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE])
@pytest.mark.parametrize("frame", [b"", b"hello", b'{"id":1}', b'{"id":1,"method":0}'])
async def test_first_frame_that_is_no_connect_command_ends_the_stream(
    one_server: Server, path: str, frame: bytes
) -> None:
    async with streaming(one_server, path, frame) as stream:
        assert stream.exchange.status == 200
        assert await stream.ending() == (3501, "bad request")


@pytest.mark.parametrize("query", ["", "?", "?cf_connect=", "?other=1"])
async def test_events_need_a_first_frame(one_server: Server, query: str) -> None:
    assert (await ask(one_server, "GET", SSE + query)).status == 400


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE, EMULATION])
async def test_large_body_is_refused(server: Server, path: str) -> None:
    assert (await ask(server, "POST", path, b"[" * 65537, JSON_BODY)).status == 413


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((method, HTTP_STREAM) for method in ("GET", "PUT", "HEAD")),
        *((method, SSE) for method in ("PUT", "OPTIONS")),
        *((method, EMULATION) for method in ("GET", "DELETE")),
    ],
)
async def test_other_methods_are_refused(one_server: Server, method: str, path: str) -> None:
    assert (await ask(one_server, method, path)).status == 405


@pytest.mark.parametrize(
    ("options", "served"),
    [
        ({}, ()),
        ({"http_stream": True}, (HTTP_STREAM, EMULATION)),
        ({"sse": True}, (SSE, EMULATION)),
    ],
    ids=["neither", "http_stream", "sse"],
)
async def test_only_what_is_on_is_served(
    serve: Callable[..., Server], options: dict[str, Any], served: tuple[str, ...]
) -> None:
    server = serve(**options)
    statuses = {
        path: (await ask(server, "PUT", path)).status for path in (HTTP_STREAM, SSE, EMULATION)
    }
    assert statuses == {path: 405 if path in served else 404 for path in statuses}


# requests beside them


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 404),
        ({"node": "elsewhere"}, 404),
        ({"session": "unknown"}, 404),
        ({"data": {"id": 2}}, 404),
        ({"data": None}, 404),
        ({"session": 5}, 400),
        ({"NODE": "elsewhere"}, 404),
    ],
    ids=str,
)
async def test_request_for_no_session_is_refused(
    one_server: Server, body: dict[str, Any], status: int
) -> None:
    async with streaming(one_server, HTTP_STREAM, frame_of(connect_command())) as stream:
        await stream.connected()
        good = {"session": stream.session, "node": stream.node, "data": '{"id":2,"rpc":{}}'}
        sent = {**good, **body} if body else {"data": good["data"]}
        if "NODE" in sent:
            del sent["node"]
        answer = await ask(one_server, "POST", EMULATION, json.dumps(sent).encode(), JSON_BODY)
    assert answer.status == status


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", BINARY])
async def test_body_that_is_no_request_is_refused(one_server: Server, content_type: str) -> None:
    body = b"\xff\xff"
    answer = await ask(one_server, "POST", EMULATION, body, {"Content-Type": content_type})
    assert answer.status == 400


async def test_commands_beside_a_stream_are_answered_in_it(server: Server, unique: str) -> None:
    async with streaming(server, HTTP_STREAM, frame_of(connect_command())) as stream:
        await stream.connected()
        subscribe = {"id": 2, "subscribe": {"channel": f"ns:{unique}"}}
        assert await stream.emulate(server, subscribe, {"id": 3, "rpc": {}}) == 204
        assert await stream.message() == {"id": 2, "subscribe": {}}
        assert (await stream.message())["error"]["code"] == 108


async def test_broken_frame_is_taken_and_ends_the_stream(one_server: Server) -> None:
    async with streaming(one_server, SSE, frame_of(connect_command())) as stream:
        await stream.connected()
        assert await stream.emulate_frame(one_server, "hello") == 204
        assert await stream.ending() == (3501, "bad request")
        assert await stream.emulate_frame(one_server, "{}") == 404


# pages


@pytest.mark.parametrize("path", [HTTP_STREAM, EMULATION])
async def test_preflight_is_answered(one_server: Server, path: str) -> None:
    headers = {"Origin": PAGE, "Access-Control-Request-Headers": "content-type"}

    answer = await ask(one_server, "OPTIONS", path, headers=headers)

    assert answer.status == 204
    assert {name: value for name, value in answer.headers.items() if "access" in name} == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-credentials": "true",
        "access-control-allow-headers": "content-type",
        "access-control-allow-methods": "POST, OPTIONS",
        "access-control-max-age": "300",
    }
