"""Durable publications with real servers: workers beside a site, and the chaos."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.database_server import DatabaseServer, MariaDB, Postgres
from tests.live.monitoring.scraping import KEY, scrape
from tests.pending.chaos import Chaos
from tests.pending.conftest import NAMESPACES
from tests.pending.takeover import CHANNELS, SQLite, TakeOver
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server, wait_until

pytest_plugins = ["tests.database_fixtures"]

TIMEOUT = 60.0


def manage(environment: dict[str, str], *arguments: str) -> None:
    site = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"} | environment
    done = run_python(["manage.py", *arguments], ROOT, site, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr


def arrives(server: Server, channel: str, data: list[Any]) -> None:
    def received() -> bool:
        reply = server.api("history", channel=channel)
        return [each["data"] for each in reply["result"]["publications"]] == data

    wait_until(received)


def worker(environment: dict[str, str], config: Path, channel: str) -> None:
    """Publish from a process that serves no clients, with the options of a site."""
    config.write_text(json.dumps({"namespaces": NAMESPACES}))
    code = (
        "from django.db import transaction\n"
        "import realtime\n"
        "with transaction.atomic():\n"
        f"    realtime.publish({channel!r}, 1, durable=True)\n"
        f"    realtime.publish({channel!r}, 2, durable=True)\n"
    )
    manage(environment | {"SERVICE_CONFIG_FILE": str(config)}, "shell", "-c", code)


def test_worker_beside_a_site_without_redis_publishes(
    own_server: Callable[..., Server], tmp_path: Path
) -> None:
    environment = {"TEST_DATABASE": str(tmp_path / "site.sqlite3")}
    manage(environment, "migrate", "realtime_pending", "-v0")
    server = own_server(environment=environment, namespaces=NAMESPACES, metrics_key=KEY)

    worker(environment, tmp_path / "config.json", "orders:1")

    arrives(server, "orders:1", [1, 2])
    wait_until(lambda: scrape(server)["realtime_pending_relayed_total", "published"] == 2)
    values = scrape(server)
    assert values["realtime_pending_rows", "scheduled"] == 0
    assert "realtime_pending_oldest_seconds" in {name for name, *_ in values}


def test_worker_and_relays_on_a_database_server(
    own_server: Callable[..., Server], database_server: DatabaseServer, tmp_path: Path
) -> None:
    """The site notices a table that is migrated later, and a database that was restarted."""
    environment = {"TEST_DATABASE_SETTINGS": json.dumps(database_server.settings)}
    server = own_server(environment=environment, namespaces=NAMESPACES)
    manage(environment, "migrate", "realtime_pending", "-v0")

    worker(environment, tmp_path / "config.json", "orders:2")

    arrives(server, "orders:2", [1, 2])

    database_server.restart()
    worker(environment, tmp_path / "config.json", "orders:3")

    arrives(server, "orders:3", [1, 2])


@pytest.mark.timeout(600)
def test_committed_publications_are_there_once_and_in_order_whatever_dies(
    own_redis: Callable[..., RedisServer], database_server: DatabaseServer, tmp_path: Path
) -> None:
    redis = own_redis(persistent=True)
    with closing(Chaos(tmp_path, database_server, redis)) as chaos:
        chaos.prepare()
        chaos.run(200, outage=1.0, publishers=4, relays=2)
        assert all(chaos.killed.values())
        assert chaos.streams() == chaos.expected()


@pytest.mark.parametrize(
    ("database_server", "moment"),
    [(Postgres, "during"), (MariaDB, "before"), (SQLite, "after")],
    ids=["postgresql", "mariadb", "sqlite"],
    indirect=["database_server"],
)
def test_another_relay_goes_on_where_one_was_killed(
    own_redis: Callable[..., RedisServer],
    database_server: DatabaseServer,
    tmp_path: Path,
    moment: str,
) -> None:
    with closing(Chaos(tmp_path, database_server, own_redis())) as chaos:
        chaos.prepare()
        with closing(TakeOver(chaos)) as trial:
            victim = trial.relay(dies=moment)
            trial.commit()
            assert victim.process.wait(TIMEOUT) == -signal.SIGKILL
            assert chaos.waiting() == len(CHANNELS)

            trial.relay()
            trial.relayed()

            assert chaos.streams(CHANNELS) == trial.expected()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("database_server", [Postgres], ids=["postgresql"], indirect=True)
def test_committed_publications_are_there_once_and_in_order_over_one_database(
    database_server: DatabaseServer, tmp_path: Path
) -> None:
    """Rows and streams are in one PostgreSQL, which waits for its disk and crashes."""
    with closing(Chaos(tmp_path, database_server, None)) as chaos:
        chaos.prepare()
        chaos.run(200, outage=0.0, publishers=4, relays=2)
        assert all(chaos.killed.values())
        assert chaos.streams() == chaos.expected()
        assert chaos.sql("SELECT count(*) FROM chaos.once") == [(0,)]


def test_another_relay_goes_on_where_one_was_killed_over_one_database(
    site_server: DatabaseServer, tmp_path: Path
) -> None:
    with closing(Chaos(tmp_path, site_server, None)) as chaos:
        chaos.prepare()
        with closing(TakeOver(chaos)) as trial:
            for moment in ("before", "after", "within", "committed"):
                victim = trial.relay(dies=moment)
                trial.commit()
                assert victim.process.wait(TIMEOUT) == -signal.SIGKILL
                assert (chaos.waiting() < len(CHANNELS)) == (moment == "committed"), moment

                with closing(trial.relay()):
                    trial.relayed()

            assert chaos.streams(CHANNELS) == trial.expected()
