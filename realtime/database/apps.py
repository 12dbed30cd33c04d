"""The Django app that creates the tables of the PostgreSQL engine."""

from __future__ import annotations

from django.db.models.signals import post_migrate

from realtime.config import parts


class DatabaseConfig(parts.Part):
    """Creates the tables at the end of `migrate`."""

    name = "realtime.database"
    label = "realtime_database"
    verbose_name = "Realtime: tables of the PostgreSQL engine"

    def ready(self) -> None:
        """Have `migrate` create the tables."""
        super().ready()
        from realtime.database.creating import after_migrate

        post_migrate.connect(after_migrate, sender=self)
