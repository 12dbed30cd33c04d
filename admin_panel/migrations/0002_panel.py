"""The panel's permissions. None of the models has a table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("realtime_admin", "0001_publish_permission"),)

    operations = (
        migrations.AlterModelOptions(
            name="publication",
            options={
                "default_permissions": (),
                "managed": False,
                "permissions": (("publish", "Can publish into channels"),),
                "verbose_name": "publication",
                "verbose_name_plural": "publications",
            },
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "channel",
                "verbose_name_plural": "channels",
                "permissions": (
                    ("view", "Can see nodes, channels, users and options in the panel"),
                    ("remove_history", "Can remove the history of channels"),
                ),
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Connection",
            fields=[
                ("user", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "connections of user",
                "verbose_name_plural": "connections of users",
                "permissions": (
                    ("disconnect", "Can disconnect users"),
                    ("unsubscribe", "Can unsubscribe users from channels"),
                ),
                "managed": False,
                "default_permissions": (),
            },
        ),
    )
