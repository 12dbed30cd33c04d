"""A PostgreSQL or MariaDB of our own: started on a free port, restarted, stopped."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.ports import free_port
from tests.server import wait_until

TIMEOUT = 120.0


def find_program(name: str) -> str | None:
    """The path of a program of a database server; Debian keeps PostgreSQL's out of the PATH."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    if found := shutil.which(name, path=path):
        return found
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(places[-1]) if places else None


class DatabaseServer:
    """One server process; `url` is the value of TEST_DATABASE_URL for `tests.settings`."""

    name: str
    user: str
    """The account that runs it, where the tests run as root."""
    programs: tuple[str, ...]

    def __init__(self) -> None:
        # not below those of pytest: each session of pytest closes them to other accounts
        self._files = TemporaryDirectory(prefix=f"{self.name}-")
        self.directory = Path(self._files.name)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._written = 0
        """Bytes of the log at the last start."""

    @classmethod
    def is_installed(cls) -> bool:
        return all(map(find_program, cls.programs))

    @property
    def settings(self) -> dict[str, Any]:
        """The entry of `DATABASES`."""
        raise NotImplementedError

    def create(self) -> None:
        """Give the server files of its own: a copy of those that are made once."""
        maker = next(kind for kind in type(self).__mro__ if "make" in vars(kind))
        for path in _made(maker).directory.iterdir():
            self.run("cp", "-a", str(path), str(self.directory))

    def make(self) -> None:
        """Make the files of a new server."""
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def connect(self) -> Any:
        """Open a connection with the driver of the database."""
        raise NotImplementedError

    ready: bytes
    """What the server writes when it can be used."""

    def is_up(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            self._launch()  # what is left of the one before it kept it from starting
        return self.ready in (self.directory / "log").read_bytes()[self._written :]

    def start(self) -> None:
        self._launch()
        wait_until(self.is_up, TIMEOUT)

    def _launch(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self._written = log.tell()
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, **self._account()
            )

    def kill(self) -> None:
        """End the server."""
        if self._process is not None:
            # a crash may damage tables of MariaDB's own, which PostgreSQL repairs
            crash = self.name == "postgresql"
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGTERM)
            self._process.wait(TIMEOUT)
            self._process = None

    def discard(self) -> None:
        """End the server, and delete its files."""
        self.kill()
        self._files.cleanup()

    def restart(self) -> None:
        self.kill()
        self.start()

    def run(self, *command: str) -> None:
        """Run a program of the server to its end."""
        done = subprocess.run(
            [find_program(command[0]) or command[0], *command[1:]],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            cwd="/",
            **self._account(),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _account(self) -> dict[str, Any]:
        if os.getuid():
            return {}
        account = pwd.getpwnam(self.user)
        os.chown(self.directory, account.pw_uid, account.pw_gid)
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


@cache
def _made(kind: type[DatabaseServer]) -> DatabaseServer:
    """A server that is never started; its files are made, which takes long."""
    server = kind()
    server.make()
    return server


class Postgres(DatabaseServer):
    name, user = "postgresql", "postgres"
    programs: tuple[str, ...] = ("postgres", "initdb")
    ready = b"ready to accept connections"
    options: tuple[str, ...] = ("max_connections=200",)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": self.port,
            "USER": "postgres",
            "NAME": "postgres",
        }

    def make(self) -> None:
        data = str(self.directory / "data")
        self.run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "-N")

    def command(self) -> list[str]:
        program = find_program("postgres") or ""
        data, here = str(self.directory / "data"), str(self.directory)
        options = [f"unix_socket_directories={here}", *self.options]
        arguments = [word for option in options for word in ("-c", option)]
        return [program, "-D", data, "-h", "127.0.0.1", "-p", str(self.port), *arguments]

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres")


class QuickPostgres(Postgres):
    """One that does not wait for the disk: what it has outlives its end, but no power cut."""

    options = (*Postgres.options, "fsync=off")


class PromotedPostgres(QuickPostgres):
    """One on its second timeline, which is in the epochs of its streams."""

    programs = (*QuickPostgres.programs, "pg_resetwal")

    def make(self) -> None:
        super().make()
        self.run("pg_resetwal", "-D", f"{self.directory}/data", "-l", "000000020000000000000001")


class MariaDB(DatabaseServer):
    name, user = "mariadb", "mysql"
    programs = ("mariadbd", "mariadb-install-db")
    ready = b"ready for connections"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "ENGINE": "django.db.backends.mysql",
            "HOST": "127.0.0.1",
            "PORT": self.port,
            "USER": "tests",
            "PASSWORD": "tests",
            "NAME": "test",
            "OPTIONS": {"charset": "utf8mb4"},
        }

    def make(self) -> None:
        data = str(self.directory / "data")
        self.run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db")
        (self.directory / "init.sql").write_text(
            "CREATE DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4;\n"
            "CREATE USER IF NOT EXISTS tests@'127.0.0.1' IDENTIFIED BY 'tests';\n"
            "GRANT ALL ON *.* TO tests@'127.0.0.1';\n"
        )

    def command(self) -> list[str]:
        here = self.directory
        return [
            find_program("mariadbd") or "",
            "--no-defaults",
            f"--datadir={here}/data",
            f"--socket={here}/socket",
            f"--pid-file={here}/pid",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            f"--init-file={here}/init.sql",
        ]

    def connect(self) -> Any:
        import pymysql

        settings = self.settings
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=settings["USER"],
            password=settings["PASSWORD"],
            database=settings["NAME"],
        )


@contextmanager
def foreign_database(server: DatabaseServer, encoding: str) -> Iterator[None]:
    """Create a database of this name and encoding on a PostgreSQL, until the block is over."""
    with server.connect() as connection:
        connection.autocommit = True
        connection.execute(
            f"CREATE DATABASE \"{encoding}\" TEMPLATE template0 ENCODING '{encoding}'"
            " LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        try:
            yield
        finally:
            connection.execute(f'DROP DATABASE "{encoding}" WITH (FORCE)')


@contextmanager
def tables_on(server: DatabaseServer, *names: str) -> Iterator[str]:
    """Give this process the database of a server, with the tables of apps. Yields its alias.

    The tables stay, without rows.
    """
    from django.apps import apps
    from django.core.management import call_command
    from django.db import connections

    if server.name == "mariadb":
        import pymysql

        pymysql.install_as_MySQLdb()
    alias = "server"
    connections.settings[alias] = (
        connections["default"].settings_dict | {"OPTIONS": {}} | server.settings
    )
    for name in names:
        call_command("migrate", name, database=alias, verbosity=0)
    yield alias
    for name in names:
        for model in apps.get_app_config(name).get_models():
            model._default_manager.using(alias).all().delete()
    connections[alias].close()
    del connections.settings[alias], connections[alias]
