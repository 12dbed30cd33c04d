"""The words and answers of a service that depend on its engine, as a table: one row an engine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import httpx
import pytest

from realtime.engine.postgresql.schema import create
from tests.database_server import DatabaseServer, Postgres
from tests.live.monitoring.scraping import KEY, health, scrape
from tests.live.panel_servers import PanelServer, make_site
from tests.live.panel_site import PASSWORD, sign_in
from tests.panel.paths import page_path
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, ListeningProcess, wait_until


class EngineRow(NamedTuple):
    """What a service with one engine answers."""

    server: str
    """The name of the program that has the data; "" for the memory engine."""
    examined: frozenset[str]
    """First words of the doctor's checks of that program."""
    elsewhere: str
    """What a command in a process without clients answers."""
    workers: str
    """What `--workers 2` writes."""


NOT_SERVING = "With the memory engine, only the process that serves clients can do this."
ROWS = {
    "memory": EngineRow("", frozenset(), NOT_SERVING, "--workers needs Redis or PostgreSQL."),
    "redis": EngineRow("Redis", frozenset({"redis"}), "CLIENTS", "Listening on"),
    "postgresql": EngineRow("PostgreSQL", frozenset({"postgresql"}), "CLIENTS", "Listening on"),
}
SERVERS = {row.server for row in ROWS.values() if row.server}
EXAMINED = frozenset().union(*(row.examined for row in ROWS.values()))
SHARED = [name for name, row in ROWS.items() if row.server]


class Service:
    """The ready site with one engine, whose server can go and come back."""

    def __init__(self, row: EngineRow, site: Path, log: Path, store: Any, **options: str) -> None:
        self.row = row
        self.store: RedisServer | DatabaseServer | None = store
        """The server of the engine."""
        self.environment = {
            f"SERVICE_{name.upper()}": value
            for name, value in {"health": "true", "metrics_key": KEY, **options}.items()
        }
        self.node = PanelServer(site, log, **self.environment)
        self.environment |= self.node.environment

    def command(self, *arguments: str) -> CompletedProcess[str]:
        """Run `manage.py realtime` with the options of the service."""
        return run_python(
            ["manage.py", "realtime", *arguments], ROOT, os.environ | self.environment
        )

    def names_no_other_server(self, text: str) -> bool:
        """Whether a text, which may name options of every engine, speaks of no other server."""
        others = SERVERS - {self.row.server}
        return not re.search(rf"\b({'|'.join(others)})\b", text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module", params=ROWS)
def service(
    request: pytest.FixtureRequest,
    site: Path,
    tmp_path_factory: pytest.TempPathFactory,
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> Iterator[Service]:
    """A service with each engine, over one database of users."""
    row, files = ROWS[request.param], tmp_path_factory.mktemp("engines")
    store: RedisServer | DatabaseServer | None = None
    options: dict[str, str] = {}
    if row.server == "Redis":
        store = RedisServer(tmp_path_factory.mktemp("redis"), persistent=True).start()
        options = {"redis_url": store.url}
    if row.server == "PostgreSQL":
        store = start_database(Postgres)
        with store.connect() as connection:
            create(connection)
        url = f"postgresql://postgres@127.0.0.1:{store.port}/postgres"
        options = {"engine": "postgresql", "database_url": url}
    service = Service(row, site, files / "log", store, **options)
    yield service
    service.node.discard()
    if isinstance(store, RedisServer):
        store.kill()


def test_service_answers_by_its_engine(service: Service) -> None:
    row, server = service.row, service.node.server
    assert (health(server, "/live"), health(server, "/ready")) == (200, 200)

    wait_until(lambda: len(service.node.api("info")["nodes"]) == 1, what="the node")
    info = service.command("info")
    assert row.elsewhere in info.stdout + info.stderr
    assert (info.returncode == 0) is bool(row.server)

    wait_until(
        lambda: (("realtime_redis_seconds",) in scrape(server)) is bool(row.server),
        what="the seconds of a heartbeat",
    )
    assert ("realtime_interruptions_total",) in scrape(server)


def test_doctor_examines_the_server_of_the_engine(service: Service) -> None:
    done = service.command("doctor", "--url", service.node.address, "--json")
    names = set(re.findall(r'"check":"(\w+)', done.stdout))
    assert names & EXAMINED == service.row.examined, done.stdout
    assert service.names_no_other_server(done.stdout)
    assert re.search(r'"check":"processes","status":"ok"', done.stdout), done.stdout


def test_panel_names_the_server_of_the_engine(service: Service) -> None:
    with closing(sign_in(service.node.address, PASSWORD)) as browser:
        texts = {page: page_text(browser, page) for page in ("overview", "events", "pending")}
    assert ("Engine round trip" in texts["overview"]) is bool(service.row.server)
    for page, text in texts.items():
        assert service.names_no_other_server(text), page


def page_text(browser: httpx.Client, page: str) -> str:
    """The text of a page, without its markup."""
    return re.sub(r"<[^>]*>", " ", browser.get(page_path(page)).text)


def test_outage_is_told_by_the_name_of_the_server(service: Service) -> None:
    row, node = service.row, service.node
    if service.store is None:
        return  # the memory engine has none
    with closing(sign_in(node.address, PASSWORD)) as browser:
        service.store.kill()
        wait_until(lambda: health(node.server, "/ready") == 503, what="a process that is not ready")
        assert health(node.server, "/live") == 200
        away = browser.get(page_path("overview"))
        told = service.command("info")
        examined = service.command("doctor")
        service.store.start()
        wait_until(lambda: health(node.server, "/ready") == 200, what="a process that is ready")
        wait_until(
            lambda: f"{row.server} is back." in page_text(browser, "events"), what="the event"
        )
        events = page_text(browser, "events")

    assert away.status_code == 503
    assert f"{row.server} cannot be reached" in away.text
    assert f"{row.server} is not available" in told.stderr
    assert f"Check that {row.server} runs" in examined.stdout
    assert f"{row.server} was lost." in events
    for text in (away.text, told.stderr, examined.stdout, events, node.server.log):
        assert service.names_no_other_server(text)


def test_workers_need_an_engine_that_they_share(service: Service) -> None:
    command = [
        "-m",
        "realtime",
        "--workers",
        "2",
        "--port",
        "0",
        "messaging_project.asgi:application",
    ]
    environment = os.environ | service.environment
    if not service.row.server:
        ended = run_python(command, ROOT, environment)
        assert (ended.returncode, service.row.workers in ended.stderr) == (1, True)
        return
    workers = ListeningProcess(command, r"Listening on TCP address 127\.0\.0\.1:(\d+)", environment)
    try:
        wait_until(lambda: len(service.node.api("info")["nodes"]) == 3, what="three nodes")
    finally:
        workers.stop()
    assert service.row.workers in workers.log
