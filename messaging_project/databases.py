"""The database of the site: a file of SQLite, or a PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

MISTAKE = "DJANGO_DATABASE has to be a file, or a valid URL postgresql://."


def database(place: str, file: Path) -> dict[str, object]:
    """Return the entry of DATABASES.

    Args:
        place: a URL postgresql://, as libpq takes it, or the name of a file; "": `file`.
        file: of SQLite.

    Raises:
        ImproperlyConfigured: the place is a URL of another database, or has mistakes. The text
            leaves the URL out, which may have a password.
        ImportError: psycopg is not installed, and the place is a URL.
    """
    if not place.startswith(("postgresql://", "postgres://")):
        if "://" in place:
            raise ImproperlyConfigured(MISTAKE)
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": place or file,
            # a transaction that reads first waits for other writers, too: else SQLite refuses it
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        }
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(place)
    except ProgrammingError:
        raise ImproperlyConfigured(MISTAKE) from None
    own = {
        name: parts.pop(of_libpq, "")
        for name, of_libpq in (
            *(("NAME", "dbname"), ("USER", "user"), ("PASSWORD", "password")),
            *(("HOST", "host"), ("PORT", "port")),
        )
    }
    return {"ENGINE": "django.db.backends.postgresql", **own, "OPTIONS": parts}
