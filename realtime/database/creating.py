"""What follows `migrate`: the tables of the engine, if they are missing or of another version."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, router, transaction

from realtime.config import site_databases
from realtime.config.database_options import uses_postgresql
from realtime.engine.postgresql import schema
from realtime.serving import serving

LABEL = "realtime_database"


def after_migrate(using: str, verbosity: int = 1, stdout: TextIO | None = None, **_: Any) -> None:
    """Create the tables in the database that was migrated, if the engine uses it.

    A router may refuse: `allow_migrate(using, "realtime_database")`.

    Raises:
        DatabaseError: the user may not, the encoding is not UTF8, or PostgreSQL is away.
    """
    config = serving.config()
    database = site_databases.engine_database(config)
    write = (stdout or sys.stdout).write
    if database is None:
        if uses_postgresql(config) and using == DEFAULT_DB_ALIAS and verbosity:
            write(
                "  realtime.database: database_url is in no entry of DATABASES. Create its tables"
                " with: manage.py realtime tables\n"
            )
        return
    if using != database or connections[using].vendor != "postgresql":
        return
    name = config.database_schema
    if not router.allow_migrate(using, LABEL) or is_current(using, name):
        return
    if verbosity:
        write(f"  Creating the tables of the PostgreSQL engine in {name}\n")
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        schema.create(cursor, name)


def is_current(using: str, name: str) -> bool:
    """Return whether a database has the tables and functions of this version, in a schema."""
    try:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            return schema.is_current(cursor, name)
    except DatabaseError:  # there are none
        return False


def foreign_encoding(using: str) -> str:
    """Return the encoding of a database that answers and is not UTF8; "" otherwise."""
    query = "SELECT s FROM current_setting('server_encoding') AS s WHERE s <> 'UTF8'"
    try:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            cursor.execute(query)
            return str((cursor.fetchone() or ("",))[0])
    except DatabaseError:
        return ""
