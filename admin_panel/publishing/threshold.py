"""Above which size a publication has to be confirmed.

    REALTIME_ADMIN_CONFIRM_ABOVE = {"subscribers": 100, "channels": 10}

in the site's settings; what is left out has this default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.core.checks import CheckMessage, Error

SETTING = "REALTIME_ADMIN_CONFIRM_ABOVE"


class Threshold(NamedTuple):
    """The largest publication that goes out without being confirmed."""

    subscribers: int = 100
    channels: int = 10

    def is_passed(self, subscribers: int, channels: int) -> bool:
        """Whether a publication is larger."""
        return subscribers > self.subscribers or channels > self.channels


def threshold() -> Threshold:
    """The threshold in force; the defaults where the setting is wrong, which a check tells."""
    given = getattr(settings, SETTING, {})
    return Threshold(**given) if _is_right(given) else Threshold()


def check_setting(**_arguments: Any) -> list[CheckMessage]:
    """realtime_admin.E001: the setting holds something else."""
    if _is_right(getattr(settings, SETTING, {})):
        return []
    return [
        Error(
            f"{SETTING} must be a dict of whole numbers from 0.",
            hint=f'For example {SETTING} = {{"subscribers": 100, "channels": 10}}.',
            id="realtime_admin.E001",
        )
    ]


def _is_right(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        name in Threshold._fields and type(number) is int and number >= 0
        for name, number in given.items()
    )
