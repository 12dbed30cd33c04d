"""Settings of a site that decides itself: it has an app with hooks, and a login."""

from __future__ import annotations

import os

from tests import settings
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.site.chat"]
ROOT_URLCONF = "tests.site.chat.urls"
LOGIN_REDIRECT_URL = "chat-page"
LOGOUT_REDIRECT_URL = "login"
LOGIN_URL = "login"

SESSION_ENGINE = f"django.contrib.sessions.backends.{os.environ.get('TEST_SESSIONS', 'db')}"

# sessions in files stand beside the database
SESSION_FILE_PATH = os.path.dirname(os.environ.get("TEST_DATABASE", "")) or None

TEST_CHECK_INTERVAL = os.environ.get("TEST_CHECK_INTERVAL")
"""Seconds until a login session is looked at again, where tests should not wait a minute."""

TEST_REFRESH_RETRY = os.environ.get("TEST_REFRESH_RETRY")
"""Seconds until a refresh hook that failed is asked again."""
