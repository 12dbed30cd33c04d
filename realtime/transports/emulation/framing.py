"""How an emulated client's messages are written: the framing.

A session decides *when* something is sent; its framing decides what the bytes look like. The
application that serves the requests hands the framing in, so a session knows no wire format.

    outbox ─Frame─► session ─frame of the framing─► response format ─bytes─► server

A response format (`response.ResponseFormat`) comes behind it: it says how a frame stands in one
kind of HTTP response. `sockjs.framing` and `sockjs.formats` are an example of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from realtime.protocol.frames import Frame


@dataclass(frozen=True)
class Framing:
    """What a session writes. Each member is one frame, or makes one."""

    transport: str
    """Name of the transport of its clients, see `outbox.Transport.name`."""
    open: bytes
    """The first frame of a session; b"" for none."""
    heartbeat: bytes
    """The frame for a quiet stream, or for a polling response that must end; b"" for none."""
    messages: Callable[[Frame], bytes]
    """Return the frame that carries messages of the protocol. See `Frame.form`."""
    close: Callable[[int, str], bytes]
    """Return the last frame of a session, of its close code and reason."""
