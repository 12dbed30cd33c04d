"""The operator who knows the shared password, and the placeholder user for the log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import make_password
from django.utils.translation import gettext as _

from ..operators import Operator

PLACEHOLDER_NAME = "shared password"
"""Name of the placeholder user, to whom the log entries of the shared password belong.

Because of its space, no form accepts it for another user.
"""


class SharedOperator(Operator):
    """The operator who signed in with the shared password, or needed none. May do everything
    with the service."""

    @property
    def name(self) -> str:
        return _("shared password")

    @property
    def may_find_people(self) -> bool:
        return False  # names and addresses are the site's, and not those of the service

    def has(self, codename: str) -> bool:
        return True

    def user_id(self) -> Any:
        return placeholder().pk


def placeholder() -> AbstractBaseUser:
    """Return the placeholder user, which is created when it is first needed.

    It is inactive and has an unusable password, so no one can log in as this user.
    """
    model = get_user_model()
    # the base manager, because the site's own may hide inactive users
    user, _created = model._base_manager.get_or_create(
        **{model.USERNAME_FIELD: PLACEHOLDER_NAME},
        defaults={"is_active": False, "password": make_password(None)},
    )
    return user
