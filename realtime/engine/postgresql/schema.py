"""The tables and functions of the engine: SQL files, and the way they are created.

The files may run again: they keep the tables, and replace the functions. A table whose rows
heartbeats write again is UNLOGGED. The table `setting` has the version: a digest of the files.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Protocol

DEFAULT_SCHEMA = "django_realtime"

HINT = (
    'Add "realtime.database" to INSTALLED_APPS and run manage.py migrate, or run'
    " manage.py realtime tables"
)
"""How the tables are created, and how the functions of another version are replaced."""

NEEDS_UTF8 = "the database has the encoding {}, and the engine needs UTF8"
"""As `sql/ground.sql` says it, too."""

VERSION = "SELECT value FROM {schema}.setting WHERE name = 'version'"

_DIRECTORY = Path(__file__).parent / "sql"
_SET_VERSION = (
    "INSERT INTO {{schema}}.setting VALUES ('version', '{}')"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
)
_GROUND = "ground"
"""The name of the file that the others stand on."""


class Executes(Protocol):
    """A connection or a cursor to PostgreSQL, as psycopg and Django have it."""

    def execute(self, query: str, /) -> Any: ...


def quoted(schema: str) -> str:
    """Return the name of a schema as SQL has it."""
    return '"{}"'.format(schema.replace('"', '""'))


@cache
def statements(schema: str) -> str:
    """Return the SQL that creates all tables and functions, and changes the older ones."""
    return f"{_files()}\n{_SET_VERSION.format(version())}".replace("{schema}", quoted(schema))


@cache
def version() -> str:
    """Return the version of the tables and functions that this code uses."""
    return hashlib.sha256(_files().encode()).hexdigest()[:16]


@cache
def _files() -> str:
    files = sorted(_DIRECTORY.glob("*.sql"), key=lambda path: (path.stem != _GROUND, path.stem))
    return "\n".join(path.read_text() for path in files)


def create(connection: Executes, schema: str = DEFAULT_SCHEMA) -> None:
    """Create the tables and functions, in a transaction of their own or of the caller."""
    connection.execute(statements(schema))


def is_current(cursor: Any, schema: str) -> bool:
    """Return whether this version created the tables and functions.

    Raises:
        Exception: of the driver: they are missing.
    """
    cursor.execute(VERSION.replace("{schema}", quoted(schema)))
    return bool(cursor.fetchone() == (version(),))
