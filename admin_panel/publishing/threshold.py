"""The size above which a publication must be confirmed.

    REALTIME_ADMIN_CONFIRM_ABOVE = {"subscribers": 100, "channels": 10}

in the site's settings; a missing key has this default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.core.checks import CheckMessage, Error

SETTING = "REALTIME_ADMIN_CONFIRM_ABOVE"


class Threshold(NamedTuple):
    """The largest publication that needs no confirmation."""

    subscribers: int = 100
    channels: int = 10

    def is_passed(self, subscribers: int, channels: int) -> bool:
        """Return whether a publication is larger."""
        return subscribers > self.subscribers or channels > self.channels


def threshold() -> Threshold:
    """Return the threshold in force. A wrong setting, which a check reports, has no effect."""
    setting = getattr(settings, SETTING, {})
    return Threshold(**setting) if _is_valid(setting) else Threshold()


def check_setting(**_arguments: Any) -> list[CheckMessage]:
    """realtime_admin.E001: the setting is not valid."""
    if _is_valid(getattr(settings, SETTING, {})):
        return []
    return [
        Error(
            f"{SETTING} must be a dict of whole numbers from 0.",
            hint=f'For example {SETTING} = {{"subscribers": 100, "channels": 10}}.',
            id="realtime_admin.E001",
        )
    ]


def _is_valid(setting: object) -> bool:
    return isinstance(setting, Mapping) and all(
        name in Threshold._fields and type(number) is int and number >= 0
        for name, number in setting.items()
    )
