"""The tables and functions of the engine: SQL files, and the way they are created.

The files may run again: they keep the tables, and replace the functions. A table whose rows
heartbeats write again is UNLOGGED.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Protocol

DEFAULT_SCHEMA = "django_realtime"

_DIRECTORY = Path(__file__).parent / "sql"
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
    files = sorted(_DIRECTORY.glob("*.sql"), key=lambda path: (path.stem != _GROUND, path.stem))
    text = "\n".join(path.read_text() for path in files)
    return text.replace("{schema}", quoted(schema))


def create(connection: Executes, schema: str = DEFAULT_SCHEMA) -> None:
    """Create the tables and functions, in a transaction of their own or of the caller."""
    connection.execute(statements(schema))
