"""Run a command with PostgreSQL as database and engine: python -m <this> COMMAND ...

DATABASE_URL names the server. Without it a private one runs as long as the command, with its data
in DJANGO_DATA_DIR: its only socket is in a directory of its owner. PostgreSQL refuses to run as
root, so the account `postgres` runs it then.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from messaging_project.settings import DATA_DIR

ACCOUNT = "postgres"
OF_DEBIAN = "/usr/lib/postgresql"
NOT_INSTALLED = (
    "PostgreSQL is not installed. Install it (Debian: apt install postgresql), or name a server:"
    " make run ENGINE=postgresql DATABASE_URL=postgresql://user:password@host/database"
)


def main(command: list[str]) -> int:
    """Run the command and return its exit status."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    if url := os.environ.get("DATABASE_URL", ""):
        return run(command, url)
    with private_server() as url:
        return run(command, url)


def run(command: list[str], url: str) -> int:
    """Run the command with the database; Ctrl-C reaches it directly, SIGTERM through here."""
    environment = os.environ | {"DJANGO_DATABASE": url, "SERVICE_ENGINE": "postgresql"}
    child = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _frame: child.send_signal(number))
    return child.wait()


@contextmanager
def private_server() -> Iterator[str]:
    """Start a server, yield its URL, and stop it.

    Raises:
        SystemExit: it is not installed, or did not start.
    """
    account: dict[str, Any] = {}
    if os.getuid() == 0:
        entry = pwd.getpwnam(ACCOUNT)
        account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    with TemporaryDirectory(prefix="realtime-postgresql-") as socket:
        data = DATA_DIR / "postgresql"
        data.mkdir(mode=0o700, exist_ok=True)  # the settings have made DATA_DIR
        if account:
            DATA_DIR.chmod(0o711)  # the account may pass, and read nothing there
            for directory in (socket, data):
                os.chown(directory, account["user"], account["group"])

        def control(*arguments: str) -> None:
            words = [program("pg_ctl"), "--pgdata", str(data), "--silent", *arguments]
            # a session of its own: Ctrl-C is for the command
            done = subprocess.run(words, cwd="/", start_new_session=True, check=False, **account)
            if done.returncode:
                raise SystemExit(f"PostgreSQL in {data} failed: see the lines above, and its log.")

        if not (data / "PG_VERSION").exists():
            control("initdb", "--options=--auth=trust --username=postgres --encoding=UTF8")
        options = f"-c listen_addresses= -c unix_socket_directories={socket}"
        control("start", "--wait", f"--log={data}/log", f"--options={options}")
        try:
            yield f"postgresql://postgres@/postgres?host={quote(socket, safe='')}"
        finally:
            control("stop", "--wait", "--mode=fast")


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL; Debian keeps the programs out of the PATH.

    Raises:
        SystemExit: there is none.
    """
    places = sorted(Path(OF_DEBIAN).glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(places[-1]) if places else None)
    if found is None:
        raise SystemExit(NOT_INSTALLED)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
