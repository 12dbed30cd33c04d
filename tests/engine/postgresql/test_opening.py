"""Engines over PostgreSQL, as the options say."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from typing import Any
from unittest.mock import AsyncMock, Mock

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from psycopg.sql import SQL, Identifier

from realtime.config import site_databases
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Outgoing
from realtime.engine.factory import Engines, answer_timeout, is_shared
from realtime.engine.postgresql.database import (
    Address,
    BlockingDatabase,
    LoopConnection,
    LoopDatabase,
)
from realtime.engine.postgresql.engine import Addresses, PostgreSQLStore
from realtime.engine.postgresql.listening import ListeningEars
from realtime.engine.postgresql.schema import create
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from realtime.serving import run_by_hand
from realtime.tools.doctor import postgresql as doctor
from tests.database_server import DatabaseServer, foreign_database
from tests.engine.bench import KEPT, RecordingReceiver
from tests.engine.postgresql_bench import PostgreSQLBench, address_of
from tests.unit.parts import data, eventually


def config_of(server: DatabaseServer, schema: str, **options: Any) -> Config:
    url = f"postgresql://postgres:secret@127.0.0.1:{server.settings['PORT']}/postgres"
    return Config(engine="postgresql", database_url=url, database_schema=schema, **options)


@pytest.mark.parametrize("way", ["listening", "past a pooler", "polling"])
async def test_thread_and_node_are_one_service(
    postgresql_server: DatabaseServer, unique: str, way: str
) -> None:
    config = config_of(postgresql_server, unique)
    if way == "past a pooler":
        config = dataclasses.replace(config, database_notify_url=config.database_url)
    elif way == "polling":
        config = dataclasses.replace(config, database_poll=0.05)
    with postgresql_server.connect() as connection:
        create(connection, unique)
    receiver, engines = RecordingReceiver(), Engines().of(config)
    engine, store = engines.engine(config), engines.blocking_store(config)
    assert engine is not None
    await engine.start(receiver, "N1")
    await engine.broker.subscribe("news")

    publication = Publication(data("1"), uid="u")
    published = run_by_hand(store.broker.publish(Outgoing("news", publication, KEPT)))

    await eventually(lambda: bool(receiver.publications["news"]))
    assert [position for _, position in receiver.publications["news"]] == [published.position]
    await engine.stop()
    store.close()  # type: ignore[attr-defined]


async def test_site_without_tables_is_told(postgresql_server: DatabaseServer, unique: str) -> None:
    config = config_of(postgresql_server, unique)
    engine = Engines().of(config).engine(config)
    assert engine is not None

    with pytest.raises(EngineUnavailable, match=r"manage\.py realtime tables") as raised:
        await engine.start(RecordingReceiver(), "N1")
    assert "secret" not in str(raised.value)


def test_labels_show_no_password(postgresql_server: DatabaseServer, unique: str) -> None:
    config = config_of(postgresql_server, unique)

    port = postgresql_server.settings["PORT"]
    assert Engines().of(config).labels(config) == [f"127.0.0.1:{port}/postgres"]
    assert is_shared(config)
    assert answer_timeout(config) == 5.0


def test_publications_are_kept_for_as_long_as_the_longest_namespace_says() -> None:
    from realtime.config.database_options import days_kept

    options = ChannelOptions(history_size=1, history_lifetime=90_000)
    assert days_kept(Config()) == 2
    assert days_kept(Config(namespaces={"a": options})) == 3


@pytest.mark.parametrize("alias", ["", "default"])
def test_database_of_another_kind_is_refused(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import connections

    monkeypatch.setattr(type(connections["default"]), "vendor", "sqlite")
    with pytest.raises(ImproperlyConfigured, match="'default' is sqlite"):
        site_databases.database_parameters(alias)


@pytest.mark.parametrize("options", [{}, {"options": "-c work_mem=1MB"}])
def test_engine_assumes_the_role_of_the_site(
    postgresql_server: DatabaseServer, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db.utils import ConnectionHandler

    role = r"a role\with 'odd' $name"
    with postgresql_server.connect() as connection:
        names = [name for (name,) in connection.execute("SELECT rolname FROM pg_roles")]
        if role not in names:
            connection.execute(SQL("CREATE ROLE {}").format(Identifier(role)))
    settings = postgresql_server.settings | {"OPTIONS": {"assume_role": role, **options}}
    monkeypatch.setattr(site_databases, "connections", ConnectionHandler({"default": settings}))

    database = BlockingDatabase(Address(site_databases.database_parameters("")))
    assert run_by_hand(database.fetch("SELECT current_user::text")) == [(role,)]
    memory = run_by_hand(database.fetch("SHOW work_mem"))
    assert (memory == [("1MB",)]) is bool(options)
    assert site_databases.database_parameters("", pooled=True).get("options") == options.get(
        "options"
    )
    database.close()


async def test_connection_that_is_cancelled_on_its_way_to_listen_is_closed(
    postgresql: PostgreSQLBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()
    opened: list[LoopConnection] = []

    async def hang(connection: LoopConnection, _: bytes) -> None:
        opened.append(connection)
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(LoopConnection, "execute", hang)
    ears = ListeningEars(
        LoopDatabase(postgresql.address), AsyncMock(), AsyncMock(), (Mock(), Mock())
    )
    opening = asyncio.ensure_future(ears.open())
    await reached.wait()
    opening.cancel()
    await asyncio.wait([opening])
    assert opened[0].closed


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def encoded(request: pytest.FixtureRequest, postgresql_server: DatabaseServer) -> Iterator[str]:
    """A database whose name is its encoding, which is not UTF8."""
    with foreign_database(postgresql_server, request.param):
        yield request.param


async def test_database_that_is_not_utf8_is_refused(
    postgresql_server: DatabaseServer, unique: str, encoded: str
) -> None:
    address = address_of(postgresql_server, unique)
    address = address._replace(parameters={**address.parameters, "dbname": encoded})
    blocking, refusal = BlockingDatabase(address), f"{encoded}.*needs UTF8"

    with pytest.raises(EngineUnavailable, match=refusal):
        await LoopDatabase(address).fetch("SELECT 1")
    with pytest.raises(EngineUnavailable, match=refusal):
        run_by_hand(blocking.fetch("SELECT 1"))
    with pytest.raises(EngineUnavailable, match=refusal):
        blocking.create_tables()
    with (
        pytest.raises(psycopg.errors.FeatureNotSupported, match=refusal),
        psycopg.connect(**address.options()) as connection,
    ):
        create(connection, unique)


def test_doctor_names_the_encoding(
    postgresql_server: DatabaseServer, unique: str, encoded: str
) -> None:
    config = config_of(postgresql_server, unique)
    url = config.database_url.removesuffix("postgres") + encoded
    (check,) = doctor.checks(dataclasses.replace(config, database_url=url))

    assert encoded in check.run().found


@pytest.mark.parametrize("pooled", [False, True])
async def test_publication_waits_for_another_whatever_the_isolation_of_the_role(
    postgresql: PostgreSQLBench, pooled: bool
) -> None:
    options = r"-c default_transaction_isolation=repeatable\ read"
    address = postgresql.address
    address = address._replace(parameters={**address.parameters, "options": options}, pooled=pooled)
    store = PostgreSQLStore(Addresses(address, address))
    outgoing = Outgoing("news", Publication(data("1")), KEPT)
    await postgresql.broker.publish(outgoing)
    with postgresql.server.connect() as other:
        other.execute(f'UPDATE "{postgresql.prefix}".stream SET top = top + 1')
        publishing = asyncio.to_thread(lambda: run_by_hand(store.broker.publish(outgoing)))
        task = asyncio.create_task(publishing)
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        await eventually(lambda: bool(postgresql.execute(waiting)))

    position = (await task).position
    store.close()
    assert position is not None
    assert position.offset == 3


class Overtaken(LoopDatabase):
    """A database over which two other rings come before each of ours."""

    async def fetch(self, query: str, *arguments: Any) -> list[Any]:
        for _ in range(2):
            await super().fetch("SELECT pg_notify(%s, '1 [7,\"\",[]]')", self.address.schema)
        return await super().fetch(query, *arguments)


async def test_rings_that_arrive_before_a_node_hears_its_own_are_kept(
    postgresql: PostgreSQLBench,
) -> None:
    heard, database = AsyncMock(), Overtaken(postgresql.address)
    ears = ListeningEars(database, heard, AsyncMock(), (Mock(), Mock()))
    await ears.open()
    await eventually(lambda: heard.await_count == 3)
    await ears.close()
    await database.close()

    others = [call.args[0] for call in heard.await_args_list[:2]]
    assert others == [b'1 [7,"",[]]'] * 2
