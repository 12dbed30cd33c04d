"""How soon another relay goes on after one was killed: `python -m tests.pending.takeover`.

Two relays look at rows in every shard. One kills itself (SIGKILL) before, while or after it
publishes those that it has taken. The time from its death until the other has published and deleted
all rows is that of the take-over.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any

from tests.database_server import DatabaseServer, MariaDB, Postgres
from tests.pending.chaos import Chaos
from tests.pending.speed import milliseconds
from tests.processes import Process, start_python
from tests.redis_server import RedisServer
from tests.server import ROOT

MOMENTS = ("before", "during", "after")
"""See `actor.MOMENTS`, which needs Django."""
CHANNELS = [f"orders:{number}" for number in range(64)]
"""More than shards, so that all shards have rows."""
TIMEOUT = 60.0


class SQLite(DatabaseServer):
    """A file, with what the servers have."""

    name = "sqlite"
    programs = ()

    def create(self) -> None:
        pass

    def start(self) -> None:
        pass

    @property
    def settings(self) -> dict[str, Any]:
        path = str(self.directory / "site.sqlite3")
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": {"timeout": 20}}

    def connect(self) -> Any:
        return sqlite3.connect(self.settings["NAME"], timeout=20, factory=_Connection)


class _Connection(sqlite3.Connection):
    """One that other drivers resemble."""

    def cursor(self, *_: Any) -> Any:
        return closing(super().cursor())

    def __exit__(self, *error: Any) -> Any:
        self.close()


DATABASES: tuple[type[DatabaseServer], ...] = (Postgres, MariaDB, SQLite)


class Talking:
    """An actor whose lines are read, and that reads lines."""

    def __init__(self, chaos: Chaos, role: str, **arguments: Any) -> None:
        command = ["-m", "tests.pending.actor", role, json.dumps(arguments)]
        read_end, stdin = os.pipe()
        stdout, write_end = os.pipe()
        self._stdin: IO[str] = os.fdopen(stdin, "w", buffering=1)
        self._stdout: IO[str] = os.fdopen(stdout)
        with os.fdopen(read_end, "rb") as input_, os.fdopen(write_end, "wb") as output:
            streams = (input_, output, chaos.errors)
            self.process: Process = start_python(command, ROOT, chaos.environment, streams)

    def says(self, word: str) -> None:
        """Wait for a line."""
        assert self._stdout.readline() == f"{word}\n"

    def ask(self, line: str) -> None:
        self._stdin.write(f"{line}\n")

    def close(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._stdin.close()
        self._stdout.close()


class TakeOver:
    """Rows, and relays that die."""

    def __init__(self, chaos: Chaos) -> None:
        self._chaos = chaos
        self._stack = ExitStack()
        self._committer = self._start("commit")
        self.committed = 0
        """Publications in each channel."""

    def _start(self, role: str, **arguments: Any) -> Talking:
        actor = Talking(self._chaos, role, **arguments)
        self._stack.callback(actor.close)
        return actor

    def relay(self, *, dies: str = "") -> Talking:
        """Start a relay that dies at a moment, the first time; without one it lives."""
        relay = self._start("relay", deaths=0, surely_at=int(bool(dies)), at=dies or "after")
        relay.says("relays")
        return relay

    def commit(self) -> None:
        """Commit a publication in each channel."""
        self.committed += 1
        self._committer.ask(json.dumps([[channel, self.committed] for channel in CHANNELS]))
        self._committer.says("committed")

    def expected(self) -> dict[str, list[int]]:
        """Return what the streams must hold: everything once, in its order."""
        return {channel: list(range(1, self.committed + 1)) for channel in CHANNELS}

    def relayed(self) -> None:
        """Wait until no row is left."""
        until = time.monotonic() + TIMEOUT
        while self._chaos.waiting():
            assert time.monotonic() < until
            time.sleep(0.005)

    def seconds(self, moment: str) -> float:
        """Have a relay die at a moment beside another one. Return how long the other one took."""
        victim = self.relay(dies=moment)
        while victim.process.poll() is None:
            self.commit()
            while victim.process.poll() is None and self._chaos.waiting():
                time.sleep(0.001)
        died = time.monotonic()
        self.relayed()
        return time.monotonic() - died

    def close(self) -> None:
        self._stack.close()


def main() -> None:
    """Measure each database and moment; print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("databases", nargs="*", help="postgresql, mariadb, sqlite; all of them")
    parser.add_argument("--times", type=int, default=10, help="of each moment")
    options = parser.parse_args()
    for kind in DATABASES:
        if options.databases and kind.name not in options.databases:
            continue
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            directory = Path(name)
            redis = RedisServer(directory / "redis").start()
            stack.callback(redis.kill)
            database = kind()
            stack.callback(database.discard)
            database.create()
            database.start()
            chaos = stack.enter_context(closing(Chaos(directory, database, redis)))
            chaos.prepare()
            trial = stack.enter_context(closing(TakeOver(chaos)))
            trial.relay()
            for moment in MOMENTS:
                figures = milliseconds([trial.seconds(moment) for _ in range(options.times)])
                what = {"database": kind.name, "killed": moment, **figures}
                sys.stdout.write(json.dumps(what) + "\n")
                sys.stdout.flush()
            assert chaos.streams(CHANNELS) == trial.expected()


if __name__ == "__main__":
    main()
