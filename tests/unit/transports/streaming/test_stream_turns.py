"""Streams over HTTP begin in turns, as sockets do: others get the event loop in between."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from realtime.node.limits.connect_queue import PER_TURN
from realtime.transports.streaming.application import Streaming
from tests.unit.parts import Clock, eventually
from tests.unit.transports.emulation.parts import open_node
from tests.unit.transports.streaming.visits import Visit

OPTIONS: dict[str, Any] = {
    "client_insecure": True,
    "events": True,
    "http_stream": True,
    "uni_http_stream": True,
}
CONNECT = {"id": 1, "connect": {}}


@pytest.mark.parametrize(
    ("path", "query", "body", "more"),
    [
        ("/connection/http_stream", "", CONNECT, {}),
        ("/connection/uni_http_stream", "", {}, {}),
        ("/connection/uni_http_stream", "", {}, {"uni_error_mode": "transport"}),
        ("/connection/events", "channel=news", None, {}),
    ],
)
async def test_stream_begins_after_newcomers_that_came_before(
    clock: Clock, path: str, query: str, body: Any, more: dict[str, Any]
) -> None:
    async with open_node(clock, **OPTIONS, **more) as node:
        turns = (node.admission.queue.turn() for _ in range(100 * PER_TURN))
        before = [asyncio.create_task(turn) for turn in turns]
        content = None if body is None else json.dumps(body).encode()
        visit = Visit(Streaming(), node, path, query, content)

        await eventually(lambda: node.counters.opened == 1)
        assert sum(task.done() for task in before) > 50 * PER_TURN

        visit.leave()
        await asyncio.gather(visit.serving, *before)
