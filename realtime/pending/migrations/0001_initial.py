from __future__ import annotations

import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="Relay",
            fields=[
                ("shard", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("owner", models.CharField(blank=True, default="", max_length=32)),
                ("until", models.DateTimeField(null=True)),
                ("held", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name": "shard of pending publications",
                "verbose_name_plural": "shards of pending publications",
                "db_table": "realtime_pending_relay",
            },
        ),
        migrations.CreateModel(
            name="Pending",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("shard", models.SmallIntegerField()),
                ("channel", models.TextField()),
                ("data", models.TextField()),
                ("extras", models.TextField(blank=True, default="")),
                ("due", models.DateTimeField(null=True)),
                ("created", models.DateTimeField()),
                ("attempts", models.SmallIntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name": "pending publication",
                "verbose_name_plural": "pending publications",
                "db_table": "realtime_pending",
                "indexes": [
                    models.Index(fields=["shard", "due", "id"], name="realtime_pending_due")
                ],
            },
        ),
    )
