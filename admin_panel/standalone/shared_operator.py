"""The operator who gave the shared password: may everything, and is nobody in particular."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import make_password
from django.utils.translation import gettext as _

from ..audit import Kind, record
from ..operators import Operator

STAND_IN = "shared password"
"""Name of the user whose entries in the log are those of the shared password.

No form accepts it for a user of its own, because of the space.
"""


class SharedOperator(Operator):
    """Whoever gave the shared password, or needed none."""

    @property
    def name(self) -> str:
        return _("shared password")

    @property
    def may_view(self) -> bool:
        return True

    def may_publish(self, channel: str) -> bool:
        return True

    @property
    def may_publish_somewhere(self) -> bool:
        return True

    @property
    def may_disconnect(self) -> bool:
        return True

    @property
    def may_unsubscribe(self) -> bool:
        return True

    @property
    def may_remove_history(self) -> bool:
        return True

    def log(self, kind: Kind, targets: Sequence[str], detail: str = "") -> None:
        record(stand_in().pk, kind, targets, detail)


def stand_in() -> AbstractBaseUser:
    """The user who stands for the shared password in the log; made at the first need.

    Inactive and without a password that could be right, so nobody can log in as this user.
    """
    model = get_user_model()
    # the base manager: a manager of the site's own may hide inactive users
    user, _created = model._base_manager.get_or_create(
        **{model.USERNAME_FIELD: STAND_IN},
        defaults={"is_active": False, "password": make_password(None)},
    )
    return user
