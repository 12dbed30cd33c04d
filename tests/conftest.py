"""Fixtures shared by all tests: server processes, tokens, clients of the wire protocol."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

from realtime.auth import issue
from realtime.config.reader import load
from tests.collecting import import_in_turn
from tests.coroutine_thread import connections_of_coroutines  # noqa: F401, a fixture
from tests.database_starting import start_database  # noqa: F401, a fixture
from tests.protocol_client import ProtocolClient, open_client
from tests.redis_cluster import RedisCluster
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer
from tests.server import ROOT, SECRET, Server

CONFIG = load({"token_hmac_secret_key": SECRET})


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # so it is for what a shell runs in the background, and would be for every server started here
    signal.signal(signal.SIGINT, signal.default_int_handler)


# a busy machine is slow, and nothing is wrong with that; in CI this is so already
settings.register_profile(
    "any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


TEARDOWN_TIMEOUT = 90
"""Seconds; session fixtures may stop many servers."""

FAILED = pytest.StashKey[bool]()
"""Set of a test that failed before its teardown."""


SERVERS_KEPT = 6
"""Shared servers that a worker keeps from one module to the next."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, share the files out as `tests.scheduling` says."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import Scheduling, check_names  # it needs the plugin

    check_names()
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect tests without the garbage collector: there are many and all of them stay."""
    gc.disable()
    try:
        import_in_turn(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests that differ from run to run: workers could not share them out."""
    if changing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"an address in the name of a test: {changing[0]}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End a worker whose teardown hangs after a failure, which turns the test's timeout off.

    The watch is a thread, so it is begun where it is needed only.
    """
    if not item.stash.get(FAILED, False):
        return (yield)
    stderr = item.config.stash[fault_handler_stderr_fd_key]  # the process's own, not captured
    faulthandler.dump_traceback_later(TEARDOWN_TIMEOUT, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show what shared servers wrote at last where a test failed: rare failures are read later."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    servers = getattr(item, "funcargs", {}).get("shared_servers")
    if report.failed and servers is not None:
        for server in servers.used_last():
            report.sections.append((f"{server.address} wrote at last", server.log[-4000:]))
    return report


def require(program: str, how: str) -> str:
    """The path of a program; without it the test is skipped on a laptop and fails in CI."""
    path = shutil.which(program)
    if path is None:
        message = f"{program} is not installed ({how})"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


def start_server(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    server: str = "daphne",
    environment: Mapping[str, str] | None = None,
    application: str = "tests.site.asgi:application",
    cwd: Path = ROOT,
    **options: Any,
) -> Server:
    """Start a server process. `options` are those of the service; `cwd`, see `Server`."""
    return Server(
        tmp_path_factory.mktemp("server"),
        options,
        server=server,
        environment=environment,
        application=application,
        cwd=cwd,
    )


def start_nodes(
    tmp_path_factory: pytest.TempPathFactory, size: int, **arguments: Any
) -> list[Server]:
    """Start servers, all at once; `arguments` as for `start_server`."""
    with ThreadPoolExecutor(size) as pool:
        starting = [pool.submit(start_server, tmp_path_factory, **arguments) for _ in range(size)]
    try:
        return [start.result() for start in starting]
    except BaseException:
        for start in starting:
            if start.exception() is None:
                start.result().discard()
        raise


def start_cluster(
    tmp_path_factory: pytest.TempPathFactory, size: int, redis: RedisServer, **arguments: Any
) -> list[Server]:
    """Start servers that share a Redis, all at once."""
    arguments = {"redis_url": redis.url, "redis_prefix": new_word()} | arguments
    return start_nodes(tmp_path_factory, size, **arguments)


class SharedServers:
    """Servers that tests share, by their options; a module ends those of long ago."""

    def __init__(self) -> None:
        self._started: dict[str, list[Server]] = {}
        """Options → the servers; the ones used last are at the end."""

    def find(self, start: Callable[..., list[Server]], **arguments: Any) -> list[Server]:
        """Return the servers with these arguments; `start` makes them if there are none."""
        key = json.dumps([start.__name__, arguments], sort_keys=True)
        found = self._started.pop(key, None) or start(**arguments)
        self._started[key] = found
        return found

    def used_last(self) -> list[Server]:
        """Return the servers that were asked for last."""
        return next(reversed(self._started.values()), [])

    def keep(self, number: int) -> None:
        """End all but those that were used last."""
        for key in list(self._started)[: len(self._started) - number]:
            for server in self._started.pop(key):
                server.discard()


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[SharedServers]:
    """The servers of `serve` and `shared_cluster`."""
    servers = SharedServers()
    yield servers
    servers.keep(0)


@pytest.fixture(scope="module", autouse=True)
def few_servers(shared_servers: SharedServers) -> None:
    """End servers that no module before this one has used for a while: each takes 90 MB."""
    shared_servers.keep(SERVERS_KEPT)


@pytest.fixture(scope="session")
def serve(
    tmp_path_factory: pytest.TempPathFactory, shared_servers: SharedServers
) -> Callable[..., Server]:
    """Start, or find, a server process with these options: `serve(client_insecure=True)`.

    Servers with the same options are shared by all tests: use channel names and users of
    your own, see `unique`. For one you stop or kill, use `own_server`.
    """

    def one(**arguments: Any) -> list[Server]:
        return [start_server(tmp_path_factory, **arguments)]

    def find(**arguments: Any) -> Server:
        [server] = shared_servers.find(one, **arguments)
        return server

    return find


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """As `serve`, for a server that belongs to one test."""
    servers: list[Server] = []

    def start(**arguments: Any) -> Server:
        servers.append(start_server(tmp_path_factory, **arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.discard()
        # shown where the test failed
        print(f"--- {server.address} wrote at last:\n{server.log[-4000:]}")  # noqa: T201


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis shared by all tests: use prefixes of your own, see `unique`."""
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def lone_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis Cluster of one server, which has all slots; shared as `redis_server`.

    So is a cluster behind a proxy: no command is redirected, and each uses the keys of one slot.
    """
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"), 1).start()
    yield cluster.servers[0]
    cluster.kill()


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A Redis Cluster of three servers with a password, shared as `redis_server`.

    Needs Redis 7 or newer.
    """
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"), password="word").start()
    yield cluster
    cluster.kill()


@pytest.fixture
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RedisServer]]:
    """Start a Redis that belongs to one test: `own_redis(persistent=True)`."""
    servers: list[RedisServer] = []

    def start(**arguments: Any) -> RedisServer:
        server = RedisServer(tmp_path_factory.mktemp("redis"), **arguments)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def own_sentinel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sentinel]]:
    """Start a master, a replica and a sentinel for one test: `own_sentinel(password="x")`."""
    started: list[Sentinel] = []

    def start(**arguments: Any) -> Sentinel:
        started.append(Sentinel(tmp_path_factory.mktemp("sentinel"), **arguments))
        return started[-1].start()

    yield start
    for sentinel in started:
        sentinel.kill()


@pytest.fixture
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., list[Server]]]:
    """Start servers that share a Redis and belong to one test: `cluster(2, redis, presence=True)`.

    Their prefix is a new one unless `redis_prefix` is given.
    """
    servers: list[Server] = []

    def start(size: int, redis: RedisServer, **arguments: Any) -> list[Server]:
        started = start_cluster(tmp_path_factory, size, redis, **arguments)
        servers.extend(started)
        return started

    yield start
    for server in servers:
        server.discard()


@pytest.fixture(scope="session")
def shared_cluster(
    tmp_path_factory: pytest.TempPathFactory,
    redis_server: RedisServer,
    shared_servers: SharedServers,
) -> Callable[..., list[Server]]:
    """Start, or find, two servers on one Redis: `one, other = shared_cluster(presence=True)`.

    Shared by all tests that ask for the same options, as those of `serve`.
    """

    def two(**arguments: Any) -> list[Server]:
        return start_cluster(tmp_path_factory, 2, redis_server, **arguments)

    def find(**arguments: Any) -> list[Server]:
        return shared_servers.find(two, **arguments)

    return find


_words = count(1)


def new_word() -> str:
    """A word nobody else uses."""
    return f"t{os.getpid()}x{next(_words)}"


@pytest.fixture
def unique() -> str:
    """A word no other test uses, for channel names and users."""
    return new_word()


@pytest.fixture(params=["json", "protobuf"])
def format_name(request: pytest.FixtureRequest) -> str:
    """Runs a test once per format."""
    name: str = request.param
    return name


@pytest.fixture
async def connect(
    request: pytest.FixtureRequest,
) -> AsyncIterator[Callable[..., Any]]:
    """Connect a client: `await connect(server, user="17")`; closed when the test ends.

    `user=None` sends no token. In a test that uses the fixture `format_name` the client
    speaks that format; `format_name=` overrides.
    """
    stack = AsyncExitStack()
    default = (
        request.getfixturevalue("format_name") if "format_name" in request.fixturenames else "json"
    )

    async def connect(
        server: Server, user: str | None = "17", *, token: str | None = None, **options: Any
    ) -> ProtocolClient:
        if token is None and user is not None and options.get("connected", True):
            token = connection_token(user)
        options.setdefault("format_name", default)
        return await stack.enter_async_context(open_client(server.socket, token=token, **options))

    yield connect
    await stack.aclose()


def connection_token(user: str, **claims: Any) -> str:
    """A connection token for the servers of `serve`. See `realtime.auth.issue`."""
    return issue.connection_token(CONFIG, user, **claims)


def subscription_token(client: str, channel: str, **claims: Any) -> str:
    """A subscription token for the servers of `serve`."""
    return issue.subscription_token(CONFIG, client, channel, **claims)
