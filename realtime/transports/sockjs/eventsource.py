"""EventSource: server-sent events."""

from __future__ import annotations

from realtime.transports.sockjs.receiver import ReceivingTransport


def _event(frame: bytes) -> bytes:
    return b"data: " + frame + b"\r\n\r\n"


EVENTSOURCE = ReceivingTransport("text/event-stream; charset=UTF-8", _event, prelude=b"\r\n")
