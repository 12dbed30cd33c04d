"""Requests of streams: what is answered first, which pages may read, when there is no node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.node.hooks import Caller, Hooks, Identity
from realtime.node.limits.connect_queue import PER_TURN
from realtime.node.node import Node
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
CONNECT = b'{"id":1,"connect":{}}'


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    async with open_node(clock, **OPTIONS) as opened:
        yield opened


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
