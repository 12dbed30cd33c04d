"""The WebSocket client of the doctor at a server that does not mean well."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from realtime.console.websocket import MAX_MESSAGE, WebSocket

PART = bytes([0x00, 126]) + (60_000).to_bytes(2) + bytes(60_000)
"""A frame of a message that goes on."""


def test_message_without_an_end_is_given_up() -> None:
    ours, theirs = socket.socketpair()

    def send() -> None:
        with suppress(OSError):  # nobody reads any more
            for _ in range(3 * MAX_MESSAGE // len(PART)):
                theirs.sendall(PART)

    with theirs, ours, ours.makefile("rb") as incoming:
        sending = threading.Thread(target=send)
        sending.start()
        try:
            with pytest.raises(ConnectionError, match="too large"):
                WebSocket(ours, incoming).receive()
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            sending.join()
