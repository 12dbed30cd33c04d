"""The permissions of the panel. Every view and every template checks them here.

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

from typing import Any, Protocol

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.contrib.auth import get_permission_codename, get_user_model
from django.db import DEFAULT_DB_ALIAS, router

from realtime.channel_rules import namespace_of
from realtime.config import sources
from realtime.config.reader import InvalidOptions

APP_LABEL = "realtime_admin"
CODENAME_MAX_LENGTH = 100
"""Limit of Django's Permission. A namespace with a longer name gets no permission of its own."""


class Holder(Protocol):
    """A holder of permissions: a Django user, or a user of a similar backend."""

    def has_perm(self, perm: str, /) -> bool:
        """Return whether this user has a permission, "app_label.codename"."""
        ...


def may_view(user: Holder) -> bool:
    """Return whether a user may open the pages that show nodes, channels, users and options."""
    return _has(user, "view")


def may_publish(user: Holder, channel: str) -> bool:
    """Return whether a user may publish into a channel."""
    if _has(user, "publish"):
        return True
    namespace = namespace_of(channel, sources.current())
    return bool(namespace) and _has(user, codename(namespace))


def may_publish_somewhere(user: Holder) -> bool:
    """Return whether there is any channel that a user may publish into.

    The admin's login and index ask, also where the options have mistakes.
    """
    if _has(user, "publish"):
        return True
    try:
        namespaces = sources.current().namespaces
    except InvalidOptions:
        return False
    return any(_has(user, codename(namespace)) for namespace in namespaces)


def may_disconnect(user: Holder) -> bool:
    """Return whether a user may disconnect users of the service."""
    return _has(user, "disconnect")


def may_unsubscribe(user: Holder) -> bool:
    """Return whether a user may unsubscribe users of the service."""
    return _has(user, "unsubscribe")


def may_block(user: Holder) -> bool:
    """Return whether a user may block and unblock users of the service."""
    return _has(user, "block")


def may_trace(user: Holder) -> bool:
    """Return whether a user may follow the frames of users of the service."""
    return _has(user, "trace")


def may_find_people(user: Holder) -> bool:
    """Return whether a user may look for users of the site: as in the admin, to view them."""
    options = get_user_model()._meta
    return user.has_perm(f"{options.app_label}.{get_permission_codename('view', options)}")


def may_remove_history(user: Holder) -> bool:
    """Return whether a user may remove the history of channels."""
    return _has(user, "remove_history")


def may_manage_pending(user: Holder) -> bool:
    """Return whether a user may retry and drop durable publications that were refused."""
    return _has(user, "manage_pending")


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


def _has(user: Holder, word: str) -> bool:
    return user.has_perm(f"{APP_LABEL}.{word}")
