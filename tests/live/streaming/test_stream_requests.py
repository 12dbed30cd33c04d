"""What each request gets: status, headers, first bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.streaming.client import (
    HTTP_STREAM,
    SSE,
    STREAMS,
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
