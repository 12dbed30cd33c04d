"""The ASGI application of the ready site."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application
from django.core.exceptions import SuspiciousFileOperation
from django.http import FileResponse, Http404, HttpRequest, HttpResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "messaging_project.settings")
django_application = get_asgi_application()

# after Django is set up
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler  # noqa: E402

import realtime.asgi  # noqa: E402


class StaticFiles(ASGIStaticFilesHandler):
    """Django's handler, where every path that names no file is an unknown path."""

    def serve(self, request: HttpRequest) -> HttpResponse | FileResponse:
        """Return a static file.

        Raises:
            Http404: there is no such file, or there can be none of this name.
        """
        try:
            return super().serve(request)
        except (SuspiciousFileOperation, ValueError, OSError) as error:
            raise Http404(request.path) from error


# It serves the static files of the demo and the admin, too: one command is enough.
application = realtime.asgi.application(StaticFiles(django_application), settle_heap=True)
