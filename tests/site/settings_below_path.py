"""Settings of a site whose addresses are below a path, by a setting of Django."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

FORCE_SCRIPT_NAME = "/app"
ROOT_URLCONF = "tests.site.urls_below_path"
