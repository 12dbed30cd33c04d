import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The permissions belong to models without a table."""

    initial = True
    dependencies = (("admin", "0001_initial"),)
    replaces = (
        ("realtime_admin", "0001_publish_permission"),
        ("realtime_admin", "0002_panel"),
        ("realtime_admin", "0003_manage_pending"),
        ("realtime_admin", "0004_block_and_trace"),
        ("realtime_admin", "0005_published"),
    )
    operations = (
        migrations.CreateModel(
            name="Publication",
            fields=[
                ("channel", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "publication",
                "verbose_name_plural": "publications",
                "permissions": (
                    ("publish", "Can publish into channels"),
                    ("manage_pending", "Can retry and drop durable publications that were refused"),
                ),
                "managed": False,
                "default_permissions": (),
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
                    ("block", "Can block and unblock users"),
                    ("trace", "Can follow the frames of users"),
                ),
                "managed": False,
                "default_permissions": (),
            },
        ),
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
