"""Models for permissions, and for the entries of the admin's log.

`Publication`, `Channel` and `Connection` have no tables. `Published` says where the publications of
an entry are.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Publication(models.Model):
    """A publication by an operator.

    The permission `publish` is for all channels. `permissions.create_for_namespaces` creates one
    more for each namespace.
    """

    channel = models.CharField(primary_key=True, max_length=255)

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (
            ("publish", "Can publish into channels"),
            ("manage_pending", "Can retry and drop durable publications that were refused"),
        )
        verbose_name = _("publication")
        verbose_name_plural = _("publications")

    def __str__(self) -> str:
        return self.channel


class Channel(models.Model):
    """A channel."""

    name = models.CharField(primary_key=True, max_length=255)

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (
            ("view", "Can see nodes, channels, users and options in the panel"),
            ("remove_history", "Can remove the history of channels"),
        )
        verbose_name = _("channel")
        verbose_name_plural = _("channels")

    def __str__(self) -> str:
        return self.name


class Connection(models.Model):
    """The connections of one user ID."""

    user = models.CharField(primary_key=True, max_length=255)

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (
            ("disconnect", "Can disconnect users"),
            ("unsubscribe", "Can unsubscribe users from channels"),
            ("block", "Can block and unblock users"),
            ("trace", "Can follow the frames of users"),
        )
        verbose_name = _("connections of user")
        verbose_name_plural = _("connections of users")

    def __str__(self) -> str:
        return self.user


class Published(models.Model):
    """Where a publication of an operator is in the stream of its channel."""

    id = models.BigAutoField(primary_key=True)
    # without a constraint: the log may be in another database, and be emptied by other programs
    entry = models.ForeignKey(
        "admin.LogEntry", models.CASCADE, related_name="+", db_constraint=False
    )
    stream = models.CharField(max_length=64)
    """Digest of the channel and of the epoch: names and epochs may be too long for an index."""
    offset = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        indexes = (models.Index(fields=("stream", "offset"), name="realtime_published_stream"),)
        verbose_name = _("position of a publication")
        verbose_name_plural = _("positions of publications")

    def __str__(self) -> str:
        return f"#{self.offset}"
