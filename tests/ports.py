"""Ports for tests: those that a server will listen on, and those where nobody listens."""

from __future__ import annotations

import os
import random
import socket
import threading
from functools import cache

FIRST, LAST = 22_000, 32_000
"""Below the range of outgoing connections.

A client that tries again and again to reach a port inside that range, while its server is down, may
be given that very port for its own end, and is then connected to itself. And a connection of
another test may get the port between two starts of its server.
"""

_one_at_a_time = threading.Lock()
_holding: list[socket.socket] = []


def free_port(distance: int = 0) -> int:
    """Return a port nobody listens on, and that is given to nobody else.

    A server that is told where to listen does so seconds later, and may stop and start again. So
    each worker has ports of its own, and gives each of them once until it has given all.

    Args:
        distance: the port so far above is given with it, and is one of this worker's. With 10 000
            or more, the returned port is below all of them.
    """
    while True:
        with _one_at_a_time:  # tests start the servers of a cluster side by side
            port = next(_ports()) - distance  # so the upper one is one of ours, too
        if _is_free(port) and (not distance or _is_free(port + distance)):
            return port


def refusing_port() -> int:
    """Return a port that refuses connections as long as this process runs."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    _holding.append(holder)
    port: int = holder.getsockname()[1]
    return port


class _Ports:
    """The ports of this worker, from a random one on, again and again."""

    def __init__(self) -> None:
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        self._size = (LAST - FIRST) // workers
        self._first = FIRST + number * self._size
        self._next = random.randrange(self._size)

    def __next__(self) -> int:
        self._next = (self._next + 1) % self._size
        return self._first + self._next


@cache
def _ports() -> _Ports:
    return _Ports()


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
