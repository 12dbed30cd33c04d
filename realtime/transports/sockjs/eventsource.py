"""EventSource: server-sent events."""

from __future__ import annotations

from realtime.transports.sockjs.receiver import ReceivingTransport


def _event(frame: bytes) -> bytes:
    # sockjs-client takes the data for a part of a URL; in JSON a percent sign is in a string
    return b"data: " + frame.replace(b"%", b"\\u0025") + b"\r\n\r\n"


EVENTSOURCE = ReceivingTransport("text/event-stream; charset=UTF-8", _event, prelude=b"\r\n")
