"""Host: one shard of Redis, and how it is reached.

    {"address": "redis://user:password@host:6379/0"}        also rediss:// and unix://
    {"host": "host", "port": 6379, "password": "...", "ssl": True, "ssl_ca_certs": "..."}
    {"path": "/run/redis.sock"}
    {"sentinels": [("host", 26379)], "master_name": "mymaster", "sentinel_kwargs": {...}}

Entries are those of `channels_redis`, options those of redis-py. They are taken apart here,
once, so that our own connections and redis-py's pool cannot differ in what they understand.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.connection import (
    BlockingConnectionPool,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
    parse_url,
)
from redis.retry import Retry
from redis.sentinel import (
    MasterNotFoundError,
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from realtime.errors import EngineUnavailable

P = TypeVar("P", bound=asyncio.BaseProtocol)
Command = tuple[str, ...]

CLIENT_NAME = "realtime"
"""What CLIENT LIST calls our connections."""

PLACE = {"address", "host", "port", "path", "sentinels", "master_name", "sentinel_kwargs"}
CREDENTIALS = {"username", "password", "db"}
TLS = {
    "ssl",
    "ssl_ca_certs",
    "ssl_ca_data",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_ciphers",
    "ssl_keyfile",
    "ssl_min_version",
    "ssl_password",
}
OURS = {
    "client_name",
    "connection_class",
    "decode_responses",
    "encoding",
    "encoding_errors",
    "health_check_interval",
    "lib_name",
    "lib_version",
    "max_connections",
    "protocol",
    "retry",
    "retry_on_error",
    "retry_on_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "socket_keepalive_options",
    "socket_read_size",
    "socket_timeout",
    "timeout",
}
"""Options of redis-py that have no effect, because their values are ours."""

KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds until a silent connection is probed, seconds between probes, probes until it is lost."""

VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Timeouts(NamedTuple):
    """Seconds Redis is given."""

    connect: float = 1.0
    """To open a connection, handshake included."""
    answer: float = 5.0
    """To answer a command."""


class Host:
    """One shard. Belongs to no event loop, thread or process."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        """`entry`: see the module.

        Raises:
            ValueError: the address is none, or an option is unknown. Tells no password.
        """
        options = _options(entry)
        self._path: str | None = options.get("path")
        self._host = str(options.get("host") or "localhost")
        self._port = _port(options.get("port") or 6379)
        sentinels = options.get("sentinels") or ()
        self._sentinel_places = [(str(host), _port(port)) for host, port in sentinels]
        self._sentinel_options = dict(options.get("sentinel_kwargs") or {})
        self.sentinels = [
            Host({"host": host, "port": port, **self._sentinel_options})
            for host, port in self._sentinel_places
        ]
        """Who knows where the master is; nobody when it is always in the same place."""
        self.master_name = str(options.get("master_name") or "")
        """What the Sentinels call this Redis."""
        self._db = int(options.get("db") or 0)
        self._username = _text(options.get("username"))
        self._password = _text(options.get("password"))
        self._secrets = {self._password, _text(self._sentinel_options.get("password"))} - {""}
        self._tls = _tls(options) if options.get("ssl") else None
        self.label = self._label()
        """Where it is, for people; without credentials."""

    def _label(self) -> str:
        if self.sentinels:
            places = ",".join(_place(*place) for place in self._sentinel_places)
            return f"sentinel://{places}/{self.master_name}/{self._db}"
        if self._path is not None:
            return f"unix://{self._path}?db={self._db}"
        scheme = "redis" if self._tls is None else "rediss"
        return f"{scheme}://{_place(self._host, self._port)}/{self._db}"

    def unavailable(self, reason: object) -> EngineUnavailable:
        """The exception that says why this host did not do it."""
        text = str(reason)
        for secret in self._secrets:  # Redis repeats the arguments of a command it does not know
            text = text.replace(secret, "***")
        return EngineUnavailable(f"{self.label}: {text}")

    # for our own connections

    def handshake(self) -> list[Command]:
        """The commands with which a connection begins; `check` their replies."""
        commands: list[Command] = []
        if self._username or self._password:
            user = (self._username,) if self._username else ()
            commands.append(("AUTH", *user, self._password))
        if self._db:
            commands.append(("SELECT", str(self._db)))
        commands.append(("CLIENT", "SETNAME", CLIENT_NAME))
        return commands

    def check(self, command: Command, reply: object) -> None:
        """Whether a connection may begin with this reply to a command of the handshake.

        Raises:
            EngineUnavailable
        """
        if reply == b"OK":
            return
        # what is no error may be anything, also the password that was sent
        refused = isinstance(reply, EngineUnavailable)
        reason = str(reply).removeprefix(f"{self.label}: ") if refused else "unexpected reply"
        no_name = reason.startswith(("NOPERM", "ERR unknown"))
        if command[0] != "CLIENT" or not no_name:  # a name is only for people who look
            raise self.unavailable(f"{command[0]} refused: {reason}")

    async def open(
        self,
        protocol_factory: Callable[[], P],
        timeout: float,
        place: tuple[str, int] | None = None,
    ) -> tuple[asyncio.Transport, P]:
        """Open a connection, without its handshake.

        Args:
            timeout: seconds for everything.
            place: where the master is, if Sentinels know that.

        Raises:
            EngineUnavailable
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._open(protocol_factory, place or (self._host, self._port))
        except TimeoutError:
            raise self.unavailable(f"no connection within {timeout:g} s") from None
        except (OSError, ValueError, TypeError) as error:  # also: no possible host name or TLS file
            raise self.unavailable(f"no connection: {error}") from error

    async def _open(
        self, protocol_factory: Callable[[], P], place: tuple[str, int]
    ) -> tuple[asyncio.Transport, P]:
        loop = asyncio.get_running_loop()
        if self._path is not None:
            return await loop.create_unix_connection(protocol_factory, self._path)
        transport, protocol = await loop.create_connection(
            protocol_factory, *place, ssl=self.tls_context
        )
        _keep_alive(transport.get_extra_info("socket"))
        return transport, protocol

    @cached_property
    def tls_context(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        options = self._tls
        context = ssl.create_default_context()
        context.check_hostname = options["ssl_check_hostname"]
        context.verify_mode = options["ssl_cert_reqs"]
        certificate, key = options.get("ssl_certfile"), options.get("ssl_keyfile")
        if certificate or key:
            context.load_cert_chain(str(certificate or key), key, options.get("ssl_password"))
        authorities = [options.get(f"ssl_ca_{kind}") for kind in ("certs", "path", "data")]
        if any(authorities):
            context.load_verify_locations(*authorities)
        if options.get("ssl_min_version") is not None:
            context.minimum_version = options["ssl_min_version"]
        if options.get("ssl_ciphers"):
            context.set_ciphers(options["ssl_ciphers"])
        return context

    def sentinel_share(self, timeout: float) -> float:
        """The part of the time each Sentinel has; one that hangs leaves the others theirs."""
        return timeout / (len(self.sentinels) + 1)

    # for threads without an event loop

    def blocking(self, timeouts: Timeouts, max_connections: int) -> redis.Redis:
        """A client of redis-py with a bounded pool of its own; no I/O yet.

        It repeats no command, because a repeated publish is published twice, and it gives
        replies as they are. Nobody waits longer than `timeouts.connect` for a free connection.
        """
        once = {
            "socket_connect_timeout": timeouts.connect,
            "socket_timeout": timeouts.answer,
            "socket_keepalive": True,
            "retry": Retry(NoBackoff(), 0),
        }
        if self._path is not None:
            del once["socket_keepalive"]
        options: dict[str, Any] = once | {
            "max_connections": max_connections,
            "timeout": timeouts.connect,
            "db": self._db,
            "username": self._username or None,
            "password": self._password or None,
            "protocol": 2,
        }
        pool: BlockingConnectionPool
        if self.sentinels:
            share = self.sentinel_share(timeouts.connect)
            times = {"socket_connect_timeout": share, "socket_timeout": share}
            raw = {"decode_responses": False, "protocol": 2}
            sentinel = _Sentinel(
                self._sentinel_places, sentinel_kwargs=self._sentinel_options | once | times | raw
            )
            kind = SentinelManagedConnection if self._tls is None else SentinelManagedSSLConnection
            options |= self._tls or {}
            pool = _SentinelPool(self.master_name, sentinel, connection_class=kind, **options)
        elif self._path is not None:
            pool = BlockingConnectionPool(
                connection_class=UnixDomainSocketConnection, path=self._path, **options
            )
        else:
            options |= {"host": self._host, "port": self._port} | (self._tls or {})
            pool = BlockingConnectionPool(
                connection_class=Connection if self._tls is None else SSLConnection, **options
            )
        client = redis.Redis(connection_pool=pool)
        client.response_callbacks.clear()
        return client


class _Sentinel(Sentinel):
    """Asks as our own connections do: in a failover the answer changes with the first step."""

    def discover_master(self, service_name: str) -> tuple[str, int]:
        reasons = []
        for client in self.sentinels:
            try:
                reply = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service_name)
            except redis.RedisError as error:
                reasons.append(str(error))
                continue
            if (place := master_place(reply)) is not None:
                return place
            reasons.append("a Sentinel does not know this name")
        raise MasterNotFoundError(f"no master found; {'; '.join(reasons)}")


class _SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """The pool for masters that a Sentinel knows, made one that waits for a free connection."""

    def disconnect(self, inuse_connections: bool = True) -> None:
        # Given False when the master has moved, which older redis-py does not understand here.
        # Connections that lie idle need no help: their old master refuses them or is gone.
        if inuse_connections:
            super().disconnect()


def master_place(reply: object) -> tuple[str, int] | None:
    """Where a Sentinel says that the master is; None if it says no place."""
    match reply:
        case [bytes(host), bytes(port)]:
            try:
                return host.decode(), _port(port)
            except ValueError:
                return None
    return None


def _port(value: str | bytes | int) -> int:
    port = int(value)
    if not 0 < port < 65536:
        raise ValueError("the port of a Redis host is no number from 1 to 65535")
    return port


def _options(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One flat set of options; those in the URL win, as in redis-py."""
    options = dict(entry)
    address = options.pop("address", None)
    if address is not None:
        try:
            options |= parse_url(address)
        except (ValueError, AttributeError):
            # the reason may quote a part of the password
            raise ValueError("a Redis address is not a valid URL") from None
        options["ssl"] = options.get("ssl") or address.startswith("rediss://")
        if address.startswith("unix://") and not options.get("path"):
            raise ValueError("a Redis address of a unix socket has no path")
    elif getattr(options.get("connection_class"), "__name__", "").endswith("SSLConnection"):
        options["ssl"] = True
    unknown = sorted(options.keys() - PLACE - CREDENTIALS - TLS - OURS)
    if unknown:
        raise ValueError(f"unknown options of a Redis host: {', '.join(unknown)}")
    if bool(options.get("sentinels")) != bool(options.get("master_name")):
        raise ValueError("a Redis host has 'sentinels' and 'master_name' together, or neither")
    return options


def _tls(options: Mapping[str, Any]) -> dict[str, Any]:
    """The TLS options with nothing left to a default, because redis-py's have changed."""
    tls = {key: options[key] for key in TLS - {"ssl"} if options.get(key) is not None}
    verify = options.get("ssl_cert_reqs", "required")
    if isinstance(verify, str):
        if verify not in VERIFY:
            raise ValueError("ssl_cert_reqs of a Redis host is none, optional or required")
        verify = VERIFY[verify]
    tls["ssl_cert_reqs"] = verify = ssl.CERT_NONE if verify is None else ssl.VerifyMode(verify)
    check = options.get("ssl_check_hostname", True)
    if isinstance(check, str):
        check = check.lower() not in ("0", "false", "f", "no", "n")
    if tls.get("ssl_min_version") is not None:
        try:
            tls["ssl_min_version"] = ssl.TLSVersion(tls["ssl_min_version"])
        except ValueError:
            raise ValueError("ssl_min_version of a Redis host is no version of TLS") from None
    tls["ssl_check_hostname"] = bool(check) and verify is not ssl.CERT_NONE
    return tls


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(value)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # they are not the same everywhere
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
