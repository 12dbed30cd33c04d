"""The ASGI application of the ready site."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "messaging_project.settings")
django_application = get_asgi_application()

# after Django is set up
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler  # noqa: E402

import realtime.asgi  # noqa: E402

# It serves the static files of the demo and the admin, too: one command is enough.
application = realtime.asgi.application(
    ASGIStaticFilesHandler(django_application), settle_heap=True
)
