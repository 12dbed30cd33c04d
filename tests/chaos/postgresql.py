"""A PostgreSQL that faults befall: it is frozen, filled up, copied to replicas, put out of time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from realtime.engine.postgresql.schema import create
from tests.database_server import TIMEOUT, QuickPostgres
from tests.server import wait_until

USER = "site"
"""The account of the service. The superuser has reserved connections."""
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""Of Debian's package `faketime`."""
DISK_BYTES = 100 * 1024 * 1024
"""Of a disk that can be filled."""


class ChaosPostgres(QuickPostgres):
    """A server with an account for the service."""

    ready = b"ready to accept"  # "connections", or "read-only connections"

    def __init__(self, *, options: tuple[str, ...] = (), small_disk: bool = False) -> None:
        super().__init__()
        self.options = (*QuickPostgres.options, "max_connections=40", *options)
        self._small_disk = small_disk
        self._clock: Path | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The URL for the service."""
        return f"postgresql://{USER}@{self.place}/postgres"

    def create(self) -> None:
        if self._small_disk:
            self.data.mkdir()
            size = f"size={DISK_BYTES}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", self.data], check=True)
            shutil.chown(self.data, self.user)
        super().create()

    def open_service(self) -> None:
        """Make the account and the tables of the service."""
        self.execute(f"CREATE ROLE {USER} LOGIN", f"GRANT CREATE ON DATABASE postgres TO {USER}")
        with self.connect() as connection:
            connection.execute(f"SET SESSION AUTHORIZATION {USER}")
            create(connection)

    def move_clock(self, seconds: int) -> None:
        """Move the time of the server from now on; before its start also by 0."""
        self._clock = self.directory / "clock"
        waiting = self.directory / "clock.new"
        waiting.write_text(f"{seconds:+d}")
        waiting.replace(self._clock)

    def command(self) -> list[str]:
        command = super().command()
        if self._clock is None:
            return command
        variables = {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return ["env", *(f"{name}={value}" for name, value in variables.items()), *command]

    def discard(self) -> None:
        with suppress(ProcessLookupError):
            self.resume()
        self.kill()
        if self._small_disk:
            subprocess.run(["umount", self.data], check=True)
        super().discard()

    # what is in it

    def execute(self, *statements: str) -> list[Any]:
        """Run statements, each in a transaction of its own; return the rows of the last one."""
        with self.connect() as connection:
            connection.autocommit = True
            for statement in statements:
                cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def backends(self, condition: str = "true") -> list[int]:
        """Return the process IDs of connections of the service."""
        rows = self.execute(
            f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}' AND {condition}"
        )
        return [pid for (pid,) in rows]

    # its processes

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End it as `pg_ctl stop -m fast`: connections are ended, nothing is lost."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(TIMEOUT)
        self._process = None

    def freeze(self) -> None:
        """SIGSTOP of all its processes: connections stay open, nothing is answered."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        parent = self._process.pid
        os.kill(parent, number)  # first: it starts no more of them
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    os.kill(int(path.parent.name), number)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room on the disk for the length of a `with` block."""
        filler = self.data / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"\0" * 65536):
                pass
        try:
            yield
        finally:
            filler.unlink()

    # replicas

    def replica(self, *, synchronous: bool) -> ChaosPostgres:
        """Start a replica.

        Args:
            synchronous: whether commits of this server wait for it.
        """
        replica = ChaosPostgres()
        name = f"replica{replica.port}"
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name={name}"
        replica.run("pg_basebackup", "-d", source, "-D", str(replica.data), "-R", "-c", "fast")
        replica.start()
        state = "sync" if synchronous else "async"
        if synchronous:
            self.execute(
                f"ALTER SYSTEM SET synchronous_standby_names = '{name}'", "SELECT pg_reload_conf()"
            )
        wait_until(
            lambda: self.execute("SELECT sync_state FROM pg_stat_replication") == [(state,)],
            TIMEOUT,
            "a replica in sync",
        )
        return replica

    def promote(self) -> None:
        """Make a replica a server of its own, which waits for no other."""
        self.execute(
            "SELECT pg_promote()",
            "ALTER SYSTEM RESET synchronous_standby_names",
            "SELECT pg_reload_conf()",
        )

    def follow(self, primary: ChaosPostgres) -> None:
        """Start this one, which has stopped, as a replica of another."""
        (self.data / "standby.signal").touch()
        source = f"host=127.0.0.1 port={primary.port} user=postgres"
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{source}'\nsynchronous_standby_names = ''\n")
        self.start()

    def leave(self) -> None:
        """Stop to receive from the primary."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        wait_until(
            lambda: not self.execute("SELECT pid FROM pg_stat_wal_receiver"),
            TIMEOUT,
            "the end of replication",
        )
