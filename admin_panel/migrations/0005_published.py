"""A table: where the publications of operators are in their channels."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("admin", "0001_initial"),
        ("realtime_admin", "0004_block_and_trace"),
    )

    operations = (
        migrations.CreateModel(
            name="Published",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("stream", models.CharField(max_length=64)),
                ("offset", models.BigIntegerField()),
                (
                    "entry",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="admin.logentry",
                    ),
                ),
            ],
            options={
                "verbose_name": "position of a publication",
                "verbose_name_plural": "positions of publications",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["stream", "offset"], name="realtime_published_stream")
                ],
            },
        ),
    )
