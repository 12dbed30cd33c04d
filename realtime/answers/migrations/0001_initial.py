from __future__ import annotations

import uuid

import django.utils.timezone
from django.db import migrations, models

STATUSES = ("waiting", "queued", "streaming", "complete", "stopped", "failed", "interrupted")


class Migration(migrations.Migration):
    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("channel", models.CharField(max_length=255)),
                ("user", models.CharField(blank=True, default="", max_length=255)),
                ("form", models.CharField(max_length=8)),
                (
                    "status",
                    models.CharField(
                        choices=[(each, each.title()) for each in STATUSES],
                        default="queued",
                        max_length=12,
                    ),
                ),
                ("busy", models.CharField(editable=False, max_length=64, null=True, unique=True)),
                (
                    "producer",
                    models.CharField(blank=True, default="", editable=False, max_length=32),
                ),
                ("text", models.TextField(blank=True, default="")),
                ("parts", models.JSONField(blank=True, default=list)),
                ("position", models.BigIntegerField(default=0, editable=False)),
                (
                    "epoch",
                    models.CharField(blank=True, default="", editable=False, max_length=255),
                ),
                ("error", models.TextField(blank=True, default="")),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("queued", models.DateTimeField(editable=False, null=True)),
                ("ended", models.DateTimeField(editable=False, null=True)),
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
