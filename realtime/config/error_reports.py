"""Django's error pages and error e-mails without the secrets of the service.

    DEFAULT_EXCEPTION_REPORTER_FILTER = "realtime.config.error_reports.SecretsFilter"

Django hides settings by their names, and `redis_url`, `hosts` and `LOCATION` do not sound secret.
With DEBUG it shows every local variable, too.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView
from types import FrameType
from typing import Any
from urllib.parse import unquote

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter

from realtime.config import sources
from realtime.config.options import CONFIG_FIELDS

SHORTEST = 4
"""Characters of a secret that is looked for everywhere. A shorter one is part of other words."""

_URL_PASSWORD = re.compile(r"(?<=://)([^\s/?#'\"@:]*):([^\s/'\"]+)@")
_SECRET_OPTIONS = [name for name, option in CONFIG_FIELDS.items() if not option.repr]


def has_password(urls: str) -> bool:
    """Return whether one of these URLs holds a password."""
    return _URL_PASSWORD.search(urls) is not None


class SecretsFilter(SafeExceptionReporterFilter):
    """Django's filter. It also hides passwords in URLs, and the values of secret options."""

    def cleanse_setting(self, key: int | str, value: Any) -> Any:
        """Return the value of a setting, with stars in place of secrets."""
        cleansed = super().cleanse_setting(key, value)
        return self._masked(cleansed) if isinstance(cleansed, str) else cleansed

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        """Return the local variables of a frame, with stars in place of secrets."""
        variables = super().get_traceback_frame_variables(request, tb_frame)
        return {name: self._shown(value) for name, value in variables}.items()

    def _shown(self, value: Any) -> Any:
        try:
            text = repr(value)
        except Exception:
            return value  # Django shows the exception
        masked = self._masked(text)
        return value if masked == text else _Shown(masked)

    def _masked(self, text: str) -> str:
        text = _URL_PASSWORD.sub(rf"\1:{self.cleansed_substitute}@", text)
        for secret in _secrets():
            text = text.replace(secret, self.cleansed_substitute)
        return text


class _Shown:
    """What is shown in place of a value."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _secrets() -> list[str]:
    """Return the secrets in the options, longest first."""
    try:
        options = sources.gather().options
    except Exception:  # settings may be what is broken
        return []
    found: set[str] = set()
    for name in _SECRET_OPTIONS:
        value = str(options.get(name) or "")
        if "://" not in value:
            found.add(value)
        for match in _URL_PASSWORD.finditer(value):
            found |= {match[2], unquote(match[2])}
    return sorted((each for each in found if len(each) >= SHORTEST), key=len, reverse=True)
