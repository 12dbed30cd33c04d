"""Kills publishers, relays, Redis and the database while publications are committed.

python -m tests.pending.chaos 100000 60
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from tests.database_server import DatabaseServer, Postgres
from tests.processes import Process, run_python, start_python
from tests.redis_server import RedisServer
from tests.server import ROOT

PUBLISHERS = 8
RELAYS = 3
CHANNELS = [f"orders:{number}" for number in range(6)]
SLICE = 500
"""Publications after which a publisher ends, and another begins: unless it is killed before."""
FIRST_DEATHS = {"publish": 20, "relay": 1}
"""Role → commits, or rounds, after which its first processes die; others die by chance."""


class Chaos:
    """The servers, and the processes between them."""

    def __init__(
        self, directory: Path, database: DatabaseServer, redis: RedisServer | None
    ) -> None:
        """`redis`: None: the engine uses the database."""
        self._database = database
        self._redis = redis
        options: dict[str, Any] = {
            "namespaces": [{"name": "orders", "history_size": 1_000_000, "history_lifetime": 3600}],
        }
        if redis is None:
            options |= {"engine": "postgresql", "database_schema": "chaos"}
        else:
            options |= {"redis_url": redis.url, "redis_prefix": "chaos"}
        config = directory / "config.json"
        config.write_text(json.dumps(options))
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "SERVICE_CONFIG_FILE": str(config),
            "TEST_DATABASE_SETTINGS": json.dumps(database.settings),
        }
        self.errors = (directory / "actors.log").open("ab")
        """What actors write about failures."""
        self.log = directory / "actors.log"
        self.killed = {"publish": 0, "relay": 0}
        """Role → processes that died."""

    def close(self) -> None:
        self.errors.close()

    def prepare(self) -> None:
        migrate = ["manage.py", "migrate", "realtime_pending", "-v0"]
        done = run_python(migrate, ROOT, self.environment)
        assert done.returncode == 0, done.stderr
        if self._redis is None:
            self.sql("SELECT chaos.keep_house(8, 'epoch', true)")  # as a node does
            self.sql("DELETE FROM chaos.stream")  # of another test
        # the server of another test may have died between publishing rows and deleting them
        self.sql("DELETE FROM realtime_pending")
        self.sql("DROP TABLE IF EXISTS numbers")  # of another test
        self.sql("CREATE TABLE numbers (channel varchar(50) PRIMARY KEY, n integer NOT NULL)")
        values = ", ".join(f"('{channel}', 0)" for channel in CHANNELS)
        self.sql(f"INSERT INTO numbers VALUES {values}")

    def sql(self, query: str) -> list[Any]:
        """Run a query with the driver of the database itself; Django's is that of the tests."""
        with self._database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            rows = list(cursor.fetchall()) if query.startswith("SELECT") else []
            connection.commit()
        return rows

    def start(self, role: str, output: IO[bytes] | None = None, **arguments: Any) -> Process:
        command = ["-m", "tests.pending.actor", role, json.dumps(arguments)]
        with open(os.devnull, "rb") as nothing:
            streams = (nothing, output or self.errors, self.errors)
            return start_python(command, ROOT, self.environment, streams)

    def run(
        self, total: int, outage: float, *, publishers: int, relays: int, faults: int = 1
    ) -> None:
        """Commit so many publications while servers go away, and wait until all are relayed.

        Args:
            outage: seconds for which Redis is away, each time.
            faults: how often Redis and the database fail.
        """
        deaths = {"publish": 0.002, "relay": 0.02}
        with ExitStack() as stack:
            roles = ["publish"] * publishers + ["relay"] * relays
            actors: list[Process | None] = [None] * len(roles)
            is_first = [True] * len(roles)
            stack.callback(_kill, actors)
            steps = [total * (each + 1) // (2 * faults + 1) for each in range(2 * faults)]
            back_at = 0.0
            while (committed := self._committed()) < total or self.waiting() or back_at:
                for index, role in enumerate(roles):
                    actor = actors[index]
                    if actor is not None and (status := actor.poll()) is not None:
                        self.killed[role] += status < 0
                        actor = None
                    if actor is None and (role == "relay" or committed < total):
                        arguments: dict[str, Any] = {
                            "deaths": deaths[role],
                            "surely_at": FIRST_DEATHS[role] if is_first[index] else 0,
                        }
                        is_first[index] = False
                        if role == "publish":
                            arguments |= {"channels": CHANNELS, "count": SLICE}
                        actor = self.start(role, **arguments)
                    actors[index] = actor
                    if role == "publish" and actor is not None and committed >= total:
                        _kill([actor])
                if steps and committed >= steps[0]:
                    if len(steps) % 2 == 0 and self._redis is not None:
                        self._redis.kill()
                        back_at = time.monotonic() + outage
                    else:
                        self._database.restart()
                    steps.pop(0)
                if back_at and time.monotonic() >= back_at and self._redis is not None:
                    self._redis.start()
                    back_at = 0.0
                time.sleep(0.1)

    def _committed(self) -> int:
        return int(self.sql("SELECT sum(n) FROM numbers")[0][0])

    def waiting(self) -> int:
        return int(self.sql("SELECT count(*) FROM realtime_pending")[0][0])

    def streams(self, channels: Sequence[str] = CHANNELS) -> dict[str, list[int]]:
        """Return channel → the numbers in its stream, in their order."""
        with tempfile.TemporaryFile() as output:
            assert self.start("read", output, channels=channels).wait(120) == 0
            output.seek(0)
            streams: dict[str, list[int]] = json.load(output)
        return streams

    def expected(self) -> dict[str, list[int]]:
        """Return what the streams must hold: every committed number once, in its order."""
        rows = self.sql("SELECT channel, n FROM numbers")
        return {channel: list(range(1, number + 1)) for channel, number in rows}


def _kill(actors: Sequence[Process | None]) -> None:
    for actor in actors:
        if actor is not None and actor.poll() is None:
            os.kill(actor.pid, signal.SIGKILL)
            actor.wait()


def main(total: int, outage: float) -> None:
    """Run the whole of it on PostgreSQL and print what happened."""
    random.seed()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        database = Postgres()
        redis = RedisServer(directory / "redis", persistent=True).start()
        try:
            database.create()
            database.start()
            chaos = Chaos(directory, database, redis)
            chaos.prepare()
            began = time.monotonic()
            chaos.run(total, outage, publishers=PUBLISHERS, relays=RELAYS, faults=3)
            seconds = time.monotonic() - began
            streams, expected = chaos.streams(), chaos.expected()
            committed = sum(map(len, expected.values()))
            print(f"{committed} committed in {seconds:.0f} s, killed: {chaos.killed}")  # noqa: T201
            wrong = [channel for channel in expected if streams[channel] != expected[channel]]
            print("all are there once, in order" if not wrong else f"wrong: {wrong}")  # noqa: T201
            sys.exit(bool(wrong))
        finally:
            database.discard()
            redis.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
