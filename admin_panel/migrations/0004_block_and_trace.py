"""The permissions to block users, and to follow their frames."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("realtime_admin", "0003_manage_pending"),)

    operations = (
        migrations.AlterModelOptions(
            name="connection",
            options={
                "default_permissions": (),
                "managed": False,
                "permissions": (
                    ("disconnect", "Can disconnect users"),
                    ("unsubscribe", "Can unsubscribe users from channels"),
                    ("block", "Can block and unblock users"),
                    ("trace", "Can follow the frames of users"),
                ),
                "verbose_name": "connections of user",
                "verbose_name_plural": "connections of users",
            },
        ),
    )
