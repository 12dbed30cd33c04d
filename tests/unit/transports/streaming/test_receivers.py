"""Receivers whose failed connect is an HTTP status; who goes, and who stops, meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from realtime.errors import (
    Disconnect,
    DisconnectConnectionLimit,
    DisconnectExpired,
    DisconnectServerError,
    DisconnectShutdown,
    DisconnectStale,
    DisconnectTooManyRequests,
    Error,
    Expired,
    InternalError,
    PermissionDenied,
    TokenExpired,
    TooManyRequests,
)
from realtime.node.hooks import Caller, Hooks, Identity
from realtime.node.node import Node
from realtime.server_api import operations
from realtime.timers import Timers
from realtime.transports.streaming.application import Streaming
from tests.unit.parts import Clock, data, eventually
from tests.unit.suspended_engine import SuspendedEngine
from tests.unit.transports.emulation.parts import open_node
from tests.unit.transports.streaming.visits import Visit

OPTIONS: Mapping[str, Any] = {
    "uni_http_stream": True,
    "uni_sse": True,
    "events": True,
    "uni_error_mode": "transport",
    "client_insecure": False,
}
PATHS = {"/connection/uni_sse": "data: ", "/connection/uni_http_stream": ""}
"""Path → what stands before each message."""

EVENTS = "/connection/events"

each_path = pytest.mark.parametrize("path", PATHS)
each_way = pytest.mark.parametrize("path", [*PATHS, EVENTS])


class AllHooks(Hooks):
    """A site that a test makes wait, refuse or fail."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.failure = failure
        self.identity: Identity | None = Identity("17", channels=("news",))

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        self.asked += 1
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return self.identity


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    async with open_node(clock, **OPTIONS) as opened:
        yield opened


def visit(node: Node, path: str, request: Mapping[str, Any] | None = None) -> Visit:
    if path == EVENTS:
        return Visit(Streaming(), node, path, "channel=news")
    return Visit(Streaming(), node, path, body=json.dumps(request or {}).encode())


def told(receiver: Visit) -> tuple[int, int, str]:
    """Status, code and message of a refusal."""
    error = json.loads(receiver.text)["error"]
    return receiver.status, error["code"], error["message"]


@each_path
async def test_head_waits_for_connect_and_then_all_is_as_usual(clock: Clock, path: str) -> None:
    async with open_node(clock, **OPTIONS) as node:
        node.hooks = hooks = AllHooks()
        receiver = visit(node, path)
        await eventually(lambda: hooks.asked == 1)
        assert receiver.sent == []

        hooks.may_answer.set()
        await receiver.until('"subs":{"news":{}}')
        await node.publish("news", data("1"), node.config.channel)
        await receiver.until('{"channel":"news","pub":{"data":1}}')
        await operations.disconnect(node, "17")
        await receiver.serving

    begin = PATHS[path]
    assert receiver.status == 200
    assert receiver.headers[b"x-accel-buffering"] == b"no"
    assert receiver.text.lstrip().startswith(f'{begin}{{"connect":')
    assert f'{begin}{{"disconnect":{{"code":3503,' in receiver.text
    assert receiver.sent[-1].get("more_body", False) is False


@each_path
@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (TokenExpired(), (401, 109, "token expired")),
        (Expired(), (401, 110, "expired")),
        (PermissionDenied(), (403, 103, "permission denied")),
        (TooManyRequests(), (429, 111, "too many requests")),
        (InternalError(), (500, 100, "internal server error")),
        (Error(1001, "closed <today>"), (403, 1001, "closed <today>")),
        (Error(1001, "busy", temporary=True), (503, 1001, "busy")),
        (DisconnectExpired(), (401, 3005, "connection expired")),
        (DisconnectConnectionLimit(), (403, 3504, "connection limit")),
        (DisconnectTooManyRequests(), (429, 3013, "too many requests")),
        (DisconnectStale(), (503, 3502, "stale")),
        (DisconnectShutdown(), (503, 3001, "shutdown")),
        (DisconnectServerError(), (500, 3004, "internal server error")),
        (Disconnect(4000, "later", reconnect=True), (503, 4000, "later")),
        (Disconnect(4000, "banned"), (403, 4500, "banned")),
        (RuntimeError("a defect of the site"), (500, 3004, "internal server error")),
    ],
    ids=repr,
)
async def test_failure_of_connect_decides_the_status(
    node: Node, path: str, failure: Exception, answer: tuple[int, int, str]
) -> None:
    node.hooks = hooks = AllHooks(failure)
    hooks.may_answer.set()
    receiver = visit(node, path)
    await receiver.serving

    assert told(receiver) == answer
    assert receiver.headers[b"content-type"] == b"application/json"
    assert receiver.headers[b"cache-control"] == b"no-store"
    assert (b"www-authenticate" in receiver.headers) is (answer[0] == 401)
    assert "<" not in receiver.text
    code, counters = str(answer[1]), node.counters
    is_error = isinstance(failure, Error)
    assert counters.command_errors.counts() == ({("connect", code): 1} if is_error else {})
    assert counters.disconnects.counts() == {(code,): 1}
    await eventually(lambda: not node.hub.clients)


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ({}, (401, 3501, "bad request")),
        ({"token": "not.a.token"}, (401, 3500, "invalid token")),
    ],
    ids=["none", "wrong"],
)
async def test_unknown_receiver_needs_a_token(
    node: Node, request_: Mapping[str, Any], answer: tuple[int, int, str]
) -> None:
    receiver = visit(node, "/connection/uni_sse", request_)
    await receiver.serving
    assert told(receiver) == answer


async def test_wrong_channel_is_a_bad_request(node: Node) -> None:
    node.hooks = hooks = AllHooks()
    hooks.may_answer.set()
    hooks.identity = Identity("17", channels=("unknown:news",))
    receiver = visit(node, "/connection/uni_sse")
    await receiver.serving
    assert told(receiver) == (400, 102, "unknown channel")


@each_path
async def test_engine_that_is_away_is_an_error_of_the_server(clock: Clock, path: str) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    async with open_node(clock, engine, **OPTIONS) as node:
        node.hooks = hooks = AllHooks()
        hooks.may_answer.set()
        engine.failing.add("subscribe")
        receiver = visit(node, path)
        await receiver.serving
        engine.failing.clear()

        assert told(receiver) == (500, 3004, "internal server error")
        await eventually(lambda: not node.hub.clients)


@each_way
async def test_node_that_stops_while_a_hook_is_asked_is_unavailable(node: Node, path: str) -> None:
    node.hooks = hooks = AllHooks()
    receiver = visit(node, path)
    await eventually(lambda: hooks.asked == 1)
    node.begin_stop()
    await receiver.serving
    hooks.may_answer.set()
    if path == EVENTS:  # any other status would end an EventSource for ever
        assert (receiver.status, receiver.text[:7]) == (200, "retry: ")
    else:
        assert told(receiver) == (503, 3001, "shutdown")


@each_way
async def test_receiver_that_goes_while_a_hook_is_asked_leaves_nothing(
    node: Node, path: str
) -> None:
    node.hooks = hooks = AllHooks()
    receiver = visit(node, path)
    await eventually(lambda: hooks.asked == 1)
    receiver.leave()
    await receiver.serving
    hooks.may_answer.set()
    await node.idle()

    assert receiver.sent == []
    assert not node.hub.clients
    assert not node.hub.feeds


async def test_request_that_is_none_is_refused_as_without_the_option(node: Node) -> None:
    receiver = Visit(Streaming(), node, "/connection/uni_sse", query="cf_connect=[]")
    await receiver.serving
    assert (receiver.status, receiver.text) == (400, "Bad Request\n")
