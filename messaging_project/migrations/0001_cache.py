"""The table of the cache, where the database is PostgreSQL; see `CACHES` in the settings."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.db import migrations


def create(apps: Any, editor: Any) -> None:
    """Create the table."""
    if editor.connection.vendor == "postgresql":
        call_command("createcachetable", database=editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    """Does nothing on other databases."""

    dependencies = ()
    operations = (migrations.RunPython(create, migrations.RunPython.noop),)
