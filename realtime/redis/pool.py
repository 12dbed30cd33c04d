"""The pool of `BlockingRedis`; the connections in it are redis-py's, with a few lines more."""

# mypy: allow-untyped-calls
from __future__ import annotations

import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.retry import Retry

from realtime.redis.hosts import NAME_UNKNOWN, Host, Timeouts, master_place

CANNOT_OPEN = (redis.RedisError, OSError, ValueError, TypeError)
"""What opening a connection raises. The last two: a host name or a TLS file is not valid."""


class BlockingPool:
    """Connections of one process to one Redis, for its threads: the last one kept is the next used.

        idle ── get ──► in use ── keep: every reply was read ──► idle
                          └── drop: anything else ──► closed, and its place is free

    - A connection in use has one of the places; idle ones have none. A new connection is made only
      where none is idle, so there are never more connections than places.
    - An idle connection owes no reply: `get` closes it if there is anything to read, which may be
      the end of the connection.
    - Each change is one step of a list, a set or a SimpleQueue, which no signal divides. There is
      no lock that an interrupted thread could hold. An exception between two steps closes the
      connection and loses its place at most, so after one the owner makes a new pool.
    """

    def __init__(
        self, make: Callable[[], AbstractConnection], max_connections: int, timeout: float
    ) -> None:
        """
        Args:
            make: returns a connection that is not open.
            max_connections: places.
            timeout: seconds to wait for a place.
        """
        self.pid = os.getpid()
        """The process. In a forked one the connections belong to its parent: it needs a pool."""
        self._make = make
        self._timeout = timeout
        self._idle: list[AbstractConnection] = []
        self._all: set[AbstractConnection] = set()
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(max_connections):
            self._places.put(None)

    def get(self) -> AbstractConnection:
        """Return a connection that is open and owes no reply; `keep` or `drop` it.

        Raises:
            redis.RedisError, OSError, ValueError, TypeError: it could not be opened, or no place
                was free in time.
        """
        try:
            self._places.get(True, self._timeout)
        except Empty:
            raise redis.ConnectionError("No connection available.") from None
        connection = None
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._make()
                self._all.add(connection)
                self._open(connection)
            else:
                if not _is_ready(connection):
                    connection.disconnect()
                    self._open(connection)
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def _open(self, connection: AbstractConnection) -> None:
        connection.connect()
        if connection.can_read():
            raise redis.ConnectionError("Connection not ready")

    def keep(self, connection: AbstractConnection) -> None:
        """Take back a connection whose replies were all read."""
        self._idle.append(connection)  # first, or another thread would open one more
        self._places.put(None)

    def drop(self, connection: AbstractConnection | None) -> None:
        """Close a connection, if it was made, and free its place."""
        if connection is not None:
            self._all.discard(connection)
            connection.disconnect()
        self._places.put(None)

    def close_idle(self) -> None:
        """Close the connections that no thread uses."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was first
                return
            self._all.discard(connection)
            connection.disconnect()

    def close(self) -> None:
        """Close all connections, also those that are in use. The pool is not used any more."""
        for connection in list(self._all):
            connection.disconnect()


def _is_ready(connection: AbstractConnection) -> bool:
    """Return whether an idle connection is still open, and has nothing to read."""
    try:
        return not connection.can_read()
    except (redis.RedisError, OSError):
        return False


class _ToMaster(Connection):
    """Connects to the place that the Sentinels name at that moment."""

    _connected = False

    def __init__(self, *, sentinel_host: Host, connect_timeout: float, **options: Any) -> None:
        super().__init__(**options)
        self._sentinel_host = sentinel_host
        self._connect_timeout = connect_timeout

    def connect(self) -> None:
        if not self._connected:
            self.host, self.port = find_master(self._sentinel_host, self._connect_timeout)
        super().connect()
        self._connected = True

    def disconnect(self, *args: Any, **options: Any) -> None:
        self._connected = False
        super().disconnect(*args, **options)


class _ToMasterOverTls(_ToMaster, SSLConnection):
    pass


def connection_of(
    host: Host, timeouts: Timeouts
) -> tuple[type[AbstractConnection], dict[str, Any]]:
    """Return the class of a host's connections and the arguments to make one."""
    options: dict[str, Any] = {
        "db": host.db,
        "username": host.username or None,
        "password": host.password or None,
        "protocol": 2,
        "socket_connect_timeout": timeouts.connect,
        "socket_timeout": timeouts.answer,
        "retry": Retry(NoBackoff(), 0),
    }
    if host.path is not None:
        return UnixDomainSocketConnection, options | {"path": host.path}
    options |= {"socket_keepalive": True} | (host.tls or {})
    if host.sentinels:
        options |= {"sentinel_host": host, "connect_timeout": timeouts.connect}
        return (_ToMaster if host.tls is None else _ToMasterOverTls), options
    options["host"], options["port"] = host.place
    return (Connection if host.tls is None else SSLConnection), options


def find_master(host: Host, timeout: float) -> tuple[str, int]:
    """As `link._find_master`; a connection to a Sentinel serves one question.

    Raises:
        redis.ConnectionError: no Sentinel answered in time, or none knows the master.
    """
    share = host.sentinel_timeout(timeout)
    reasons = []
    for sentinel in host.sentinels:
        kind, options = connection_of(sentinel, Timeouts(share, share))
        connection = kind(**options)
        try:
            connection.connect()
            connection.send_command(*host.master_query(), check_health=False)
            reply = connection.read_response()
        except CANNOT_OPEN as error:
            reasons.append(str(sentinel.unavailable(error)))
            continue
        finally:
            connection.disconnect()
        if (place := master_place(reply)) is not None:
            return place
        reasons.append(str(sentinel.unavailable(NAME_UNKNOWN)))
    raise redis.ConnectionError(f"no master found; {'; '.join(reasons)}")
