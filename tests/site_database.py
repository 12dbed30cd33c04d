"""A database that a site in this process and its engine share."""

from __future__ import annotations

from io import StringIO
from typing import Any

from django.core.management import call_command

from realtime.config import sources
from realtime.engine.postgresql.database import BlockingDatabase
from realtime.engine.postgresql.schema import quoted
from realtime.engine.postgresql.streams import PostgreSQLStreams
from realtime.serving import serving
from tests.database_server import DatabaseServer

SITE = "site"
"""The alias of the database that site and engine share."""


class SiteDatabase:
    """An alias of Django in this process, at the PostgreSQL of the engine."""

    alias = SITE

    def __init__(self, server: DatabaseServer, schema: str) -> None:
        self.server = server
        self.schema = schema
        self.options: dict[str, Any] = {
            "engine": "postgresql",
            "database": SITE,
            "database_schema": schema,
            "namespaces": [{"name": "orders", "history_size": 1000, "history_lifetime": 300}],
        }

    def override(self, **others: Any) -> None:
        """Set the options of this process."""
        self.close()
        sources.configuration.override(**self.options | others)

    def close(self) -> None:
        """Close the connections of the engine in this process."""
        for member in serving._members.values():
            if isinstance(member.broker, PostgreSQLStreams):
                database = member.broker._database
                assert isinstance(database, BlockingDatabase)
                database.close()

    def migrate(self, app: str = "realtime_pending") -> str:
        """Run `migrate`. Return what it writes."""
        written = StringIO()
        call_command("migrate", app, database=SITE, stdout=written, no_color=True)
        return written.getvalue()

    def keep_house(self) -> None:
        """Create the partitions of these days."""
        self.execute("SELECT {schema}.keep_house(8, 'e', true)")

    def execute(self, query: str) -> list[Any]:
        """Run a statement; `{schema}` stands for the schema of the engine. Return its rows."""
        with self.server.connect() as connection:
            cursor = connection.execute(query.replace("{schema}", quoted(self.schema)))
            return list(cursor.fetchall()) if cursor.description else []
