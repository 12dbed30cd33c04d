"""Settings of a site that listens to the signals of the service."""

from __future__ import annotations

import os

from tests import settings
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.site.listening"]
ROOT_URLCONF = "tests.site.listening.urls"
DATABASES = {
    "default": {
        **settings.DATABASES["default"],
        "ATOMIC_REQUESTS": os.environ.get("TEST_ATOMIC_REQUESTS") == "1",
    }
}
