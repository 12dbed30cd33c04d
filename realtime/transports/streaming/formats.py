"""How the frames of a client stand in a response: one format per transport and protocol format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from realtime.protocol.frames import EVENTS_OPENING, Frame, event_bytes, http_stream_bytes

BINARY = "application/octet-stream"
"""Content type of requests and responses in Protobuf."""


def _chunk_of(data_of: Callable[[Frame], bytes]) -> Callable[[Frame], dict[str, Any]]:
    def chunk(frame: Frame) -> dict[str, Any]:
        return {"type": "http.response.body", "body": data_of(frame), "more_body": True}

    return chunk


_LINES = _chunk_of(http_stream_bytes)


@dataclass(frozen=True)
class Format:
    """What a response looks like."""

    transport: str
    """See `outbox.Transport.name`."""
    content_type: str
    event: Callable[[Frame], dict[str, Any]]
    """Return the ASGI event that sends a frame. See `Frame.form`."""
    binary: bool = False
    """Whether the frames are Protobuf."""
    opening: bytes = b""
    """The bytes before the first frame."""


HTTP_STREAM = Format("http_stream", "text/plain; charset=utf-8", _LINES)
HTTP_STREAM_BINARY = Format("http_stream", BINARY, _LINES, binary=True)
SSE = Format(
    "sse", "text/event-stream; charset=utf-8", _chunk_of(event_bytes), opening=EVENTS_OPENING
)

UNI_HTTP_STREAM = replace(HTTP_STREAM, transport="uni_http_stream")
UNI_SSE = replace(SSE, transport="uni_sse")
UNIDIRECTIONAL = UNI_HTTP_STREAM, UNI_SSE
"""Whose first frame is a connect request, and the only one."""

# its frames are events already
EVENTS = replace(SSE, transport="events", event=_chunk_of(attrgetter("data")), opening=b"")
