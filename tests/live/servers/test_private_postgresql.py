"""`make run ENGINE=postgresql`: the ready site over a server of its own, or over a named one."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.database_server import DatabaseServer, Postgres
from tests.ports import free_port
from tests.processes import run_python
from tests.ready_site import ReadySite, environment
from tests.server import ROOT, ListeningProcess


class PostgreSQLSite(ReadySite):
    """The ready site, migrated and served by the command line of the Makefile."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        port = free_port()
        manage = f"{shlex.quote(sys.executable)} manage.py"
        command = f"{manage} migrate --verbosity 0 && exec {manage} serve --port {port}"
        ListeningProcess.__init__(
            self,
            ["-m", "messaging_project.private_postgresql", "sh", "-c", command],
            rf"Listening on TCP address 127\.0\.0\.1:({port})",
            environment(directory) | {"DATABASE_URL": ""},
        )


READ = """
import os, psycopg
print(os.environ["DJANGO_DATABASE"], os.environ["SERVICE_ENGINE"])
with psycopg.connect(os.environ["DJANGO_DATABASE"]) as connection:
    print(connection.execute("SELECT {question}").fetchone()[0])
"""


def read(directory: Path, question: str, url: str = "") -> list[str]:
    """Ask the database of a command; returns its URL, the engine and the answer."""
    command = [sys.executable, "-c", READ.format(question=question)]
    variables = environment(directory) | {"DATABASE_URL": url}
    done = run_python(["-m", "messaging_project.private_postgresql", *command], ROOT, variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the account of the server may enter: pytest closes its own."""
    with TemporaryDirectory(prefix="private-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_private_server_keeps_its_data_and_ends_with_the_site(directory: Path) -> None:
    if not Postgres.is_installed():
        pytest.skip("postgresql is not installed")
    running = directory / "postgresql" / "postmaster.pid"
    site = PostgreSQLSite(directory)
    try:
        assert "Sign in to the admin" in site.log
        site.publish("demo:lobby", {})
        assert running.exists()
    finally:
        status = site.stop()
    assert status in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert not running.exists()

    *_, top = read(directory, "top FROM django_realtime.stream WHERE channel = 'demo:lobby'")
    *_, cached = read(directory, "count(*) FROM site_cache")
    assert top == "1"
    assert cached.isdecimal(), "the panel's sign-in counts for all processes"
    assert not running.exists()


def test_server_that_has_a_name_is_used(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer], directory: Path
) -> None:
    server = start_database(Postgres)
    url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    assert read(directory, "1", url) == [url, "postgresql", "1"]
    assert not (directory / "postgresql").exists()


def test_where_postgresql_is_not_installed_the_way_on_is_shown(directory: Path) -> None:
    code = (
        "from messaging_project import private_postgresql as private\n"
        "private.OF_DEBIAN = '/nowhere'\n"
        "private.main(['true'])"
    )
    variables = environment(directory) | {"PATH": str(directory), "DATABASE_URL": ""}
    done = run_python(["-c", code], ROOT, variables)
    assert done.returncode == 1
    assert "DATABASE_URL=postgresql://" in done.stderr
