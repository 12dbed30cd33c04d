"""Fixtures of the tests with published clients of the second generation: one server for all.

A module that uses `connect_next` has `pytest_plugins = ["tests.js_fixtures"]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.js_builds import BUILDS, Build
from tests.js_client import Driver, FindNode, open_driver
from tests.js_next import JSON_5, PROTOBUF_5, NextClient, open_next
from tests.live.second.go_client import build
from tests.server import Server
from tests.tcp_proxy import TcpProxy

KEPT = 5
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "http_stream": True,
    "sse": True,
    "client_expired_close_delay": 1,
    "client_expired_sub_close_delay": 1,
    "ping_interval": 8,
    "pong_timeout": 7,
    "namespaces": [
        {
            "name": "chat",
            "publish": True,
            "presence": True,
            "join_leave": True,
            "history_size": KEPT,
            "history_lifetime": 300,
            "history_recover": True,
        },
        {"name": "plain"},
        {
            "name": "cache",
            "history_size": KEPT,
            "history_lifetime": 300,
            "force_recovery": True,
            "force_recovery_mode": "cache",
        },
        {
            "name": "tags",
            "allow_tags_filter": True,
            "history_size": KEPT,
            "history_lifetime": 300,
            "force_recovery": True,
        },
        {
            "name": "deltas",
            "allowed_delta_types": ["fossil"],
            "history_size": 100,
            "history_lifetime": 300,
            "force_recovery": True,
        },
        {"name": "asking", "history_size": KEPT, "history_lifetime": 300},
    ],
}

OpenNext = Callable[..., Awaitable[NextClient]]


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """The server of all tests with clients of the second generation."""
    return serve(**OPTIONS)


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the Go client, compiled."""
    require("go", "the Go client needs Go 1.25 or later")
    return build(tmp_path_factory.mktemp("go"))


@pytest.fixture
async def next_driver(node_process: FindNode) -> AsyncIterator[Driver]:
    """Holds this test's clients, of both generations."""
    async with open_driver(node_process(BUILDS[0])) as opened:
        yield opened


@pytest.fixture
def connect_next(next_driver: Driver, server: Server) -> OpenNext:
    """Connect a client: `await connect_next(JSON_5, user="17")`. `through` is a proxy."""

    async def connect_next(
        build: Build, *, through: TcpProxy | None = None, **options: Any
    ) -> NextClient:
        url = server.socket if through is None else through.url
        client = await open_next(next_driver, build, url, **options)
        await client.connect()
        return client

    return connect_next


over_each_transport = pytest.mark.parametrize(
    ("build", "transport"),
    [
        (JSON_5, "websocket"),
        (PROTOBUF_5, "websocket"),
        (JSON_5, "http_stream"),
        (PROTOBUF_5, "http_stream"),
        (JSON_5, "sse"),
    ],
    ids=lambda part: part.name if isinstance(part, Build) else part,
)


async def over(driver: Driver, server: Server, build: Build, transport: str) -> NextClient:
    """Connect over a transport."""
    if transport == "websocket":
        client = await open_next(driver, build, server.socket)
    else:
        client = await open_next(
            driver,
            build,
            f"{server.address}/connection/{transport}",
            stream=transport,
            emulationEndpoint=f"{server.address}/emulation",
        )
    await client.connect()
    return client
