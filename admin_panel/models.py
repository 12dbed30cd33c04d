"""What the panel needs of Django's models: a permission, and a name in the admin's log."""

from __future__ import annotations

from django.db import models


class Publication(models.Model):
    """A publication by an operator. There is no table: the service keeps publications.

    The model gives the permission `realtime_admin.publish`, the entries of the admin's
    log and the panel's page in the admin something to refer to.
    """

    channel = models.CharField(primary_key=True, max_length=255)

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (("publish", "Can publish into channels"),)
        verbose_name = "publication"
        verbose_name_plural = "publish"  # the label of the page in the admin's index

    def __str__(self) -> str:
        return self.channel
