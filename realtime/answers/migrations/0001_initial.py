from __future__ import annotations

import uuid

from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="Answer",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("channel", models.CharField(max_length=255)),
                ("user", models.CharField(default="", max_length=255)),
                ("form", models.CharField(max_length=8)),
                ("status", models.CharField(default="queued", max_length=12)),
                ("busy", models.CharField(max_length=64, null=True, unique=True)),
                ("producer", models.CharField(default="", max_length=32)),
                ("text", models.TextField(default="")),
                ("parts", models.JSONField(default=list)),
                ("position", models.BigIntegerField(default=0)),
                ("epoch", models.CharField(default="", max_length=255)),
                ("error", models.TextField(default="")),
                ("created", models.DateTimeField(default=timezone.now)),
                ("queued", models.DateTimeField(default=timezone.now)),
                ("ended", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "realtime_answer",
                "indexes": [
                    models.Index(fields=["status", "ended"], name="realtime_answer_status"),
                    models.Index(fields=["channel", "created"], name="realtime_answer_channel"),
                    models.Index(fields=["user", "status"], name="realtime_answer_user"),
                ],
            },
        ),
    )
