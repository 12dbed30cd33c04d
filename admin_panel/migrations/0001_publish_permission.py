"""The permission to publish. The model has no table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = (
        migrations.CreateModel(
            name="Publication",
            fields=[
                ("channel", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "publication",
                "verbose_name_plural": "publish",
                "permissions": (("publish", "Can publish into channels"),),
                "managed": False,
                "default_permissions": (),
            },
        ),
    )
