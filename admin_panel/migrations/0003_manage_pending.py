"""The permission for the page of durable publications."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("realtime_admin", "0002_panel"),)

    operations = (
        migrations.AlterModelOptions(
            name="publication",
            options={
                "default_permissions": (),
                "managed": False,
                "permissions": (
                    ("publish", "Can publish into channels"),
                    ("manage_pending", "Can retry and drop durable publications that were refused"),
                ),
                "verbose_name": "publication",
                "verbose_name_plural": "publications",
            },
        ),
    )
