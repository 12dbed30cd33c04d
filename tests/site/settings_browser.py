"""Settings of the site with the client module, beside the lounge and the chat."""

from __future__ import annotations

from tests.site import settings_lounge
from tests.site.settings_lounge import *  # noqa: F403

INSTALLED_APPS = [*settings_lounge.INSTALLED_APPS, "tests.site.browser"]
ROOT_URLCONF = "tests.site.browser.urls"
