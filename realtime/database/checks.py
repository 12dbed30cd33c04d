"""The check that the database of the engine has its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config import sources
from realtime.database.creating import is_current
from realtime.engine.postgresql import schema


def check_tables(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """W066: with `--database`: the tables of the PostgreSQL engine are missing there, or another
    version created them.
    """
    config = sources.configuration.examine().config
    database = sources.engine_database(config)
    if database is None or database not in (databases or ()):
        return []
    if is_current(database, config.database_schema):
        return []
    return [
        checks.Warning(
            f"The database {database!r} lacks the tables of the PostgreSQL engine, or another"
            " version created them.",
            hint=f"{schema.HINT}.",
            id="realtime.W066",
        )
    ]
