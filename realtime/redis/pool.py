"""The pool of `BlockingRedis`, and the connections in it: redis-py's, with a few lines more."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import (
    AbstractConnection,
    BlockingConnectionPool,
    Connection,
    ConnectionInterface,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.retry import Retry

from realtime.redis.hosts import NAME_UNKNOWN, Host, Timeouts, master_place

CANNOT_OPEN = (redis.RedisError, OSError, ValueError, TypeError)
"""What opening a connection raises. The last two: a host name or a TLS file is not valid."""


class Pool(BlockingConnectionPool):
    """redis-py's pool; keeps no connection of which anything is left to read."""

    def release(self, connection: ConnectionInterface) -> None:
        """Close a connection and free its place.

        The pool itself calls this when it could not open one: it may be half open.
        """
        connection.disconnect()
        super().release(connection)

    def keep(self, connection: ConnectionInterface) -> None:
        """Take back a connection whose replies were all read."""
        super().release(connection)


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
