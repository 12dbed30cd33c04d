"""Connections where servers change their roles: one that takes no writes, one that vanished."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from realtime.engine.postgresql.database import Address, BlockingDatabase, Database, LoopDatabase
from realtime.errors import EngineUnavailable, NoReply
from tests.database_server import DatabaseServer
from tests.engine.postgresql_bench import address_of

Open = Callable[[Address], Database]


@pytest.fixture(params=[LoopDatabase, BlockingDatabase])
async def open_database(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Open a database of each kind."""
    opened: list[LoopDatabase | BlockingDatabase] = []

    def start(address: Address) -> Database:
        opened.append(request.param(address))
        return opened[-1]

    yield start
    for database in opened:
        closing = database.close()
        if closing is not None:
            await closing


@pytest.fixture
def address(postgresql_server: DatabaseServer) -> Address:
    return address_of(postgresql_server, "no_schema")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_server_that_takes_no_writes_is_not_used(
    postgresql_server: DatabaseServer, address: Address, open_database: Open, unique: str
) -> None:
    with postgresql_server.connect() as connection:
        connection.execute(f"CREATE ROLE {unique} LOGIN")
        connection.execute(f"ALTER ROLE {unique} SET default_transaction_read_only = on")
    database: Database = open_database(
        address._replace(parameters={**address.parameters, "user": unique})
    )

    with pytest.raises(EngineUnavailable) as caught:
        await database.fetch("SELECT 1")
    assert not isinstance(caught.value, NoReply)

    with postgresql_server.connect() as connection:
        connection.execute(f"ALTER ROLE {unique} RESET default_transaction_read_only")
    assert await database.fetch("SELECT 1") == [(1,)]


async def test_host_that_vanished_does_not_hide_the_next_one(
    address: Address, open_database: Open, silent_port: int
) -> None:
    two = {
        **address.parameters,
        "host": "127.0.0.1,127.0.0.1",
        "port": f"{silent_port},{address.parameters['port']}",
    }
    database: Database = open_database(address._replace(parameters=two))

    assert await database.fetch("SELECT 1") == [(1,)]
