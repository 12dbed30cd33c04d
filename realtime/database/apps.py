"""The Django app that creates the tables of the PostgreSQL engine."""

from __future__ import annotations

from django.core import checks
from django.db.models.signals import post_migrate

from realtime.config import parts


class DatabaseConfig(parts.Part):
    """Creates the tables at the end of `migrate`; see the package."""

    name = "realtime.database"
    label = "realtime_database"
    verbose_name = "Realtime: tables of the PostgreSQL engine"

    def ready(self) -> None:
        """Have `migrate` create the tables, and pages read positions in their snapshots."""
        super().ready()
        from realtime.database.checks import check_tables
        from realtime.database.creating import after_migrate
        from realtime.database.snapshots import positions
        from realtime.serving import serving

        checks.register(check_tables, checks.Tags.database, "realtime")
        post_migrate.connect(after_migrate, sender=self)
        serving.snapshot = positions
