"""Clients that come while there is no node: they get code and advice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.config.options import Config
from realtime.transports.sockjs.websocket import SockJSConsumer
from realtime.transports.streaming.uni_websocket import UniWebSocketConsumer
from realtime.transports.websocket import WebSocketConsumer

ADVICE = '{"reason":"internal server error","reconnect":true}'
SCOPE = {
    "type": "websocket",
    "client": ("192.0.2.1", 50000),
    "query_string": b"",
    "headers": [(b"origin", b"https://example.org")],
    "subprotocols": ["centrifuge-protobuf"],
}
CLOSE = {"type": "websocket.close", "code": 3004, "reason": ADVICE}


async def turn_away(consumer: WebSocketConsumer, *origins: str) -> list[Mapping[str, Any]]:
    """Return what a client gets of which the connection is closed by both sides."""
    sent: list[Mapping[str, Any]] = []

    async def send(event: Mapping[str, Any]) -> None:
        sent.append(event)
        if event["type"] == "websocket.close":
            received.put_nowait({"type": "websocket.receive", "bytes": b"late"})
            received.put_nowait({"type": "websocket.disconnect", "code": 3004})

    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "websocket.connect"})
    config = Config(allowed_origins=origins or None)
    await consumer.turn_away(config, dict(SCOPE), received.get, send)
    return sent


TOLD: dict[WebSocketConsumer, list[str]] = {
    WebSocketConsumer(): [],
    SockJSConsumer(): [
        "o",
        r'c[3004,"{\"reason\":\"internal server error\",\"reconnect\":true}"]',
    ],
    UniWebSocketConsumer(): [
        '{"disconnect":{"code":3004,"reason":"internal server error"}}',
    ],
}
"""Consumer → the frames of its protocol."""


@pytest.mark.parametrize(("consumer", "frames"), TOLD.items())
async def test_client_is_accepted_told_why_and_closed(
    consumer: WebSocketConsumer, frames: list[str]
) -> None:
    accepted, *told, closed = await turn_away(consumer)
    assert accepted["type"] == "websocket.accept"
    assert [event.get("text") for event in told] == frames
    assert closed["code"] == 3004
    if type(consumer) is WebSocketConsumer:
        assert (accepted["subprotocol"], closed) == ("centrifuge-protobuf", CLOSE)


async def test_origin_that_is_not_allowed_is_refused_as_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    events = await turn_away(WebSocketConsumer(), "https://example.com")
    assert [event["type"] for event in events] == ["websocket.close"]
    assert events[0]["code"] == 1000
    assert [record.getMessage() for record in caplog.records] == [
        "Refused a handshake from 192.0.2.1: allowed_origins does not have the origin"
        " 'https://example.org'"
    ]
