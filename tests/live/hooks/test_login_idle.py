"""An idle connection holds no connection to the database."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.open_files import open_files
from tests.server import Server, wait_until

CLIENTS = 30


def database_connections(server: Server, database: str) -> int:
    """How many connections to a SQLite database a process holds."""
    return open_files(server.pid).count(database)


async def test_idle_clients_hold_no_database_connection(
    serve: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
    connect: Callable[..., Any],
    unique: str,
) -> None:
    made = environment(tmp_path_factory, "strange")
    database = os.path.realpath(made["TEST_DATABASE"])
    server = serve(environment=made, **OPTIONS)
    username, _ = create_user(server, unique)
    visitor = Visitor(server, username)

    clients = [
        await connect(server, user=None, additional_headers=visitor.headers) for _ in range(CLIENTS)
    ]
    for client in clients:
        await client.result("rpc", {"method": "room.members", "data": unique})
        await client.result("subscribe", {"channel": f"stock:{unique}"})  # asks a coroutine

    wait_until(lambda: database_connections(server, database) == 0, what="no connection is left")
    for client in clients:
        await client.call("ping")


async def test_working_hook_holds_one(
    serve: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
    connect: Callable[..., Any],
) -> None:
    """So the count of the test above counts."""
    made = environment(tmp_path_factory, "strange")
    database = os.path.realpath(made["TEST_DATABASE"])
    server = serve(environment=made, **OPTIONS)
    client = await connect(server)

    waiting = await client.send("rpc", {"method": "use.database", "data": 0.5})

    wait_until(lambda: database_connections(server, database) == 1, what="the connection")
    assert (await client.reply(waiting))["result"] == {"data": True}
    wait_until(lambda: database_connections(server, database) == 0, what="no connection is left")
