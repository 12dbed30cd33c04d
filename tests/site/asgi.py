"""The ASGI application of the test site. TEST_API_SHELL=0 leaves /api to the DRF view."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django_application = get_asgi_application()

import realtime.asgi  # noqa: E402

application = realtime.asgi.application(
    django_application, api=os.environ.get("TEST_API_SHELL", "1") == "1"
)
