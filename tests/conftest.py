"""Fixtures shared by all tests: server processes, tokens, clients of the wire protocol."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from realtime import tokens
from realtime.options_reader import load
from tests.protocol_client import ProtocolClient, open_client
from tests.server import SECRET, Server

CONFIG = load({"token_hmac_secret_key": SECRET})


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
    **options: Any,
) -> Server:
    """Start a server process. `options` are those of the service."""
    return Server(
        tmp_path_factory.mktemp("server"),
        options,
        server=server,
        environment=environment,
        application=application,
    )


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start, or find, a server process with these options: `serve(client_insecure=True)`.

    Servers with the same options are shared by all tests: use channel names and users of
    your own, see `unique`. For one you stop or kill, use `own_server`.
    """
    servers: dict[str, Server] = {}

    def start(**arguments: Any) -> Server:
        key = json.dumps(arguments, sort_keys=True)
        if key not in servers:
            servers[key] = start_server(tmp_path_factory, **arguments)
        return servers[key]

    yield start
    for server in servers.values():
        server.stop()


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """As `serve`, for a server that belongs to one test."""
    servers: list[Server] = []

    def start(**arguments: Any) -> Server:
        servers.append(start_server(tmp_path_factory, **arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


_counter = 0


@pytest.fixture
def unique() -> str:
    """A word no other test uses, for channel names and users."""
    global _counter
    _counter += 1
    return f"t{os.getpid()}x{_counter}"


@pytest.fixture(params=["json", "protobuf"])
def format_name(request: pytest.FixtureRequest) -> str:
    """Runs a test once per format."""
    name: str = request.param
    return name


Connect = Callable[..., AbstractAsyncContextManager[ProtocolClient]]


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
    """A connection token for the servers of `serve`. See `realtime.tokens.connection_token`."""
    return tokens.connection_token(CONFIG, user, **claims)


def subscription_token(client: str, channel: str, **claims: Any) -> str:
    """A subscription token for the servers of `serve`."""
    return tokens.subscription_token(CONFIG, client, channel, **claims)
