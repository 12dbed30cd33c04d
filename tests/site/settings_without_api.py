"""Settings of a site that does not offer the server API."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ROOT_URLCONF = "tests.site.urls_without_api"
