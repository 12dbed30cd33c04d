"""What clients send: a handshake for a WebSocket, and frames that have always the same mask."""

from __future__ import annotations

import pytest

from realtime.transports.asgi import Scope

HEAD = (
    b"GET /ours?a=b&c=%20 HTTP/1.1\r\nHost: localhost:80\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nCookie: a=b; c=d\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: spoken\r\n\r\n"
)
"""For a path that `is_ours`."""

MASK = b"mask"


def is_ours(path: str) -> bool:
    return path == "/ours"


def told(scope: Scope) -> Scope:
    """A scope without what differs from connection to connection."""
    return {**scope, "client": scope["client"][0]}


def client_frame(first: int, data: bytes) -> bytes:
    """Return a masked frame of any size.

    Args:
        first: its first byte: the final bit, reserved bits, the opcode.
    """
    size = len(data)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65536:
        length = bytes([0xFE]) + size.to_bytes(2)
    else:
        length = bytes([0xFF]) + size.to_bytes(8)
    masked = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(data))
    return bytes([first]) + length + MASK + masked


TEXT = client_frame(0x81, b"text")

IN_PARTS = [client_frame(0x01, b"te"), client_frame(0x80, b"xt")]

any_frames = pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param([TEXT], ["text"], id="one"),
        pytest.param([TEXT + TEXT, TEXT], ["text"] * 3, id="two at a time"),
        pytest.param([TEXT[:3], TEXT[3:], TEXT], ["text"] * 2, id="in two pieces"),
        pytest.param([TEXT + TEXT[:1], TEXT[1:] + TEXT], ["text"] * 3, id="one and a piece"),
        pytest.param([*IN_PARTS, TEXT], ["text"] * 2, id="in two frames"),
        pytest.param([client_frame(0x8A, b""), TEXT], ["text"], id="after a pong"),
        pytest.param([client_frame(0x82, b"\xff"), TEXT], [b"\xff", "text"], id="binary"),
    ],
)
"""The data that come one after another, and the messages that an application gets."""
