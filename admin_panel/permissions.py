"""The permissions of the panel. Operators have them: see `operators`.

    realtime_admin.view                  open the pages that show the service
    realtime_admin.publish               publish into any channel
    realtime_admin.publish_<namespace>   publish into the channels of one namespace
    realtime_admin.disconnect            disconnect a user
    realtime_admin.unsubscribe           unsubscribe a user
    realtime_admin.block                 block and unblock a user
    realtime_admin.trace                 follow the frames of a user
    realtime_admin.remove_history        remove the history of a channel
    realtime_admin.manage_pending        retry or drop durable publications that were refused

Superusers have all of them. Channels without a namespace need `publish`.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.db import DEFAULT_DB_ALIAS, router

from realtime.config import sources

APP_LABEL = "realtime_admin"
CODENAME_MAX_LENGTH = 100
"""Limit of Django's Permission. A namespace with a longer name gets no permission of its own."""


def codename(namespace: str) -> str:
    """Return the codename of the permission to publish into a namespace."""
    return f"publish_{namespace}"


def create_for_namespaces(sender: AppConfig, using: str = DEFAULT_DB_ALIAS, **signal: Any) -> None:
    """Create the missing permissions of the configured namespaces, after `migrate`.

    Permissions of removed namespaces stay: the namespace may return, and until then they allow
    nothing.
    """
    # `flush` sends no apps: there is no migration, and the models are the current ones
    apps = signal.get("apps", global_apps)
    try:
        publication = apps.get_model(APP_LABEL, "Publication")
        content_types = apps.get_model("contenttypes", "ContentType")
        permissions = apps.get_model("auth", "Permission")
    except LookupError:
        return  # the migration stopped before these models
    if not router.allow_migrate_model(using, permissions):
        return
    # the app of content types may be migrated after this one
    content_type, _ = content_types.objects.using(using).get_or_create(
        app_label=APP_LABEL, model=publication._meta.model_name
    )
    codenames = {name: codename(name) for name in sources.current().namespaces}
    permissions.objects.using(using).bulk_create(
        (
            permissions(
                content_type=content_type,
                codename=word,
                name=f"Can publish into channels of {name}",
            )
            for name, word in codenames.items()
            if len(word) <= CODENAME_MAX_LENGTH
        ),
        ignore_conflicts=True,
    )
