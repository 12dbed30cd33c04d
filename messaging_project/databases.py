"""The database of the site: a file of SQLite, or a PostgreSQL."""

from __future__ import annotations

from pathlib import Path


def database(place: str, file: Path) -> dict[str, object]:
    """Return the entry of DATABASES.

    Args:
        place: a URL postgresql://, as libpq takes it, or the name of a file; "": `file`.
        file: of SQLite.

    Raises:
        ImportError: psycopg is not installed, and the place is a URL.
        psycopg.ProgrammingError: the URL has mistakes.
    """
    if not place.startswith(("postgresql://", "postgres://")):
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": place or file,
            # a transaction that reads first waits for other writers, too: else SQLite refuses it
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        }
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(place)
    own = {
        name: parts.pop(of_libpq, "")
        for name, of_libpq in (
            *(("NAME", "dbname"), ("USER", "user"), ("PASSWORD", "password")),
            *(("HOST", "host"), ("PORT", "port")),
        )
    }
    return {"ENGINE": "django.db.backends.postgresql", **own, "OPTIONS": parts}
