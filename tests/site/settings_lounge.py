"""Settings of a site with private channels, beside the chat."""

from __future__ import annotations

from tests.site import settings_hooks
from tests.site.settings_hooks import *  # noqa: F403

INSTALLED_APPS = [*settings_hooks.INSTALLED_APPS, "tests.site.lounge"]
ROOT_URLCONF = "tests.site.lounge.urls"
