"""The databases of the site, as the PostgreSQL engine uses them."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

from realtime.config.database_options import uses_postgresql
from realtime.config.options import Config

_OF_DJANGO = ("prepare_threshold", "server_side_binding", "isolation_level", "autocommit")
"""Parameters of a connection of Django that the engine has for itself."""


def engine_database(config: Config) -> str | None:
    """Return the alias in DATABASES that the engine uses; None if the engine uses no alias."""
    is_named = uses_postgresql(config) and not config.database_url
    return (config.database or DEFAULT_DB_ALIAS) if is_named else None


def database_parameters(alias: str, pooled: bool = False) -> dict[str, Any]:
    """Return the parameters of libpq for an entry of DATABASES; "": the default one.

    Args:
        pooled: behind a pooler, which passes no role on.

    Raises:
        ImproperlyConfigured: it is none, or of another database.
    """
    connection = connections[alias or DEFAULT_DB_ALIAS]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(
            f"The engine is PostgreSQL, and the database {connection.alias!r} is"
            f" {connection.vendor}."
        )
    parameters = connection.get_connection_params()
    found = {
        name: value
        for name, value in parameters.items()
        if isinstance(value, str | int) and name not in _OF_DJANGO
    }
    role = connection.settings_dict["OPTIONS"].get("assume_role")
    if role and not pooled:
        # libpq divides options at spaces
        escaped = re.sub(r"([\\\s])", r"\\\1", role)
        found["options"] = f"{found.get('options', '')} -c role={escaped}".strip()
    return found
