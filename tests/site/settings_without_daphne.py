"""Settings of a site that runs under another server than daphne."""

from __future__ import annotations

from tests import settings
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "daphne"]
