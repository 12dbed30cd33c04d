"""Frames of streams: which format they have, the first ones, and those that come beside."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from realtime.node.node import Node
from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v2 import client_pb2
from realtime.transports.streaming.application import Streaming
from tests.unit.parts import Clock, data, eventually, turns
from tests.unit.transports.emulation.parts import open_node
from tests.unit.transports.streaming.visits import Visit

HTTP_STREAM, SSE, EMULATION = "/connection/http_stream", "/connection/sse", "/emulation"
UNI_HTTP_STREAM, UNI_SSE = "/connection/uni_http_stream", "/connection/uni_sse"
OPTIONS: dict[str, Any] = {
    "client_insecure": True,
    "events": True,
    "http_stream": True,
    "sse": True,
    "uni_http_stream": True,
    "uni_sse": True,
}
BINARY = "application/octet-stream"
CONNECT = b'{"id":1,"connect":{}}'
RPC = b'{"id":2,"rpc":{}}'


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    async with open_node(clock, **OPTIONS) as opened:
        yield opened


NOT_BINARY = ["", "text/plain", "application/json", f"{BINARY}; charset=utf-8", BINARY.title()]
"""Content types of JSON: all but the one of Protobuf, written exactly so."""


def content_type(name: str) -> dict[str, str]:
    return {"content-type": name} if name else {}


async def begin(streaming: Streaming, node: Node, path: str, *request: Any) -> tuple[Visit, str]:
    """Begin a stream; returns it, and its session."""
    stream = Visit(streaming, node, path, "format=protobuf", *request)
    await stream.until("\n")
    return stream, json.loads(stream.text)["connect"]["session"]


async def beside(
    streaming: Streaming, node: Node, request: Mapping[str, Any], headers: Any = None
) -> Visit:
    """Send a request beside a stream, and wait for the response."""
    body = json.dumps({name: value for name, value in request.items() if value is not None})
    visit = Visit(streaming, node, EMULATION, "", body.encode(), headers)
    await visit.serving
    return visit


@pytest.mark.parametrize("name", NOT_BINARY)
async def test_stream_is_json_unless_the_content_type_is_exactly_that_of_protobuf(
    node: Node, name: str
) -> None:
    streaming = Streaming()
    stream, session = await begin(streaming, node, HTTP_STREAM, CONNECT, content_type(name))
    assert stream.text.startswith('{"id":1,"connect":{"client":"')
    assert stream.headers[b"content-type"] == b"text/plain; charset=utf-8"

    request = {"node": node.uid, "session": session, "data": RPC.decode()}
    answer = await beside(streaming, node, request, content_type(name))

    await stream.until('{"id":2,"error":{"code":108,')
    assert (answer.status, answer.text) == (204, "")
    stream.leave()
    await stream.serving


async def test_events_are_json_whatever_the_content_type(node: Node) -> None:
    stream = Visit(Streaming(), node, SSE, "", CONNECT, content_type(BINARY))
    await stream.until('data: {"id":1,"connect":{"client":"')
    stream.leave()
    await stream.serving


async def test_protobuf_stream_has_pings_and_its_end_in_protobuf(clock: Clock) -> None:
    connect = frame_message(client_pb2.Command(id=1, connect=b"").SerializeToString())
    async with open_node(clock, **OPTIONS, ping_interval=25, pong_timeout=8) as node:
        stream = Visit(Streaming(), node, HTTP_STREAM, "", connect, content_type(BINARY))
        await eventually(lambda: len(stream.chunks) == 1)
        for _ in range(50 * 4):  # of seconds: a ping comes, and then no pong
            await clock.advance(0.25)
        await stream.serving

    connected, ping, end = stream.chunks
    assert reply_in(connected).connect.ping == 25
    assert ping == b"\x00"
    told = reply_in(end).push.disconnect
    assert (told.code, told.reason) == (3012, "no pong")
    assert not stream.sent[-1].get("more_body", False)


def reply_in(chunk: bytes) -> client_pb2.Reply:
    """The one message of a chunk, behind its length."""
    size = 1 if chunk[0] < 0x80 else 2
    reply = client_pb2.Reply.FromString(chunk[size:])
    assert frame_message(chunk[size:]) == chunk
    return reply


async def test_client_that_reads_slowly_is_told_so(clock: Clock) -> None:
    async with open_node(clock, **OPTIONS, client_queue_max_size=1000) as node:
        connect = b'{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"news"}}'
        stream = Visit(Streaming(), node, HTTP_STREAM, "", connect)
        await stream.until('"subscribe":{}')
        (client,) = node.hub.clients.values()
        stream.may_send.clear()
        for number in range(30):
            await node.publish("news", data(f'"{number:0>90}"'), node.config.channel)
            await turns()
        await eventually(client.is_closing)
        stream.may_send.set()
        await stream.serving

    *_, first, last = map(json.loads, stream.text.splitlines())
    assert first["push"]["pub"]["data"].strip("0") == ""
    assert last["push"]["disconnect"] == {"code": 3008, "reason": "slow"}


# first frames


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE])
@pytest.mark.parametrize(
    ("frame", "end"),
    [
        *((frame, (3501, "bad request")) for frame in (b"", b"hello", b'{"id":1}')),
        (b'{"id":1,"method":0}', (3501, "bad request")),
        (b'{"id":1,"connect":{"token":"not.a.token"}}', (3500, "invalid token")),
    ],
)
async def test_first_frame_that_does_not_connect_ends_a_stream_that_has_begun(
    clock: Clock, path: str, frame: bytes, end: tuple[int, str]
) -> None:
    async with open_node(clock, **OPTIONS) as node:
        stream = Visit(Streaming(), node, path, "", frame)
        await stream.serving
    told = json.loads(stream.text.strip().removeprefix("data: "))
    assert (stream.status, tuple(told["push"]["disconnect"].values())) == (200, end)


NO_REQUESTS = ["hello", "[]", '{"token":5}', '{"subs":[]}', "{}{}", '{"subs":{"a":{"delta":"x"}}}']


@pytest.mark.parametrize(
    ("path", "query", "body"),
    [
        *((SSE, query, None) for query in ("", "cf_connect=", "other=1")),
        *((UNI_SSE, f"cf_connect={quote(text)}", None) for text in NO_REQUESTS),
        *((UNI_SSE, "", text.encode()) for text in ("", *NO_REQUESTS)),
        *((UNI_HTTP_STREAM, "", text.encode()) for text in ("", *NO_REQUESTS)),
        (EMULATION, "", b"\xff\xff"),
    ],
)
async def test_request_that_cannot_be_read_is_bad(
    node: Node, path: str, query: str, body: bytes | None
) -> None:
    answer = Visit(Streaming(), node, path, query, body)
    await answer.serving
    assert (answer.status, answer.text) == (400, "Bad Request\n")


@pytest.mark.parametrize("query", ["", "cf_connect=", "other=1"])
async def test_unidirectional_events_need_no_request(node: Node, query: str) -> None:
    stream = Visit(Streaming(), node, UNI_SSE, query)
    await stream.until('data: {"connect":{"client":"')
    stream.leave()
    await stream.serving


# requests beside a stream


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 204),
        ({"node": "elsewhere"}, 404),
        ({"node": ""}, 404),
        ({"node": None}, 404),
        ({"session": "unknown"}, 404),
        ({"session": None}, 404),
        ({"data": {"id": 2}}, 404),
        ({"data": None}, 404),
        ({"session": 5}, 400),
    ],
    ids=str,
)
async def test_request_beside_a_stream_needs_its_session(
    node: Node, change: dict[str, Any], status: int
) -> None:
    streaming = Streaming()
    stream, session = await begin(streaming, node, HTTP_STREAM, CONNECT)
    request = {"session": session, "node": node.uid, "data": RPC.decode(), **change}
    assert (await beside(streaming, node, request)).status == status
    stream.leave()
    await stream.serving


async def test_broken_frame_is_taken_and_ends_the_stream(node: Node) -> None:
    streaming = Streaming()
    stream, session = await begin(streaming, node, HTTP_STREAM, CONNECT)
    request = {"session": session, "node": node.uid, "data": "hello"}
    taken = await beside(streaming, node, request)
    await stream.serving
    late = await beside(streaming, node, request)
    assert stream.text.endswith('{"push":{"disconnect":{"code":3501,"reason":"bad request"}}}\n')
    assert (taken.status, late.status) == (204, 404)


async def test_session_of_a_unidirectional_stream_takes_no_frames(node: Node) -> None:
    streaming = Streaming()
    stream, session = await begin(streaming, node, UNI_HTTP_STREAM, b"{}")
    request = {"session": session, "node": node.uid, "data": "{}"}
    assert (await beside(streaming, node, request)).status == 404
    stream.leave()
    await stream.serving
