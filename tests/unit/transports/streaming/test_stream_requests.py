"""Requests of streams: which format they choose, what is answered first, which pages may read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.node.hooks import Caller, Hooks, Identity
from realtime.node.limits.connect_queue import PER_TURN
from realtime.node.node import Node
from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v2 import client_pb2
from realtime.transports.streaming.application import (
    EVENTS_PATH,
    Streaming,
    response_when_away,
    serves,
)
from tests.unit.parts import Clock, eventually
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
PAGE = "https://example.org"
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


class Waiting(Hooks):
    """A site that does not answer who a client is."""

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        await asyncio.Event().wait()
        return None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (HTTP_STREAM, CONNECT),
        (SSE, CONNECT),
        (UNI_HTTP_STREAM, b"{}"),
        (UNI_SSE, b"{}"),
    ],
)
async def test_head_is_sent_before_connect_is_worked_on(
    clock: Clock, path: str, body: bytes
) -> None:
    async with open_node(clock, **OPTIONS | {"client_insecure": False}) as node:
        node.hooks = Waiting()
        stream = Visit(Streaming(), node, path, "", body)
        await eventually(lambda: len(stream.sent) == 2)  # servers keep a head until there is a body
        assert stream.status == 200
        assert stream.text == ("\r\n" if path.endswith("sse") else "")
        stream.leave()
        await stream.serving


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE, EMULATION, UNI_HTTP_STREAM, UNI_SSE])
@pytest.mark.parametrize(("more", "is_too_large"), [(0, False), (1, True)])
async def test_body_has_a_largest_size(
    node: Node, path: str, more: int, is_too_large: bool
) -> None:
    request = Visit(Streaming(), node, path, "", b"[" * (65536 + more))
    await request.serving
    assert (request.status == 413) is is_too_large


REQUESTS: Mapping[str, tuple[str, bytes | None]] = {
    HTTP_STREAM: ("", b"[]"),
    SSE: (f"cf_connect={quote('[]')}", None),
    f"{SSE} by POST": ("", b"[]"),
    f"{SSE}, refused": ("", None),
    EMULATION: ("", b"{}"),
    f"{EMULATION}, refused": ("", b"[]"),
    UNI_HTTP_STREAM: ("", b'{"token":"x.y.z"}'),
    f"{UNI_HTTP_STREAM}, refused": ("", b""),
    UNI_SSE: ("cf_connect=%7B%22token%22%3A%22x.y.z%22%7D", None),
    f"{UNI_SSE}, refused": ("", b"[]"),
    "/connection/events": ("channel=a&token=x.y.z", None),
    "/connection/events, refused": ("", None),
}
"""Path → query and body of a request that the service ends."""


@pytest.mark.parametrize(("name", "request_"), REQUESTS.items(), ids=REQUESTS)
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, {}),
        (
            {"origin": PAGE},
            {b"access-control-allow-origin": PAGE, b"access-control-allow-credentials": "true"},
        ),
        (
            {"origin": PAGE, "access-control-request-headers": "x-one, x-two"},
            {
                b"access-control-allow-origin": PAGE,
                b"access-control-allow-credentials": "true",
                b"access-control-allow-headers": "x-one, x-two",
            },
        ),
    ],
    ids=["no page", "a page", "a page with headers"],
)
async def test_allowed_page_may_read_each_response(
    clock: Clock,
    name: str,
    request_: tuple[str, bytes | None],
    headers: dict[str, str],
    expected: dict[bytes, str],
) -> None:
    query, body = request_
    options = {**OPTIONS, "client_insecure": False, "allowed_origins": [PAGE]}
    async with open_node(clock, **options) as node:
        path = name.partition(",")[0].partition(" ")[0]
        answer = Visit(Streaming(), node, path, query, body, headers)
        await eventually(lambda: bool(answer.sent))
        answer.leave()
        await answer.serving

    assert expected == {
        key: value.decode() for key, value in answer.headers.items() if b"access-control" in key
    }


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", f"{PAGE}.x"])
async def test_page_that_is_not_allowed_may_not_read_a_refusal(clock: Clock, origin: str) -> None:
    async with open_node(clock, **OPTIONS, allowed_origins=[PAGE]) as node:
        for name, (query, body) in REQUESTS.items():
            path = name.partition(",")[0].partition(" ")[0]
            answer = Visit(Streaming(), node, path, query, body, {"origin": origin})
            await answer.serving
            assert answer.status == 403, name
            assert b"access-control-allow-origin" not in answer.headers, name


@pytest.mark.parametrize("path", [HTTP_STREAM, EMULATION, UNI_HTTP_STREAM])
async def test_preflight_is_answered(clock: Clock, path: str) -> None:
    async with open_node(clock, **OPTIONS, allowed_origins=[PAGE]) as node:
        headers = {"origin": PAGE, "access-control-request-headers": "content-type"}
        answer = Visit(Streaming(), node, path, headers=headers, method="OPTIONS")
        await answer.serving
    assert answer.status == 204
    assert {name: text for name, text in answer.headers.items() if b"access-control" in name} == {
        b"access-control-allow-origin": PAGE.encode(),
        b"access-control-allow-credentials": b"true",
        b"access-control-allow-headers": b"content-type",
        b"access-control-allow-methods": b"POST, OPTIONS",
        b"access-control-max-age": b"300",
    }


ON: Mapping[str, tuple[str, ...]] = {
    "": (),
    "http_stream": (HTTP_STREAM, EMULATION),
    "sse": (SSE, EMULATION),
    "uni_http_stream": (UNI_HTTP_STREAM,),
    "uni_sse": (UNI_SSE,),
    "events": ("/connection/events",),
}
"""Option → paths that it turns on."""


@pytest.mark.parametrize(("option", "served"), ON.items(), ids=ON)
def test_only_what_is_on_is_served(option: str, served: tuple[str, ...]) -> None:
    config = load({option: True} if option else {})
    assert {path for paths in ON.values() for path in paths if serves(path, config)} == {*served}


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (HTTP_STREAM, "POST, OPTIONS"),
        (SSE, "POST, GET"),
        (EMULATION, "POST, OPTIONS"),
        (UNI_HTTP_STREAM, "POST, OPTIONS"),
        (UNI_SSE, "POST, GET"),
        ("/connection/events", "OPTIONS, GET"),
    ],
)
async def test_other_methods_are_refused(node: Node, path: str, allowed: str) -> None:
    for method in {"GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS"} - {*allowed.split(", ")}:
        answer = Visit(Streaming(), node, path, method=method)
        await answer.serving
        assert (answer.status, answer.headers[b"allow"].decode()) == (405, allowed)


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


# turns: others get the event loop in between


@pytest.mark.parametrize(
    ("path", "query", "body", "more"),
    [
        (HTTP_STREAM, "", CONNECT, {}),
        (UNI_HTTP_STREAM, "", b"{}", {}),
        (UNI_HTTP_STREAM, "", b"{}", {"uni_error_mode": "transport"}),
        ("/connection/events", "channel=news", None, {}),
    ],
)
async def test_stream_begins_after_newcomers_that_came_before(
    clock: Clock, path: str, query: str, body: bytes | None, more: dict[str, Any]
) -> None:
    async with open_node(clock, **OPTIONS | more) as node:
        turns = (node.admission.queue.turn() for _ in range(100 * PER_TURN))
        before = [asyncio.create_task(turn) for turn in turns]
        visit = Visit(Streaming(), node, path, query, body)

        await eventually(lambda: node.counters.opened == 1)
        assert sum(task.done() for task in before) > 50 * PER_TURN

        visit.leave()
        await asyncio.gather(visit.serving, *before)


# while the service cannot serve


@pytest.mark.parametrize(
    ("path", "origin", "allowed", "status", "readable"),
    [
        (EVENTS_PATH, PAGE, None, 200, PAGE.encode()),
        (EVENTS_PATH, PAGE, (PAGE,), 200, PAGE.encode()),
        (EVENTS_PATH, "", (PAGE,), 200, None),
        (EVENTS_PATH, "https://elsewhere.example", (PAGE,), 403, None),
        ("/connection/sse", PAGE, None, 503, None),
    ],
)
def test_listener_of_an_allowed_page_learns_that_it_is_to_come_back(
    path: str, origin: str, allowed: Any, status: int, readable: bytes | None
) -> None:
    headers = [(b"origin", origin.encode())] if origin else []
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": headers}
    response, fields = response_when_away(scope, Config(allowed_origins=allowed))
    assert (response.status, response.body.startswith(b"retry: ")) == (status, status == 200)
    assert dict(fields).get(b"access-control-allow-origin") == readable
    assert (b"no-store" in dict(fields).get(b"cache-control", b"")) is (status == 200)
