"""Bell: wakes the thread of the relay, from any thread."""

from __future__ import annotations

import contextlib
import selectors
import socket


class Bell:
    """A pair of sockets, so that the thread can wait for a database connection as well."""

    def __init__(self) -> None:
        self._ear, self._button = socket.socketpair()
        self._ear.setblocking(False)
        self._button.setblocking(False)

    def ring(self) -> None:
        """Wake the thread, or its next wait. Ringing twice wakes it once."""
        with contextlib.suppress(OSError):  # full: it will wake; closed: it has ended
            self._button.send(b"\0")

    def wait(self, seconds: float, *connections: int) -> None:
        """Wait for a ring, for data on one of these files, or for the end of the time."""
        with selectors.DefaultSelector() as selector:
            for file in (self._ear.fileno(), *connections):
                selector.register(file, selectors.EVENT_READ)
            selector.select(seconds)
        with contextlib.suppress(BlockingIOError):
            while self._ear.recv(4096):
                pass

    def close(self) -> None:
        """Release the sockets."""
        self._ear.close()
        self._button.close()
