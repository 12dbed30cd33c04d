"""A database that a site in this process and its engine share."""

from __future__ import annotations

from io import StringIO
from typing import Any

from django.core.management import call_command

from realtime.config import sources
from realtime.engine.postgresql.schema import quoted
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
        sources.configuration.override(**self.options | others)

    def migrate(self, app: str = "realtime_pending") -> str:
        """Run `migrate`. Return what it writes."""
        written = StringIO()
        call_command("migrate", app, database=SITE, stdout=written, no_color=True)
        return written.getvalue()

    def execute(self, query: str) -> list[Any]:
        """Run a statement; `{schema}` stands for the schema of the engine. Return its rows."""
        with self.server.connect() as connection:
            cursor = connection.execute(query.replace("{schema}", quoted(self.schema)))
            return list(cursor.fetchall()) if cursor.description else []
