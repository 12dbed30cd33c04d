from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="LastSeen",
            fields=[
                ("key", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("user", models.TextField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "user last seen",
                "verbose_name_plural": "users last seen",
                "db_table": "realtime_last_seen",
            },
        ),
    )
