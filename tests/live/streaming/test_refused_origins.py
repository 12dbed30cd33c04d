"""A page of an origin that is not allowed is refused: every stream, and every WebSocket.

Sessions of SockJS over HTTP have an answer of their own; see tests/live/sockjs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.configurations import NAMESPACES, Options
from tests.live.raw_http import UPGRADE, open_exchange
from tests.live.streaming.client import ask
from tests.server import Server

OPTIONS: Options = {
    "namespaces": NAMESPACES,
    "allowed_origins": ["https://example.org"],
    "events": True,
    "http_stream": True,
    "sse": True,
    "uni_http_stream": True,
    "uni_sse": True,
    "uni_websocket": True,
}

STREAMS = [
    ("POST", "/connection/http_stream"),
    ("GET", "/connection/sse?cf_connect=%7B%22id%22%3A1%2C%22connect%22%3A%7B%7D%7D"),
    ("POST", "/connection/sse"),
    ("POST", "/emulation"),
    ("POST", "/connection/uni_http_stream"),
    ("GET", "/connection/uni_sse"),
    ("POST", "/connection/uni_sse"),
    ("GET", "/connection/events?channel=news"),
]
SOCKETS = [
    "/connection/websocket",
    "/connection/uni_websocket",
    "/connection/sockjs/000/a1/websocket",
]


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "https://example.org.x"])
async def test_page_that_is_not_allowed_is_refused_everywhere(
    serve: Callable[..., Server], origin: str
) -> None:
    server = serve(**OPTIONS)
    answers: dict[tuple[str, str], tuple[int, bool]] = {}
    for method, path in STREAMS:
        body = b"{}" if method == "POST" else None
        answer = await ask(server, method, path, body, headers={"Origin": origin})
        is_readable = "access-control-allow-origin" in answer.headers
        answers[method, path] = answer.status, is_readable
    for path in SOCKETS:
        exchange = await open_exchange(server, "GET", path, headers={**UPGRADE, "Origin": origin})
        await exchange.begin()
        answers["GET", path] = exchange.status, "access-control-allow-origin" in exchange.headers
        await exchange.close()

    assert answers == dict.fromkeys(answers, (403, False))
