"""Fixtures of the live tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver import Chrome

from realtime.engine.postgresql.schema import create
from tests.browser import browsing, console, leave, renew
from tests.conftest import new_word, start_server
from tests.database_server import DatabaseServer, Postgres
from tests.live.clusters import SERVICE, Cluster, TwoNodes
from tests.live.configurations import Connect
from tests.live.panel_servers import PanelServer, make_site
from tests.live.panel_site import OPERATOR, PASSWORD, Guests, config_of, sign_in_browser
from tests.live.panel_staff import Staff, add_staff
from tests.live.proxy.application import Application
from tests.live.publish_screen import PublishScreen
from tests.live.tail_page import TailPage
from tests.protocol_client import ProtocolClient
from tests.ready_site import ReadySite
from tests.server import Server
from tests.tcp_proxy import TcpProxy

NewProxy = Callable[[Server], Awaitable[TcpProxy]]


@pytest.fixture(scope="session")
def shared_application() -> Iterator[Application]:
    """One application for all tests, so that the servers that ask it can be shared."""
    application = Application()
    yield application
    application.stop()


@pytest.fixture
def application(shared_application: Application) -> Application:
    """The application that endpoints belong to, as if new."""
    shared_application.reset()
    return shared_application


@pytest.fixture(scope="session")
def nodes_over_postgresql(
    tmp_path_factory: pytest.TempPathFactory,
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> Iterator[TwoNodes]:
    """Two nodes over one PostgreSQL, on servers of two kinds."""
    database, schema = start_database(Postgres), new_word()
    with database.connect() as connection:
        create(connection, schema)
    options: dict[str, Any] = {
        "engine": "postgresql",
        "database_url": f"postgresql://postgres@127.0.0.1:{database.settings['PORT']}/postgres",
        "database_schema": schema,
        **{name: value for name, value in SERVICE.items() if name != "redis_prefix"},
    }
    kinds = ("daphne", "uvicorn")
    nodes = [start_server(tmp_path_factory, server=kind, **options) for kind in kinds]
    yield nodes[0], nodes[1]
    for node in nodes:
        node.discard()


@pytest.fixture(params=["redis", "postgresql"])
def two_nodes(request: pytest.FixtureRequest) -> TwoNodes:
    """Two nodes of one service, on servers of two kinds."""
    if request.param == "postgresql":
        nodes: TwoNodes = request.getfixturevalue("nodes_over_postgresql")
        return nodes
    shared_cluster: Cluster = request.getfixturevalue("shared_cluster")
    one, other = (shared_cluster(server=kind, **SERVICE) for kind in ("daphne", "uvicorn"))
    return one[0], other[1]


@pytest.fixture
async def client(server: Server, connect: Connect) -> ProtocolClient:
    """A client of the test's `server`, connected by a token."""
    return await connect(server)


@pytest.fixture
async def newcomer(server: Server, connect: Connect) -> ProtocolClient:
    """A client of the test's `server` that has not sent its connect command."""
    return await connect(server, connected=False)


@pytest.fixture
async def new_proxy() -> AsyncIterator[NewProxy]:
    """Put a proxy in front of a server: `await new_proxy(server)`."""
    async with AsyncExitStack() as stack:

        async def new_proxy(server: Server) -> TcpProxy:
            return await stack.enter_async_context(TcpProxy(server.socket))

        yield new_proxy


@pytest.fixture
async def proxy(server: Server, new_proxy: NewProxy) -> TcpProxy:
    """A proxy in front of the test's `server`."""
    return await new_proxy(server)


@pytest.fixture(scope="session")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser for all modules that need no sign-in which stays: see `clean_browser`."""
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def clean_browser(shared_browser: Chrome) -> Chrome:
    """That browser, without the tabs and the cookies of other modules."""
    renew(shared_browser)
    return shared_browser


@pytest.fixture
def screen(staffed_browser: Chrome, staffed_site: ReadySite) -> Iterator[PublishScreen]:
    """The publish page, opened; whatever its console says is an error."""
    yield PublishScreen(staffed_browser, staffed_site.address).open()
    logged = console(staffed_browser)
    staffed_browser.execute_script("localStorage.clear()")
    assert logged == []


@pytest.fixture(scope="session")
def panel_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ready site's database, with users, for servers with the panel."""
    return make_site(tmp_path_factory.mktemp("panel"))


@pytest.fixture(scope="session")
def panel_server(
    panel_site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PanelServer]:
    """A server with the panel and the memory engine; whoever stops it starts it again."""
    server = PanelServer(panel_site, tmp_path_factory.mktemp("panel-server"))
    yield server
    server.discard()


@pytest.fixture(scope="session")
def staffed_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """One ready site, with the staff of `panel_staff`, for all tests that do not stop it."""
    site = ReadySite(tmp_path_factory.mktemp("site"))
    try:
        add_staff(site)
        yield site
    finally:
        site.discard()


@pytest.fixture(scope="session")
def staff(staffed_site: ReadySite) -> Iterator[Staff]:
    """The browsers of that staff, by name: `staff["viewer"]`."""
    with Staff(staffed_site) as staff:
        yield staff


@pytest.fixture
def operator(staff: Staff) -> httpx.Client:
    """The browser, without JavaScript, of a superuser of that site."""
    return staff[OPERATOR]


@pytest.fixture
async def guests(staffed_site: ReadySite) -> AsyncIterator[Guests]:
    """Clients of this test at that site: `await guests.open("17", "news")`."""
    async with AsyncExitStack() as stack:
        yield Guests(staffed_site.socket, config_of(staffed_site), stack)


@pytest.fixture(scope="session")
def staffed_browser(
    staffed_site: ReadySite, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chrome]:
    """A browser in which the operator of that site is signed in."""
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        sign_in_browser(browser, staffed_site.address, staffed_site.password)
        yield browser


@pytest.fixture(scope="session")
def signed_in_browser(
    panel_server: PanelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chrome]:
    """A browser in which the operator is signed in, at every server of `panel_site`."""
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        sign_in_browser(browser, panel_server.address, PASSWORD)
        yield browser


@pytest.fixture
def panel_browser(signed_in_browser: Chrome) -> Iterator[Chrome]:
    """That browser; what its console says is an error, but for a server that is away."""
    yield signed_in_browser
    logged = [line for line in console(signed_in_browser) if "ERR_CONNECTION_REFUSED" not in line]
    leave(signed_in_browser)
    assert logged == []


@pytest.fixture
def tail_page(panel_browser: Chrome, panel_server: PanelServer) -> TailPage:
    """The channel page at that server, not opened yet."""
    return TailPage(panel_browser, panel_server)
