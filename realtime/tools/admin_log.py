"""The admin's log: what an operator does in a terminal and others should know of."""

from __future__ import annotations

import getpass
import platform

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.db import DatabaseError

OPERATOR = "--operator"
_MAX_REPRESENTATION = 200
"""Characters of the object's name that the admin keeps."""


def record(operator: str | None, target: str, action: str) -> None:
    """Add an entry to the admin's log; do nothing where the admin is not installed.

    Args:
        operator: the name of the Django user to whom it belongs; None: that of the system's user.
        target: the user ID that the action is about.
        action: what is done.

    Raises:
        CommandError: there is no such Django user, or the entry cannot be written.
    """
    if not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import CHANGE, LogEntry  # only where it is installed

    name = operator or _system_user()
    # names may hold null characters, which not every database stores
    shown = target.replace("\0", "\N{SYMBOL FOR NULL}")
    users = get_user_model()
    try:
        try:
            user = users._default_manager.get_by_natural_key(name)
        except users.DoesNotExist:
            raise CommandError(_unknown(operator, name)) from None
        LogEntry.objects.create(
            user_id=user.pk,
            content_type_id=_content_type(),
            object_id=shown,
            object_repr=shown[:_MAX_REPRESENTATION],
            action_flag=CHANGE,
            change_message=f"{action} ({_system_user()} at {platform.node()})",
        )
    except DatabaseError as error:
        raise CommandError(
            f"This is done only with an entry in the admin's log, and the database answers: {error}"
        ) from error


def _content_type() -> int | None:
    """Return the key of what the panel's log lists as acts on users; None without the panel."""
    from django.contrib.contenttypes.models import ContentType  # only where it is installed

    try:
        model = apps.get_model("realtime_admin", "Connection")
    except LookupError:
        return None
    return ContentType.objects.get_for_model(model).pk


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user ID without a name
        return ""


def _unknown(operator: str | None, name: str) -> str:
    if operator:
        return f"There is no Django user {operator!a}."
    return (
        f"Say who you are with {OPERATOR} NAME, the name of a Django user: there is none with the"
        f" name of the system's user, {name!a}. An entry in the admin's log tells who did this."
    )
