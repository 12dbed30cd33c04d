"""The sample site with a test database that threads reach by connections of their own."""

from __future__ import annotations

import settings
from settings import *  # noqa: F403

DATABASES = {"default": {**settings.DATABASES["default"], "TEST": {"NAME": "test.sqlite3"}}}
