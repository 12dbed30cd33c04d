"""The tables of the PostgreSQL engine: `migrate` creates them, and takes up those of a version."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.test import override_settings

from realtime.checks import TAG
from realtime.engine.base import Outgoing
from realtime.engine.postgresql import schema
from realtime.engine.postgresql.engine import Addresses, PostgreSQLEngine, PostgreSQLStore
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication
from realtime.serving import run_by_hand
from tests.database_server import foreign_database
from tests.engine.bench import KEPT, RecordingReceiver
from tests.engine.postgresql_bench import address_of
from tests.live.tools.command import call
from tests.site_database import SITE, SiteDatabase
from tests.unit.parts import data

pytest_plugins = ["tests.database_fixtures"]

CREATING = "Creating the tables of the PostgreSQL engine"


def tables(database: SiteDatabase) -> set[str]:
    query = (
        f"SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{database.schema}')"
    )
    return {name for (name,) in database.execute(query)}


def warned(database: str) -> bool:
    return "realtime.W066" in [each.id for each in run_checks(tags=[TAG], databases=[database])]


class NoTables:
    """A router that refuses the app."""

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        return False if app_label == "realtime_database" else None


def test_migrate_creates_the_tables_once(site_database: SiteDatabase) -> None:
    assert warned(SITE)
    assert CREATING in site_database.migrate()
    assert {"stream", "entry", "presence"} <= tables(site_database)
    assert not warned(SITE)
    assert CREATING not in site_database.migrate()


def test_engine_that_is_chosen_after_the_migrations_gets_its_tables(
    site_database: SiteDatabase,
) -> None:
    site_database.override(engine="memory", database="", database_schema="django_realtime")
    site_database.migrate()
    assert tables(site_database) == set()
    assert not warned(SITE)

    site_database.override()
    assert CREATING in site_database.migrate()
    assert "stream" in tables(site_database)


def test_functions_of_another_version_are_replaced_and_rows_stay(
    site_database: SiteDatabase,
) -> None:
    site_database.migrate()
    site_database.execute("INSERT INTO {schema}.setting VALUES ('kept', '1')")
    site_database.execute("UPDATE {schema}.setting SET value = 'older' WHERE name = 'version'")
    site_database.execute("DROP FUNCTION {schema}.news")
    assert warned(SITE)

    assert CREATING in site_database.migrate()

    assert not warned(SITE)
    rows = dict(site_database.execute("SELECT name, value FROM {schema}.setting"))
    assert rows == {"kept": "1", "version": schema.version()}
    functions = "SELECT count(*) FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace"
    assert site_database.execute(f"{functions} AND proname = 'news'") == [(1,)]


def test_tables_that_a_migration_of_the_site_created_are_taken_up(
    site_database: SiteDatabase,
) -> None:
    with site_database.server.connect() as connection:
        schema.create(connection, site_database.schema)
    assert not warned(SITE)
    assert CREATING not in site_database.migrate()


def test_database_that_is_not_utf8_is_refused(site_database: SiteDatabase) -> None:
    with foreign_database(site_database.server, "SQL_ASCII"):
        connections[SITE].settings_dict["NAME"] = "SQL_ASCII"
        with pytest.raises(DatabaseError, match=r"SQL_ASCII.*needs UTF8"):
            site_database.migrate()
        found = run_checks(tags=[TAG], databases=[SITE])
        connections[SITE].close()
    (warning,) = [each for each in found if each.id == "realtime.W066"]
    assert "SQL_ASCII" in warning.msg
    assert "migrate" not in (warning.hint or "")


def test_router_may_refuse(site_database: SiteDatabase) -> None:
    with override_settings(DATABASE_ROUTERS=[NoTables()]):
        site_database.migrate()
    assert tables(site_database) == set()


def test_other_databases_get_no_tables(site_database: SiteDatabase) -> None:
    site_database.override(database="default")
    site_database.migrate()
    assert tables(site_database) == set()


@pytest.mark.django_db(transaction=True)
def test_database_without_an_alias_is_left_to_the_command(
    site_database: SiteDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    port = site_database.server.port
    url = f"postgresql://postgres:hidden@127.0.0.1:{port}/postgres"
    site_database.override(database_url=url, database="")
    call_command("migrate", "realtime_pending", database="default")
    assert "manage.py realtime tables" in capsys.readouterr().out
    assert tables(site_database) == set()

    sql = call("tables", "--sql")
    assert tables(site_database) == set()
    assert "CREATE SCHEMA" in sql

    said = call("tables")
    assert "stream" in tables(site_database)
    assert "hidden" not in said


def test_command_refuses_an_engine_without_tables() -> None:
    with pytest.raises(CommandError, match="not postgresql"):
        call("tables")


def test_two_processes_create_at_once(site_database: SiteDatabase) -> None:
    failures: list[Exception] = []

    def create() -> None:
        try:
            with site_database.server.connect() as connection:
                schema.create(connection, site_database.schema)
        except psycopg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert "stream" in tables(site_database)


GRANTS = """
GRANT USAGE ON SCHEMA {schema} TO {user};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {user};
"""
"""docs/postgresql.md"""


async def test_user_who_serves_needs_no_right_to_create(
    site_database: SiteDatabase, unique: str
) -> None:
    with site_database.server.connect() as connection:
        schema.create(connection, site_database.schema)
    user = f"serving_{unique.replace('-', '_')}"
    site_database.execute(f'CREATE ROLE "{user}" LOGIN')
    address = address_of(site_database.server, site_database.schema)
    address = address._replace(parameters={**address.parameters, "user": user})
    engine = PostgreSQLEngine(Addresses(address, address))
    with pytest.raises(EngineUnavailable, match="permission denied"):
        await engine.start(RecordingReceiver(), "N1")

    for grant in GRANTS.strip().splitlines():
        site_database.execute(grant.replace("{user}", f'"{user}"'))
    engine = PostgreSQLEngine(Addresses(address, address))
    await engine.start(RecordingReceiver(), "N1")
    store = PostgreSQLStore(Addresses(address, address))
    try:
        publication = Outgoing("news", Publication(data("1"), uid="u"), KEPT)
        published = run_by_hand(store.broker.publish(publication))
        assert published.position is not None
        await engine.presence.add("news", [ClientInfo("7", "C1")], 60)
        assert [*await engine.presence.get("news")] == ["C1"]
        await engine.broker.subscribe("news")
        partitions = {name for name in tables(site_database) if name.startswith("entry_")}
        assert len([name for name in partitions if not name.endswith("key")]) >= 4
    finally:
        await engine.stop()
        store.close()
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege),
        psycopg.connect(**address.options()) as connection,
    ):
        connection.execute(f'CREATE TABLE "{site_database.schema}".mine ()')
    site_database.execute(f'DROP OWNED BY "{user}"')
    site_database.execute(f'DROP ROLE "{user}"')
