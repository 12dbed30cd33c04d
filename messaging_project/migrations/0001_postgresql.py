"""What the site needs in PostgreSQL: the tables of the engine, and of the cache."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.db import migrations

from realtime.engine.postgresql import schema


def create(apps: Any, editor: Any) -> None:
    """Create the tables, where the database is PostgreSQL."""
    if editor.connection.vendor == "postgresql":
        with editor.connection.cursor() as cursor:
            schema.create(cursor)
        call_command("createcachetable", database=editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    """Runs on any database, and does nothing on others."""

    dependencies = ()
    operations = (migrations.RunPython(create, migrations.RunPython.noop),)
