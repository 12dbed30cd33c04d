"""Settings of a site whose hooks do what hooks should not, beside those of the chat."""

from __future__ import annotations

from tests.site import settings_hooks
from tests.site.settings_hooks import *  # noqa: F403

INSTALLED_APPS = [*settings_hooks.INSTALLED_APPS, "tests.site.strange"]
