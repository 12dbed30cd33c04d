"""Frames: messages of the protocol on their way to a client, in one piece.

A frame knows its bytes and not how a transport sends them. A transport asks for the *form* it
needs (`frame.form(make)`), and the frame keeps what `make` returned. So however many clients
are sent the same frame, each form of it is built once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

TEXT_FRAME = 0x81
BINARY_FRAME = 0x82
"""First byte of a WebSocket frame: final, with this opcode (RFC 6455, 5.2)."""

T = TypeVar("T")

_NONE: Mapping[Any, Any] = {}


class Frame:
    """One outgoing frame, shared by all clients that get the same messages."""

    __slots__ = ("_form", "_make", "_others", "binary", "data")

    def __init__(self, data: bytes, binary: bool) -> None:
        self.data = data
        self.binary = binary
        # most frames have one form, and comparing two references beats a dict
        self._make: Callable[[Frame], Any] | None = None
        self._form: Any = None
        self._others: Mapping[Callable[[Frame], Any], Any] = _NONE

    def form(self, make: Callable[[Frame], T]) -> T:
        """Return this frame in the form that `make` gives it; built once.

        Args:
            make: a pure function; the same object for all clients of a transport.
        """
        form: T
        if make is self._make:
            form = self._form
        elif self._make is None:
            self._make = make
            self._form = form = make(self)
        else:
            try:
                form = self._others[make]
            except KeyError:
                form = make(self)
                self._others = {**self._others, make: form}
        return form


def websocket_bytes(frame: Frame) -> bytes:
    """Return a frame as it is on the wire: unmasked, final, uncompressed (RFC 6455, 5.2)."""
    size = len(frame.data)
    first = BINARY_FRAME if frame.binary else TEXT_FRAME
    if size < 126:
        header = bytes((first, size))
    elif size < 65536:
        header = bytes((first, 126)) + size.to_bytes(2, "big")
    else:
        header = bytes((first, 127)) + size.to_bytes(8, "big")
    return header + frame.data


# Forms for streams over HTTP. They carry the second generation, whose JSON frames hold one message
# per line, with no line break at the end; Protobuf messages carry their length.

EVENTS_OPENING = b"\r\n"
"""The first bytes of a stream of events: browsers report it as open."""


def http_stream_bytes(frame: Frame) -> bytes:
    """Return a frame as a part of an HTTP stream: a line per message, or Protobuf as it is."""
    return frame.data if frame.binary else frame.data + b"\n"


def event_bytes(frame: Frame) -> bytes:
    """Return a JSON frame as server-sent events, one per message."""
    return b"data: %b\n\n" % frame.data.replace(b"\n", b"\n\ndata: ")


def single_messages(frame: Frame) -> list[bytes]:
    """Return the messages of a JSON frame, for a transport that sends each one by itself."""
    return frame.data.split(b"\n")
