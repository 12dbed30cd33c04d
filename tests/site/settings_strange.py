"""Settings of a site whose hooks do what hooks should not, beside those of the chat.

It has no relay of pending rows, so that all connections to its database are those of hooks.
"""

from __future__ import annotations

from tests.site import settings_hooks
from tests.site.settings_hooks import *  # noqa: F403

INSTALLED_APPS = [*settings_hooks.INSTALLED_APPS, "tests.site.strange"]
INSTALLED_APPS.remove("realtime.pending")
