"""Host: one shard of Redis, and how to reach it.

    {"address": "redis://user:password@host:6379/0"}        also rediss:// and unix://
    {"host": "host", "port": 6379, "password": "...", "ssl": True, "ssl_ca_certs": "..."}
    {"path": "/run/redis.sock"}
    {"sentinels": [("host", 26379)], "master_name": "mymaster", "sentinel_kwargs": {...}}

Entries are those of `channels_redis`, options those of redis-py. They are parsed here, once, so
that `link` and `blocking` cannot differ in what they understand. Nothing here does I/O.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
import inspect
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import redis
from redis.asyncio.connection import RedisSSLContext
from redis.connection import parse_url, to_bool

from realtime.errors import EngineUnavailable, NoReply

TextCommand = tuple[str, ...]
Place = tuple[str, int]
"""Host name and port."""

CLIENT_NAME = "realtime"
"""Name of our connections in CLIENT LIST."""

PLACE = {"address", "host", "port", "path", "sentinels", "master_name", "sentinel_kwargs"}
CREDENTIALS = {"username", "password", "db"}
TLS = {f"ssl_{name}" for name in inspect.signature(RedisSSLContext).parameters}
"""Options that redis-py understands on event loops and in threads."""
VERIFY: dict[object, str] = {
    None: "none",
    ssl.CERT_NONE: "none",
    ssl.CERT_OPTIONAL: "optional",
    ssl.CERT_REQUIRED: "required",
}
"""Values of ssl_cert_reqs as text, which every version of redis-py knows."""
IGNORED = {
    *("client_name", "connection_class", "lib_name", "lib_version", "protocol"),
    *("decode_responses", "encoding", "encoding_errors", "health_check_interval"),
    *("max_connections", "retry", "retry_on_error", "retry_on_timeout", "timeout"),
    *("socket_connect_timeout", "socket_timeout", "socket_read_size"),
    *("socket_keepalive", "socket_keepalive_options"),
}
"""Options of redis-py that are accepted and have no effect: the service sets them itself."""


class Timeouts(NamedTuple):
    """Seconds to wait for Redis."""

    connect: float = 1.0
    """To open a connection, handshake included."""
    answer: float = 5.0
    """For the reply to a command."""


class Host:
    """One shard. Belongs to no event loop, thread or process."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        """
        Args:
            entry: see the module.

        Raises:
            ValueError: the address is not valid, or an option is unknown or wrong. The text
                contains no password.
        """
        options = _options(entry)
        self.path: str | None = options.get("path")
        """The Unix socket; None for TCP."""
        self.place = str(options.get("host") or "localhost"), _port(options.get("port") or 6379)
        """Host name and port; not used with a Unix socket or Sentinel."""
        places = [(str(host), _port(port)) for host, port in options.get("sentinels") or ()]
        sentinel_options = dict(options.get("sentinel_kwargs") or {})
        self.sentinels = [
            Host({"host": host, "port": port, **sentinel_options}) for host, port in places
        ]
        """The servers that know where the master is; empty when the place never changes."""
        self.master_name = str(options.get("master_name") or "")
        """Name of this Redis at the Sentinels."""
        self.db = int(options.get("db") or 0)
        self.username = _text(options.get("username"))
        self.password = _text(options.get("password"))
        self.tls = _tls(options) if options.get("ssl") else None
        """TLS options of redis-py; None without TLS."""
        self._context = None if self.tls is None else _context(self.tls)
        self._secrets = {self.password, *(sentinel.password for sentinel in self.sentinels)} - {""}
        self.label = self._label()
        """The place, for people; without credentials."""

    def _label(self) -> str:
        if self.sentinels:
            places = ",".join(_place(*sentinel.place) for sentinel in self.sentinels)
            return f"sentinel://{places}/{self.master_name}/{self.db}"
        if self.path is not None:
            return f"unix://{self.path}?db={self.db}"
        scheme = "redis" if self.tls is None else "rediss"
        return f"{scheme}://{_place(*self.place)}/{self.db}"

    def at(self, place: Place) -> Host:
        """Return another server of the same cluster, with the same credentials and TLS options."""
        host = copy.copy(self)
        host.place = place
        host.label = host._label()
        return host

    def unavailable(self, reason: object) -> EngineUnavailable:
        """Return the exception for a command that this host did not run.

        Its text hides the passwords of the host in the reason.
        """
        return EngineUnavailable(self._failure(reason))

    def no_reply(self, reason: object) -> NoReply:
        """As `unavailable`, for a command that was sent and that it may have run."""
        return NoReply(self._failure(reason))

    def _failure(self, reason: object) -> str:
        text = str(reason)
        for secret in self._secrets:  # Redis repeats the arguments of an unknown command
            text = text.replace(secret, "***")
        return f"{self.label}: {text}"

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """The context of a connection; None without TLS.

        Raises:
            OSError: a file of certificates cannot be read.
            ValueError, TypeError: a certificate, or its path, is not valid.
        """
        return None if self._context is None else self._context.get()

    def handshake(self) -> list[TextCommand]:
        """Return the commands that begin a connection; `check` their replies."""
        commands: list[TextCommand] = []
        if self.username or self.password:
            user = (self.username,) if self.username else ()
            commands.append(("AUTH", *user, self.password))
        if self.db:
            commands.append(("SELECT", str(self.db)))
        commands.append(("CLIENT", "SETNAME", CLIENT_NAME))
        return commands

    def check(self, command: TextCommand, reply: object) -> None:
        """Check the reply to a command of the handshake.

        Raises:
            EngineUnavailable: the connection cannot be used.
        """
        if reply == b"OK":
            return
        # any other reply may contain everything, also the password that was sent
        refused = isinstance(reply, EngineUnavailable)
        reason = str(reply).removeprefix(f"{self.label}: ") if refused else "unexpected reply"
        no_name = reason.startswith(("NOPERM", "ERR unknown"))
        if command[0] != "CLIENT" or not no_name:  # the name is only for operators
            raise self.unavailable(f"{command[0]} refused: {reason}")

    # Sentinel

    def master_query(self) -> TextCommand:
        """Return the command that asks a Sentinel for the place of the master."""
        return "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.master_name

    def sentinel_timeout(self, timeout: float) -> float:
        """Return each Sentinel's part of a time-out, so that one that hangs leaves the others
        theirs."""
        return timeout / (len(self.sentinels) + 1)

    def no_master(self, reasons: list[str]) -> EngineUnavailable:
        """Return the exception for a master that no Sentinel could name."""
        return self.unavailable(f"no master found; {'; '.join(reasons)}")


NAME_UNKNOWN = "it does not know this name"
"""Reason of a Sentinel whose reply is not a place."""


def master_place(reply: object) -> Place | None:
    """Return the place in a Sentinel's reply; None when there is none in it."""
    match reply:
        case [bytes(host), bytes(port)]:
            try:
                return host.decode(), _port(port)
            except ValueError:
                return None
    return None


def place_of(name: object, port: str | bytes | int, asked: Host) -> Place | None:
    """Return a place that a server of a cluster named; None when it is none.

    Args:
        name: empty or None for the server itself.
        port: a number, or its digits.
        asked: the server that named it.
    """
    try:
        text = _text(name)
        return None if text == "?" else (text or asked.place[0], _port(port))
    except (ValueError, TypeError):
        return None


def _options(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return one flat set of options; those in the URL win, as in redis-py."""
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
    unknown = sorted(options.keys() - PLACE - CREDENTIALS - TLS - IGNORED - {"ssl"})
    if unknown:
        raise ValueError(f"unknown options of a Redis host: {', '.join(unknown)}")
    if bool(options.get("sentinels")) != bool(options.get("master_name")):
        raise ValueError("a Redis host has 'sentinels' and 'master_name' together, or neither")
    return options


def _tls(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TLS options. Certificates are verified unless an option says otherwise: the
    defaults of redis-py differ between its versions and between its two kinds of clients."""
    tls = {key: options[key] for key in TLS & options.keys()}
    verify = options.get("ssl_cert_reqs", "required")
    tls["ssl_cert_reqs"] = verify = VERIFY.get(verify, verify)
    check_hostname = to_bool(options.get("ssl_check_hostname", True))
    tls["ssl_check_hostname"] = check_hostname and verify != "none"
    if tls.get("ssl_min_version") is not None:
        try:
            tls["ssl_min_version"] = ssl.TLSVersion(tls["ssl_min_version"])
        except ValueError:
            raise ValueError("ssl_min_version of a Redis host is not a TLS version") from None
    return tls


def _context(tls: Mapping[str, Any]) -> RedisSSLContext:
    try:
        return RedisSSLContext(**{key.removeprefix("ssl_"): tls[key] for key in tls})
    except redis.RedisError:
        raise ValueError("ssl_cert_reqs of a Redis host is none, optional or required") from None


def _port(value: str | bytes | int) -> int:
    port = int(value)
    if not 0 < port < 65536:
        raise ValueError("the port of a Redis host is not a number from 1 to 65535")
    return port


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(value)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
