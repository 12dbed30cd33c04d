"""The sites of the install tests: with the oldest and with the newest supported Django."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser import browsing
from tests.install.environments import Environment, build_wheel, development_pin
from tests.install.pages import steps
from tests.install.running import Running, Visitor
from tests.install.site import Site, install_command
from tests.redis_server import RedisServer
from tests.server import ROOT

REQUIRED = re.search(r'"django>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
OLDEST = REQUIRED[1] if REQUIRED else ""
DJANGO = {"oldest": f"django=={OLDEST}.0", "newest": "django"}
Serve = Callable[..., Running]
Visit = Callable[[Running], Visitor]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Mapping[str, Site]:
    """The site of a developer who followed the quick start, by the version of Django.

    All packages are installed for the newest one, with the ASGI servers besides daphne. The oldest
    one has its Django and takes the others from there, so that they are unpacked and compiled once.
    """

    def install(version: str, *packages: str, beneath: Environment | None = None) -> Site:
        directory = tmp_path_factory.mktemp(version)
        environment = Environment(directory / "environment", beneath=beneath)
        # one call, so that nothing is installed twice: the site has its Django and its Channels
        environment.install(DJANGO[version], "channels", *install_command(wheel), *packages)
        project = directory / "project"
        project.mkdir()
        site = Site(project, environment)
        site.begin()
        site.follow_quick_start()
        site.run(steps("quickstart.md")["prepare"])
        site.follow_tokens()
        site.follow_migration()
        site.create_user()
        return site

    newest = install("newest", *server_packages())
    return {"newest": newest, "oldest": install("oldest", beneath=newest.environment)}


@pytest.fixture(scope="session", params=list(DJANGO))
def site(request: pytest.FixtureRequest, sites: Mapping[str, Site]) -> Site:
    """Each of the sites in turn."""
    return sites[request.param]


@pytest.fixture(scope="session")
def server(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The site on daphne, without Redis."""
    running = Running(site, production("daphne"), tmp_path_factory.mktemp("daphne") / "log")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def redis_variables(redis_server: RedisServer) -> Mapping[str, str]:
    """What the quick start puts into the environment of every process, for our Redis."""
    return {"SERVICE_REDIS_URL": redis_server.url}


@pytest.fixture
def serve_site(tmp_path: Path) -> Iterator[Serve]:
    """Start a server for one test: `serve_site(site, ["python", ...])`."""
    started: list[Running] = []

    def start(site: Site, command: list[str], **variables: str) -> Running:
        started.append(Running(site, command, tmp_path / f"log{len(started)}", **variables))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    """A browser in which nobody is logged in."""
    with browsing(tmp_path / "profile") as browser:
        yield browser


@pytest.fixture
def visit() -> Iterator[Visit]:
    """Open a browser at a server; it is closed when the test ends."""
    with ExitStack() as stack:

        def open_browser(server: Running) -> Visitor:
            visitor = Visitor(server)
            stack.enter_context(visitor.http)
            return visitor

        yield open_browser


@pytest.fixture
def visitor(server: Running, visit: Visit) -> Visitor:
    """Somebody who is logged in at the site on daphne."""
    return visit(server).log_in()


def server_packages() -> list[str]:
    """What the quick start installs for the ASGI servers besides daphne, in tested versions."""
    commands = map(shlex.split, steps("quickstart.md")["servers"].splitlines())
    return [development_pin(package) for _pip, _install, *rest in commands for package in rest]


def production(server: str) -> list[str]:
    """The command line that the quick start gives for an ASGI server."""
    lines = steps("quickstart.md")["production"].splitlines()
    (line,) = (line for line in lines if shlex.split(line)[2] == server)
    return shlex.split(line)
