"""Connections for Twisted from a listening socket that other processes use, too.

Twisted's own ports are made for one process: at its end one removes the file of a Unix socket, and
it gives that file permissions for all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from realtime.transports.servers.listening import LISTEN_BACKLOG

logger = logging.getLogger("realtime.daphne")

ACCEPT_AT_ONCE = 32
"""Connections taken in one turn of the loop. Few, so that other processes get some, too."""
PAUSE = 1.0
"""Seconds to wait where none can be accepted, for example for want of descriptors."""


class Acceptor:
    """Accepts connections until it is closed. Belongs to the running event loop."""

    def __init__(self, listener: socket.socket, adopt: Callable[[int], object]) -> None:
        """
        Args:
            listener: a listening socket that does not block. `close` closes it in this process.
            adopt: is called with the descriptor of each connection, and makes a copy of it.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._adopt = adopt
        self._timer: asyncio.TimerHandle | None = None
        self._go_on()

    def close(self) -> None:
        """Accept no more. Connections that wait are left to other processes."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def finish(self) -> None:
        """Accept what waits, and close: where no other process listens, nobody is cut off."""
        if self._listener.fileno() < 0:
            return
        for _ in range(0, LISTEN_BACKLOG, ACCEPT_AT_ONCE):
            if not self._accept():
                break
        self.close()

    def _go_on(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> bool:
        """Return whether more connections may wait."""
        for _ in range(ACCEPT_AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False  # another process was quicker, or the peer has gone
            except OSError as error:
                logger.error("Cannot accept connections, trying again in %g s: %s", PAUSE, error)
                self._loop.remove_reader(self._listener)
                self._timer = self._loop.call_later(PAUSE, self._go_on)
                return False
            with connection:
                connection.setblocking(False)
                with suppress(OSError):  # the peer has gone already
                    self._adopt(connection.fileno())
        return True
