"""A PgBouncer in transaction mode."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.database_server import TIMEOUT, DatabaseServer
from tests.ports import free_port
from tests.server import wait_until

CONFIGURATION = """\
[databases]
postgres = host=127.0.0.1 port={server} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
{more}
logfile = {directory}/log
pidfile = {directory}/pid
"""


def pgbouncer_binary() -> str | None:
    """Return the path of the program; Debian keeps it out of the PATH of accounts."""
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


class PgBouncer:
    """A pooler before a server, with fewer connections than its clients have."""

    def __init__(self, server: DatabaseServer, connections: int = 3, more: str = "") -> None:
        """`more`: lines of its configuration."""
        self._files = TemporaryDirectory(prefix="pgbouncer-")
        directory = Path(self._files.name)
        self.port = free_port()
        configuration = directory / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                server=server.settings["PORT"],
                port=self.port,
                connections=connections,
                directory=directory,
                more=more,
            )
        )
        arguments = [pgbouncer_binary() or "", "-q", str(configuration)]
        if not os.getuid():  # it does not run as root
            for path in (directory, configuration):
                shutil.chown(path, server.user)
            arguments[1:1] = ["-u", server.user]
        self._process = subprocess.Popen(arguments, cwd="/")
        log = directory / "log"
        wait_until(lambda: log.exists() and "process up" in log.read_text(), TIMEOUT, "a pooler")

    def discard(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(TIMEOUT)
        self._files.cleanup()
