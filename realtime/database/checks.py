"""The check that the database of the engine has its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config import site_databases, sources
from realtime.database.creating import foreign_encoding, is_current
from realtime.engine.postgresql import schema


def check_tables(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """W066: with `--database`: the tables of the PostgreSQL engine are missing there, or another
    version created them, or the encoding is not UTF8.
    """
    config = sources.configuration.examine().config
    database = site_databases.engine_database(config)
    if database is None or database not in (databases or ()):
        return []
    if is_current(database, config.database_schema):
        return []
    if encoding := foreign_encoding(database):
        return [
            checks.Warning(
                f"{database!r}: {schema.NEEDS_UTF8.format(encoding)}.",
                hint="Create a database with ENCODING 'UTF8' TEMPLATE template0.",
                id="realtime.W066",
            )
        ]
    return [
        checks.Warning(
            f"The database {database!r} lacks the tables of the PostgreSQL engine, or another"
            " version created them.",
            hint=f"{schema.HINT}.",
            id="realtime.W066",
        )
    ]
